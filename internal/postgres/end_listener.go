package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// EndListener hears which runs and imports end, on a connection of its own. It is used by one goroutine.
type EndListener struct {
	conn *pgx.Conn
	deaf bool // a pooler gives the connection to others between transactions: notifications do not arrive
}

// connect makes a connection like those of the pool, but none of them.
func connect(ctx context.Context, pool *pgxpool.Pool) (*pgx.Conn, error) {
	config := pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil || config.AfterConnect == nil {
		return conn, err
	}
	if err := config.AfterConnect(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// endedChannel is the name that the triggers of runs and imports notify.
const endedChannel = "varve_ended"

// hearing is how long a notification of our own may take to arrive.
const hearing = time.Second

// ListenForEnds begins to listen. It finds out whether notifications arrive: a transaction pooler swallows them.
func (s *Store) ListenForEnds(ctx context.Context) (*EndListener, error) {
	conn, err := connect(ctx, s.pool)
	if err != nil {
		return nil, err
	}
	e := &EndListener{conn: conn}
	echo := uuid.NewString()
	if _, err = conn.Exec(ctx, `LISTEN `+endedChannel); err == nil {
		_, err = s.pool.Exec(ctx, `SELECT pg_notify($1, $2)`, endedChannel, echo)
	}
	if err != nil {
		e.Close(ctx)
		return nil, err
	}
	for until := time.Now().Add(hearing); ; {
		id, err := e.Next(ctx, time.Until(until))
		switch {
		case err != nil:
			e.Close(ctx)
			return nil, err
		case id.String() == echo:
			return e, nil
		case id == uuid.Nil:
			e.deaf = true
			return e, nil
		}
	}
}

// Deaf reports whether notifications do not arrive, so that all that waits must be looked at with Live.
func (e *EndListener) Deaf() bool { return e.deaf }

// Next returns the id of a run or import that has ended, uuid.Nil if there is none within patience.
func (e *EndListener) Next(ctx context.Context, patience time.Duration) (uuid.UUID, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	heard, err := e.conn.WaitForNotification(waiting)
	switch {
	case err == nil:
		id, _ := uuid.Parse(heard.Payload) // what is not an id is not ours
		return id, nil
	case waiting.Err() != nil && ctx.Err() == nil && !e.conn.IsClosed():
		return uuid.Nil, nil
	}
	return uuid.Nil, err
}

// Live returns those of the ids, by tenant, that are runs or imports which have not ended, in one round trip.
func (e *EndListener) Live(ctx context.Context, ids map[uuid.UUID][]uuid.UUID) (live []uuid.UUID, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	batch := &pgx.Batch{}
	for tenant, of := range ids {
		batch.Queue(setTenant, tenant.String())
		batch.Queue(`
			SELECT id
			  FROM runs
			 WHERE tenant_id = $1 AND id = ANY($2) AND state IN ('queued', 'running')
			 UNION ALL
			SELECT id
			  FROM imports
			 WHERE tenant_id = $1 AND id = ANY($2) AND state = 'running'`, tenant, of).
			Query(func(rows pgx.Rows) error {
				found, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
				live = append(live, found...)
				return err
			})
	}
	return live, e.conn.SendBatch(ctx, batch).Close()
}

// Close ends the connection.
func (e *EndListener) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = e.conn.Close(ctx) // it is not needed any more
}
