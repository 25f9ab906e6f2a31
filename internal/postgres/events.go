package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Happening is an event before it is written.
type Happening struct {
	Kind  session.EventType
	Topic string
	Once  string // an event with the same text was written before: then this one is not; "" writes it always
	Data  any    // written as JSON
}

// Emit writes an event in the transaction of what it tells. A trigger numbers it at the commit.
func Emit(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, e Happening) error {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return err
	}
	return Exec(ctx, tx, `
		INSERT INTO events (tenant_id, id, type, topic, data, once)
		VALUES ($1, $2, $3, $4, $5, nullif($6, ''))
		ON CONFLICT (tenant_id, once) WHERE once IS NOT NULL DO NOTHING`,
		tenant, uuid.Must(uuid.NewV7()), e.Kind, e.Topic, data, e.Once)
}

// EmitOf writes an event of a session whose id is not known here.
func EmitOf(ctx context.Context, tx pgx.Tx, key session.Key, kind session.EventType, data any) error {
	document, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return Exec(ctx, tx, `
		INSERT INTO events (tenant_id, id, type, topic, data)
		SELECT $1, $3, $4, $5 || id, $6
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`,
		key.Tenant, key.Key, uuid.Must(uuid.NewV7()), kind, session.TopicOf(""), document)
}

// EventFilter is which events to read. What is empty does not matter.
type EventFilter struct {
	After   int64 // the number of the last one that was read
	Types   []session.EventType
	Session string
	Limit   int
}

// Events are events that were read, and how far all of them are read with these.
type Events struct {
	Page   []session.Event
	Head   int64 // the number of the newest event
	Oldest int64 // the number of the oldest one that is kept; 0 for none
}

// Next returns the number after which the events behind the page are.
func (e *Events) Next(f EventFilter) int64 {
	if len(e.Page) == f.Limit {
		return e.Page[len(e.Page)-1].N
	}
	return max(e.Head, f.After)
}

// Events reads the next events of a tenant. No event that is committed later has a number below Head.
func (s *Store) Events(ctx context.Context, tenant uuid.UUID, f EventFilter) (Events, error) {
	return ReadTx(ctx, s, tenant, func(tx pgx.Tx) (found Events, err error) {
		err = tx.QueryRow(ctx, `
			SELECT coalesce((SELECT n FROM event_heads WHERE tenant_id = $1), 0),
			       coalesce((SELECT n FROM events WHERE tenant_id = $1 AND n > 0 ORDER BY n LIMIT 1), 0)`, tenant).
			Scan(&found.Head, &found.Oldest)
		if err != nil {
			return found, err
		}
		sql, args := f.sql(tenant)
		found.Page, err = RowsIn(ctx, tx, ScanEvent, sql, args...)
		return found, err
	})
}

// EventColumns are what ScanEvent reads.
const EventColumns = `id, n, type, at, topic, data`

// ScanEvent reads an event from EventColumns.
func ScanEvent(row pgx.CollectableRow) (e session.Event, err error) {
	var topic string
	err = row.Scan(&e.ID, &e.N, &e.Type, &e.At, &topic, &e.Data)
	e.Session = session.SessionOfTopic(topic)
	return e, err
}

// sql returns the statement that reads the events, and its arguments. It has a condition for what matters only, so that
// the index of that condition serves it.
func (f *EventFilter) sql(tenant uuid.UUID) (string, []any) {
	args := []any{tenant, f.After, f.Limit}
	var where strings.Builder
	if f.Session != "" {
		args = append(args, session.TopicOf(f.Session))
		where.WriteString(` AND topic = $4`)
	}
	if len(f.Types) > 0 {
		args = append(args, f.Types)
		where.WriteString(` AND type = ANY($` + strconv.Itoa(len(args)) + `)`)
	}
	return `
		SELECT ` + EventColumns + `
		  FROM events
		 WHERE tenant_id = $1 AND n > $2` + where.String() + `
		 ORDER BY n
		 LIMIT $3`, args
}

// EventHeads returns the numbers of the newest events of those tenants that have any, in one round trip.
func (s *Store) EventHeads(ctx context.Context, tenants []uuid.UUID) (map[uuid.UUID]int64, error) {
	heads := make(map[uuid.UUID]int64, len(tenants))
	batch := &pgx.Batch{}
	for _, tenant := range tenants {
		batch.Queue(setTenant, tenant.String())
		batch.Queue(`
			SELECT n
			  FROM event_heads
			 WHERE tenant_id = $1`, tenant).
			Query(func(rows pgx.Rows) error {
				n, err := pgx.CollectOneRow(rows, pgx.RowTo[int64])
				if errors.Is(err, pgx.ErrNoRows) { // nothing has happened yet
					return nil
				}
				heads[tenant] = n
				return err
			})
	}
	return heads, s.pool.SendBatch(ctx, batch).Close()
}

// OldestEvents reads the events of a tenant that are looked at first when old ones are deleted. Their numbers follow
// their times but for the moments that transactions took.
const OldestEvents = `
	               SELECT ctid, n, at, type, topic
	                 FROM events
	                WHERE tenant_id = $1 AND n > 0
	                ORDER BY n
	                LIMIT 1000`

// pruneEvents deletes old events.
var pruneEvents = pruneRows("events", `
	       SELECT ctid
	         FROM (`+OldestEvents+`) oldest
	        WHERE at < now() - $2::interval`, PruneBatch)
