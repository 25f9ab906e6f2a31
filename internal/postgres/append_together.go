package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/together"
)

// How appends are put together.
const (
	appendsTogether = 16
	bytesTogether   = 256 << 10
	roundPatience   = 20 * time.Millisecond
)

// togetherConfig returns how appends are put together over some connections: so that no fewer of them are on the way
// to the disk at a time than if each had a connection of its own.
func togetherConfig(connections int) together.Config {
	return together.Config{
		Slots: max(2, connections/4), Members: appendsTogether, Bytes: bytesTogether,
		Patience: roundPatience,
	}
}

var (
	appendsOfRounds = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "varve_append_together", Help: "Appends that one transaction tried.", Buckets: []float64{1, 2, 4, 8, 16},
	})
	roundsUndone = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_append_undone_total",
		Help: "Transactions of several appends that one of them failed, so that each was tried alone.",
	})
)

// appending is an append on its way through a round.
type appending struct {
	session.Append
	params appendParams
	sql    *appendSQL
	done   session.Appended
	fate   fate
	err    error // of fate failed
}

// fate is what became of an append in a round.
type fate int

const (
	undone   fate = iota // it is to be tried alone
	appended             // it is committed
	refused              // the statement did nothing: the session's lock must decide
	failed               // as it would have alone; it may be committed or not
)

// appendTogether appends in a round, with those that arrive at the same time. The error is that of an append that was
// in no round.
func (s *Store) appendTogether(ctx context.Context, a *appending) error {
	round, err := s.together.Enter(ctx, a.Session, a.params.bytes, a)
	if err != nil || round == nil {
		return err
	}
	defer round.End()
	return s.onConnection(ctx, a.Session.Tenant, func(conn *pgxpool.Conn) {
		ctx, all := round.Board(ctx)
		appendsOfRounds.Observe(float64(len(all)))
		commitAppends(ctx, conn, all)
	})
}

// appendAlone appends in a transaction of its own.
func (s *Store) appendAlone(ctx context.Context, a *appending) error {
	return s.onConnection(ctx, a.Session.Tenant, func(conn *pgxpool.Conn) {
		commitAppends(ctx, conn, []*appending{a})
	})
}

// onConnection runs do with a connection of a tenant's share.
func (s *Store) onConnection(ctx context.Context, tenant uuid.UUID, do func(conn *pgxpool.Conn)) error {
	turn, err := s.scope.Gate.Acquire(ctx, s.scope.Class, tenant)
	if err != nil {
		return err
	}
	defer turn.Done()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	do(conn)
	return nil
}

// tenantForMany is setTenant for a transaction of several appends. They don't wait for a lock for long: whoever has a
// session's lock would hold all of them up. It is less than PostgreSQL waits before it looks for a deadlock, so that
// nobody else's transaction ends because of one.
const tenantForMany = `
	SELECT set_config('app.tenant_id', $1, true), set_config('lock_timeout', '50ms', true)`

// commitAppends runs the statements of several appends in one transaction, which is one pipeline with one Sync. It
// decides what becomes of each.
func commitAppends(ctx context.Context, conn *pgxpool.Conn, all []*appending) {
	inLockOrder(all)
	nothingDone, err := runAppends(ctx, conn, all)
	switch {
	case err == nil:
	case nothingDone && len(all) > 1:
		roundsUndone.Inc()
		for _, a := range all {
			a.fate = undone
		}
	default:
		for _, a := range all {
			a.fate, a.err = failed, err
		}
	}
}

// inLockOrder sorts appends so that the transactions of two processes take the locks of sessions in the same order.
// Those of one session keep theirs.
func inLockOrder(all []*appending) {
	slices.SortStableFunc(all, func(a, b *appending) int {
		of, other := a.Session, b.Session
		return cmp.Or(slices.Compare(of.Tenant[:], other.Tenant[:]), strings.Compare(of.ID, other.ID))
	})
}

// runAppends returns an error if the appends are not known to be committed, and whether none of them is.
func runAppends(ctx context.Context, conn *pgxpool.Conn, all []*appending) (nothingDone bool, err error) {
	runs := inRuns(all)
	results := conn.SendBatch(ctx, batchOf(runs))
	defer results.Close()
	for i, run := range runs {
		if startsTenant(runs, i) {
			if _, err := results.Exec(); err != nil {
				return statementFailed(err), err
			}
		}
		if err := readRun(results, run, !isAlone(runs)); err != nil {
			return statementFailed(err), err
		}
	}
	err = results.Close()
	return commitFailed(err), err
}

// inRuns divides appends in the order of their locks into those that one statement does.
func inRuns(all []*appending) (runs [][]*appending) {
	from := 0
	for i := 1; i <= len(all); i++ {
		if i == len(all) || !all[i].follows(all[i-1]) {
			runs = append(runs, all[from:i])
			from = i
		}
	}
	return runs
}

// follows reports whether an append can be done by the statement that does another, which is measured the same way and
// goes to another session of the same tenant.
func (a *appending) follows(other *appending) bool {
	return a.Session.Tenant == other.Session.Tenant && a.Session.ID != other.Session.ID && a.sql == other.sql
}

// batchOf returns the statements of runs. Only an append that is alone has the statement of one append, which fails if
// its Idempotency-Key or client ids are known.
func batchOf(runs [][]*appending) *pgx.Batch {
	batch := &pgx.Batch{}
	if a := runs[0][0]; isAlone(runs) {
		batch.Queue(setTenant, a.Session.Tenant.String())
		batch.Queue(a.sql.of(&a.params), a.params.args()...)
		return batch
	}
	for i, run := range runs {
		if startsTenant(runs, i) {
			batch.Queue(tenantForMany, run[0].Session.Tenant.String())
		}
		batch.Queue(run[0].sql.many, manyArgs(run)...)
	}
	return batch
}

func isAlone(runs [][]*appending) bool { return len(runs) == 1 && len(runs[0]) == 1 }

// startsTenant reports whether the run before is another tenant's, or there is none.
func startsTenant(runs [][]*appending, i int) bool {
	return i == 0 || runs[i][0].Session.Tenant != runs[i-1][0].Session.Tenant
}

// statementFailed reports whether err is what PostgreSQL answered to a statement, after which it does not commit, or
// nothing was sent to it.
func statementFailed(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.SeverityUnlocalized == "ERROR"
	}
	return pgconn.SafeToRetry(err)
}

// commitFailed reports whether err is a violation or a serialization failure, after which nothing is committed. Other
// errors can come behind a commit.
func commitFailed(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "23") || strings.HasPrefix(pg.Code, "40"))
}

// readRun reads the result of the statement of a run: a row for each append that it did, with its number if it is
// that of several.
func readRun(results pgx.BatchResults, run []*appending, numbered bool) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for _, a := range run {
		a.fate = refused
	}
	for rows.Next() {
		var done session.Appended
		var measured measure
		columns := []any{&done.LastSeq, &done.ContextTokens, &done.TotalTokens, &measured.calibration, &measured.unseen}
		number := int64(1)
		if numbered {
			columns = append(columns, &number)
		}
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		run[number-1].wasDone(done)
	}
	return rows.Err()
}

// wasDone notes what the statement answered.
func (a *appending) wasDone(done session.Appended) {
	done.FirstSeq = done.LastSeq - a.params.count + 1
	done.Tokens = a.params.tokens
	done.Compaction = session.CompactionNone
	a.done, a.fate = done, appended
}

// givenUp says of an append whose round failed that its own caller had gone, if that is so.
func givenUp(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}
