package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/session"
)

// ErrStandbyStale reports that a standby does not show yet what a read must show.
var ErrStandbyStale = errors.New("the standby does not show yet what the read must show")

// Reading is one request whose reads go to a standby, until one of them fails there: from then on all go to the
// primary. Later reads never show less than earlier ones.
type Reading struct {
	standby  *Standby
	attempts context.Context // ends when the standby is not asked any more
	timeline int32           // that the standby follows
	need     atomic.Int64    // the position that reads must show
	asked    atomic.Bool     // a read succeeded there
	over     atomic.Bool     // the primary is asked now

	failed atomic.Pointer[error] // why
}

type readingKey struct{}

// Reading returns a context whose reads may go to the standby, for a request about a session or, without an id, about
// anything of a tenant. They show at least what this process wrote there before. The Reading is nil if all reads go to
// the primary.
func (s *Store) Reading(ctx context.Context, at session.Address) (context.Context, *Reading) {
	if s.standby == nil {
		return ctx, nil
	}
	timeline, attempts, unusable := s.standby.state()
	if unusable != nil {
		standbyReads.WithLabelValues("primary", why(unusable)).Inc()
		return ctx, nil
	}
	r := &Reading{standby: s.standby, attempts: attempts, timeline: timeline}
	if err := r.mustShow(ctx, s.standby.wrote.last(at)); err != nil {
		standbyReads.WithLabelValues("primary", why(err)).Inc()
		return ctx, nil
	}
	return context.WithValue(ctx, readingKey{}, r), r
}

// mustShow has reads show what was written before a moment.
func (r *Reading) mustShow(ctx context.Context, moment time.Time) error {
	if moment.IsZero() {
		return nil
	}
	p, err := r.standby.written.since(ctx, moment)
	if err != nil {
		return err
	}
	if p.timeline != r.timeline {
		return errBehind // positions on two timelines cannot be compared
	}
	if never := r.standby.never.Load(); never > 0 && p.lsn >= never {
		return ErrStandbyStale
	}
	r.need.Store(p.lsn)
	return nil
}

// Asked reports whether a read of the request succeeded on the standby. It is false for nil.
func (r *Reading) Asked() bool { return r != nil && r.asked.Load() }

// End counts the request. again is why it is done again with the primary, nil if it is not.
func (r *Reading) End(again error) {
	first := r.failed.Load()
	switch {
	case first != nil:
		standbyReads.WithLabelValues("primary", why(*first)).Inc()
	case again != nil:
		standbyReads.WithLabelValues("primary", why(again)).Inc()
	case r.Asked():
		standbyReads.WithLabelValues("standby", "").Inc()
	}
}

// FromStandby reports whether the next read of a context goes to a standby.
func FromStandby(ctx context.Context) bool { return readingOf(ctx, nil) != nil }

// WaitOnStandby returns how long a read of the context may wait for what the standby does not show yet; 0 if it goes
// to the primary.
func WaitOnStandby(ctx context.Context) time.Duration {
	if r := readingOf(ctx, nil); r != nil {
		return r.standby.Wait
	}
	return 0
}

// readingOf returns the reading of a context whose reads of a pool go to the standby, nil if they go to the pool. No
// pool is any. What sees archived sessions, too, always goes to the primary.
func readingOf(ctx context.Context, pool *pgxpool.Pool) *Reading {
	r, _ := ctx.Value(readingKey{}).(*Reading)
	if r == nil || r.over.Load() || seenBy(ctx) == seesAll || pool != nil && pool != r.standby.primary {
		return nil
	}
	return r
}

// attempt runs a read on the standby. If it fails there, the request's reads go to the primary from then on.
func (r *Reading) attempt(ctx context.Context, tenant uuid.UUID, read func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(r.attempts, func() { cancel(context.Cause(r.attempts)) })
	defer stop()
	turn, err := r.standby.gate.Acquire(ctx, turnsOf(ctx).class, tenant)
	if err == nil {
		err = read(ctx)
		turn.Done()
	}
	if err != nil {
		r.leave(err)
	} else {
		r.asked.Store(true)
	}
	return err
}

