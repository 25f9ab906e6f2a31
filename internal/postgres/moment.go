package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Moment is a moment of a session: what a read would have returned right after the seq was taken. ADR 70 defines it.
type Moment struct {
	Seq        int64
	Checkpoint int // the newest one then; 0 for none

	key    uuid.UUID
	pinned int64 // leading system messages then
	kept   bool  // the checkpoint still has its body
}

// At names a moment of a session: a seq, or else a time. The zero At is now.
type At struct {
	Seq  int64
	Time time.Time
}

// Moment returns a moment of a session.
//
// Errors: ErrNotFound; a *session.InvalidError if the session has not come so far; a *session.LostViewError.
func (s *Store) Moment(ctx context.Context, at session.Address, when At) (Moment, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (m Moment, err error) {
		if m, err = readMoment(ctx, tx, key, when, "as_of_seq"); err != nil || m.kept {
			return m, err
		}
		return m, lostMoment(ctx, tx, key, m)
	})
}

// readMoment does what Moment does, but also for a view of which nothing is kept. pointer is where the seq comes from.
func readMoment(ctx context.Context, tx pgx.Tx, key session.Key, when At, pointer string) (m Moment, err error) {
	m.key, m.Seq = key.Key, when.Seq
	var last int64
	var removals bool
	err = tx.QueryRow(ctx, `
		SELECT last_seq, pinned, gap_seq > 0
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key).Scan(&last, &m.pinned, &removals)
	if err != nil {
		return m, NotFound(err)
	}
	switch {
	case when == At{}:
		m.Seq, when.Time = last, endOfTime
	case when.Seq == 0:
		if m.Seq, err = seqAt(ctx, tx, key, when.Time, removals); err != nil {
			return m, err
		}
	}
	if m.Seq > last {
		return m, session.Invalid(pointer, "invalid_request", "the session's last seq is %d, not %d", last, m.Seq)
	}
	if err := m.readPinned(ctx, tx, key); err != nil {
		return m, err
	}
	return m, m.readCheckpoint(ctx, tx, key, when.Time)
}

// endOfTime is later than every checkpoint.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// seqAt returns the last seq that was taken by a time, by a message or by a removal; 0 if there was none.
func seqAt(ctx context.Context, tx pgx.Tx, key session.Key, at time.Time, removals bool) (int64, error) {
	return RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT greatest(
		       (SELECT seq
		          FROM messages
		         WHERE tenant_id = $1 AND session_key = $2 AND created_at <= $3
		         ORDER BY seq DESC
		         LIMIT 1),
		       (SELECT max(removed_seq)
		          FROM messages
		         WHERE tenant_id = $1 AND session_key = $2 AND removed_at <= $3 AND $4), 0)`,
		key.Tenant, key.Key, at, removals)
}

// readPinned bounds the pinned head by the first message of then that was not in it.
func (m *Moment) readPinned(ctx context.Context, tx pgx.Tx, key session.Key) error {
	first, err := RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT seq
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq <= $3 AND role NOT IN ('system', 'developer')
		   AND (superseded_by IS NULL OR removed_seq > $3)
		 ORDER BY seq
		 LIMIT 1`, key.Tenant, key.Key, m.Seq)
	if errors.Is(err, session.ErrNotFound) {
		first, err = m.Seq+1, nil
	}
	m.pinned = min(m.pinned, first-1)
	return err
}

// readCheckpoint finds the newest checkpoint of then. One of an older program goes by its time.
func (m *Moment) readCheckpoint(ctx context.Context, tx pgx.Tx, key session.Key, at time.Time) error {
	var by *time.Time
	if !at.IsZero() {
		by = &at
	}
	err := tx.QueryRow(ctx, `
		SELECT n, body IS NOT NULL
		  FROM checkpoints c
		 WHERE tenant_id = $1 AND session_key = $2 AND through_seq <= $3
		   AND CASE WHEN $4::timestamptz IS NOT NULL
		            THEN created_at <= $4 AND coalesce(made_after <= $3, true)
		            ELSE coalesce(made_after < $3,
		                          created_at <= (SELECT m.created_at
		                                           FROM messages m
		                                          WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.seq <= $3
		                                          ORDER BY m.seq DESC
		                                          LIMIT 1)) END
		 ORDER BY n DESC
		 LIMIT 1`, key.Tenant, key.Key, m.Seq, by).Scan(&m.Checkpoint, &m.kept)
	if errors.Is(err, pgx.ErrNoRows) {
		m.kept, err = true, nil
	}
	return err
}

// lostMoment returns the error of a view whose checkpoint has no body any more, with the next that can be had.
func lostMoment(ctx context.Context, tx pgx.Tx, key session.Key, m Moment) error {
	next, err := RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT made_after + 1
		  FROM checkpoints
		 WHERE tenant_id = $1 AND session_key = $2 AND n > $3 AND body IS NOT NULL AND made_after IS NOT NULL
		 ORDER BY n
		 LIMIT 1`, key.Tenant, key.Key, m.Checkpoint)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	return &session.LostViewError{Seq: m.Seq, Checkpoint: m.Checkpoint, Next: next}
}