// leaveStandby has the reads of a context go to the primary from now on, and reports whether they went to a standby.
func leaveStandby(ctx context.Context) bool {
	r := readingOf(ctx, nil)
	if r != nil {
		r.leave(errDamagedCopy)
	}
	return r != nil
}

func (r *Reading) leave(why error) {
	r.failed.CompareAndSwap(nil, &why)
	r.over.Store(true)
}

// query does what the function query does, on the standby.
func (r *Reading) query(
	ctx context.Context, tenant uuid.UUID, sql string, args []any, read func(rows pgx.Rows) error,
) error {
	return r.attempt(ctx, tenant, func(ctx context.Context) error {
		err := r.queryOnce(ctx, tenant, sql, args, read)
		if errors.Is(err, ErrStandbyStale) {
			if err = r.await(ctx, r.standby.pool); err == nil {
				err = r.queryOnce(ctx, tenant, sql, args, read)
			}
		}
		return err
	})
}

// placeSQL says whether a server is a standby, and up to where it shows the primary's writes. Each later statement of
// the same connection shows at least as much, unless its snapshot is older.
const (
	placeSQL          = `SELECT pg_is_in_recovery(), ` + replayedSQL
	setTenantAndPlace = `SELECT pg_is_in_recovery(), ` + replayedSQL + `, set_config('app.tenant_id', $1, true)`
)

func (r *Reading) queryOnce(
	ctx context.Context, tenant uuid.UUID, sql string, args []any, read func(rows pgx.Rows) error,
) error {
	batch := &pgx.Batch{}
	batch.Queue(setTenantAndPlace, tenant.String())
	more := seenBy(ctx)
	if more != "" {
		batch.Queue(showMore, more)
	}
	batch.Queue(sql, args...)
	results := r.standby.pool.SendBatch(ctx, batch)
	defer results.Close()
	var standby bool
	var replayed int64
	if err := results.QueryRow().Scan(&standby, &replayed, nil, nil); err != nil {
		return err
	}
	if err := r.reached(standby, replayed); err != nil {
		return err
	}
	if more != "" {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	return readResult(results, read)
}

// reached returns an error unless a server shows what the request must show. If so, later reads must show as much.
func (r *Reading) reached(standby bool, replayed int64) error {
	switch {
	case !standby:
		return errPromoted
	case replayed < r.need.Load():
		return ErrStandbyStale
	}
	r.need.Store(replayed)
	return nil
}

// awaitEvery is how often a read that waits for the standby looks, at first.
const awaitEvery = time.Millisecond

// await waits until a server shows what the request must show.
func (r *Reading) await(ctx context.Context, server rowQuerier) error {
	need, up := r.need.Load(), time.Now().Add(r.standby.Wait)
	for pause := awaitEvery; ; pause = min(2*pause, 10*awaitEvery) {
		var standby bool
		var replayed int64
		if err := server.QueryRow(ctx, placeSQL).Scan(&standby, &replayed); err != nil {
			return err
		}
		err := r.reached(standby, replayed)
		if !errors.Is(err, ErrStandbyStale) {
			return err
		}
		if time.Now().After(up) {
			r.standby.never.CompareAndSwap(0, need)
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// inSnapshot runs do in one transaction of the standby like Store.inSnapshot.
func (r *Reading) inSnapshot(ctx context.Context, tenant uuid.UUID, do func(tx pgx.Tx) error) error {
	return r.attempt(ctx, tenant, func(ctx context.Context) error {
		return r.standby.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
			// First, outside of the transaction: its snapshot must not be older than the place.
			if err := r.await(ctx, conn); err != nil {
				return err
			}
			return pgx.BeginTxFunc(ctx, conn, snapshotOptions, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, setTenant, tenant.String()); err != nil {
					return err
				}
				if more := seenBy(ctx); more != "" {
					if _, err := tx.Exec(ctx, showMore, more); err != nil {
						return err
					}
				}
				return do(tx)
			})
		})
	})
}

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}
