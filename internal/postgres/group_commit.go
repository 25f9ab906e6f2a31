package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/session"
)

// Group commit: appends that arrive while others are on their way to the disk commit in one transaction (ADR 86).
// No append waits for a timer. One that finds a free slot leads a group at once. Those that arrive while all slots are
// taken wait in line, and the next free slot takes several of them. The leader commits the appends of all members in
// one transaction. Tenants take turns, and two groups never write to one session at the same time.

// groupLimits bound the groups of a process.
type groupLimits struct {
	slots   int   // groups at a time
	members int   // of a group
	bytes   int64 // of a group of several members
	// patience is how long a group keeps its slot. One that takes longer waits for somebody else's lock, say, and must
	// not hold up those in line.
	patience time.Duration
}

// groupLimitsOf returns the limits for a pool of this many connections: no fewer groups are on the way to the disk at a
// time than appends if each had a connection of its own.
func groupLimitsOf(connections int) groupLimits {
	return groupLimits{slots: max(2, connections/4), members: 16, bytes: 256 << 10, patience: 20 * time.Millisecond}
}

var (
	groupSizes = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "varve_append_group_size", Help: "Appends in a transaction.", Buckets: []float64{1, 2, 4, 8, 16},
	})
	groupsUndone = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_append_undone_total",
		Help: "Transactions of several appends, or of one with a view, that failed: each append was tried alone.",
	})
)

// appending is an append on its way through a group.
type appending struct {
	session.Append
	params appendParams
	view   *Viewing // nil for none

	group *group      // that it is in; nil while it waits in line
	ended chan *group // gets the group that it shall lead, or nil if there is nothing to wait for any more

	done session.Appended
	fate fate
	err  error // of fate failed
}

// fate is what became of an append in a group.
type fate int

const (
	undone   fate = iota // it is to be tried alone
	appended             // it is committed
	refused              // the statement did nothing: the session's lock must decide
	failed               // as it would have alone; it may be committed or not
)

// commitGroup commits the appends of a group that an append leads, which ends with that, or that append alone if the
// group is nil.
func (s *Store) commitGroup(ctx context.Context, a *appending, group *group) error {
	if group != nil {
		defer group.end()
	}
	turn, err := s.scope.Gate.Acquire(ctx, s.scope.Class, a.Session.Tenant)
	if err != nil {
		return err
	}
	defer turn.Done()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	all := []*appending{a}
	if group != nil {
		ctx, all = group.fill(ctx)
		groupSizes.Observe(float64(len(all)))
	}
	inLockOrder(all)
	nothingDone, err := runAppends(ctx, conn, all)
	switch {
	case err == nil:
	case nothingDone && (len(all) > 1 || a.view != nil):
		groupsUndone.Inc()
		for _, a := range all {
			a.fate = undone
		}
	default:
		for _, a := range all {
			a.fate, a.err = failed, err
		}
	}
	return nil
}

// tenantForMany is setTenant for a transaction of several appends. They don't wait for a lock for long: whoever has a
// session's lock would hold all of them up. It is less than PostgreSQL waits before it looks for a deadlock, so that
// nobody else's transaction ends because of one.
const tenantForMany = `
	SELECT set_config('app.tenant_id', $1, true), set_config('lock_timeout', '50ms', true)`

// inLockOrder sorts appends so that the transactions of two processes take the locks of sessions in the same order.
// Those of one session keep theirs.
func inLockOrder(all []*appending) {
	slices.SortStableFunc(all, func(a, b *appending) int {
		of, other := a.Session, b.Session
		return cmp.Or(slices.Compare(of.Tenant[:], other.Tenant[:]), strings.Compare(of.ID, other.ID))
	})
}

// runAppends runs the statements of several appends in one transaction, which is one pipeline with one Sync. It returns
// an error if the appends are not known to be committed, and whether none of them is.
func runAppends(ctx context.Context, conn *pgxpool.Conn, all []*appending) (nothingDone bool, err error) {
	batch := &pgx.Batch{}
	var runs [][]*appending // those that one statement does; nil for a statement that sets the tenant
	if a := all[0]; len(all) == 1 {
		// Only an append that is alone has this statement, which fails if its Idempotency-Key or client ids are known.
		batch.Queue(setTenant, a.Session.Tenant.String())
		sql, args := a.params.statement()
		batch.Queue(sql, args...)
		runs = append(runs, nil, all)
		a.view.queue(batch, a.Session)
	} else {
		for first, next := 0, 0; first < len(all); first = next {
			of := all[first].Session
			if first == 0 || of.Tenant != all[first-1].Session.Tenant {
				batch.Queue(tenantForMany, of.Tenant.String())
				runs = append(runs, nil)
			}
			next = endOfRun(all, first)
			sql, args := manyStatement(all[first:next])
			batch.Queue(sql, args...)
			runs = append(runs, all[first:next])
		}
	}
	results := conn.SendBatch(ctx, batch)
	defer results.Close()
	for _, run := range runs {
		if run == nil {
			_, err = results.Exec()
		} else {
			err = readRun(results, run, len(all) > 1)
		}
		if err != nil {
			return statementFailed(err), err
		}
	}
	if len(all) == 1 {
		if err := all[0].view.read(results, all[0].fate); err != nil {
			return statementFailed(err), err
		}
	}
	err = results.Close()
	return commitFailed(err), err
}

// endOfRun returns the end of the appends, in the order of their locks, that one statement does: they are one tenant's,
// each to another session.
func endOfRun(all []*appending, first int) int {
	next := first + 1
	for next < len(all) && all[next].Session.Tenant == all[first].Session.Tenant &&
		all[next].Session.ID != all[next-1].Session.ID {
		next++
	}
	return next
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
		a := run[number-1]
		done.FirstSeq, done.Tokens = done.LastSeq-a.params.count+1, a.params.tokens
		done.Compaction = session.CompactionNone
		a.done, a.fate = done, appended
	}
	return rows.Err()
}

// givenUp says of an append whose group failed that its own caller had gone, if that is so.
func givenUp(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// maxWaiting is how many appends of a tenant wait in line. More of them are done alone, and hold nobody up.
const maxWaiting = 256

// groups puts the appends of a process into groups.
type groups struct {
	limits groupLimits

	mu      sync.Mutex
	running int                        // groups that have a slot
	writing map[session.Address]*group // by the sessions that they write to
	lines   map[uuid.UUID]*line        // of tenants whose appends wait
	turns   []*line                    // the same, the one whose turn is next first
}

// line is the appends of a tenant that wait.
type line struct {
	tenant  uuid.UUID
	waiting []*appending
}

func newGroups(limits groupLimits) *groups {
	return &groups{limits: limits, writing: map[session.Address]*group{}, lines: map[uuid.UUID]*line{}}
}

// enter waits until the caller of an append has something to do. It returns a group that the caller leads. It returns
// none when the group that the append was in has ended, or when the append is better done alone. The error is that of
// ctx, if it ended before the append was in a group.
func (q *groups) enter(ctx context.Context, m *appending) (*group, error) {
	q.mu.Lock()
	busy := q.writing[m.Session]
	if busy == nil && q.running < q.limits.slots {
		defer q.mu.Unlock()
		return q.start(m), nil
	}
	if busy != nil && busy.stuck || !q.wait(m) {
		q.mu.Unlock()
		return nil, nil
	}
	q.mu.Unlock()
	select {
	case group := <-m.ended:
		return group, nil
	case <-ctx.Done():
		return q.leave(ctx, m)
	}
}

// wait puts a member at the end of its tenant's line, unless that is full.
func (q *groups) wait(m *appending) bool {
	l := q.lines[m.Session.Tenant]
	if l == nil {
		l = &line{tenant: m.Session.Tenant}
		q.lines[m.Session.Tenant] = l
		q.turns = append(q.turns, l)
	}
	if len(l.waiting) >= maxWaiting {
		return false
	}
	m.ended = make(chan *group, 1)
	l.waiting = append(l.waiting, m)
	return true
}

// leave takes a member out whose caller has gone. What is in a group already is waited for: the one who leads it reads
// the work.
func (q *groups) leave(ctx context.Context, m *appending) (*group, error) {
	q.mu.Lock()
	l := q.lines[m.Session.Tenant]
	if l != nil {
		if at := slices.Index(l.waiting, m); at >= 0 {
			q.take(l, at)
			q.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	group := m.group
	q.mu.Unlock()
	if group != nil {
		group.leave()
	}
	return <-m.ended, nil
}

// take removes a member from a line, and the line if it was the last one.
func (q *groups) take(l *line, at int) *appending {
	m := l.waiting[at]
	l.waiting = slices.Delete(l.waiting, at, at+1)
	if len(l.waiting) == 0 {
		delete(q.lines, l.tenant)
		q.turns = slices.DeleteFunc(q.turns, func(other *line) bool { return other == l })
	}
	return m
}

// start gives a member a slot and a group to lead.
func (q *groups) start(m *appending) *group {
	r := &group{groups: q, members: []*appending{m}}
	q.running++
	q.writing[m.Session] = r
	r.patience = time.AfterFunc(q.limits.patience, r.release)
	return r
}

// startNext gives free slots to those who wait.
func (q *groups) startNext() {
	for q.running < q.limits.slots {
		m := q.next(func(m *appending) bool { return q.writing[m.Session] == nil })
		if m == nil {
			return
		}
		m.ended <- q.start(m)
	}
}

// next takes the first member that fits of the tenant whose turn it is, and puts that tenant behind the others.
func (q *groups) next(fits func(m *appending) bool) *appending {
	for i, l := range q.turns {
		at := slices.IndexFunc(l.waiting, fits)
		if at < 0 {
			continue
		}
		q.turns = append(slices.Delete(q.turns, i, i+1), l)
		return q.take(l, at)
	}
	return nil
}

// group is the appends that one transaction commits. The caller of the first one leads it.
type group struct {
	groups   *groups
	members  []*appending // the leader first
	patience *time.Timer

	stuck bool // it has no slot any more
	ended bool

	living  atomic.Int64 // members whose callers have not gone
	giveUp  context.CancelFunc
	noticed func() bool // stops looking whether the leader has gone
}

// fill takes those into the group who wait and fit, and returns all members, the leader first. The context of a group
// of several ends when those of all its members have ended: nobody's append ends because another caller has gone.
func (r *group) fill(ctx context.Context) (context.Context, []*appending) {
	r.groups.mu.Lock()
	defer r.groups.mu.Unlock()
	q := r.groups
	bytes := r.members[0].params.bytes
	fits := func(m *appending) bool {
		busy := q.writing[m.Session]
		return (busy == nil || busy == r) && bytes+m.params.bytes <= q.limits.bytes
	}
	for !r.stuck && len(r.members) < q.limits.members {
		m := q.next(fits)
		if m == nil {
			break
		}
		bytes += m.params.bytes
		m.group = r
		q.writing[m.Session] = r
		r.members = append(r.members, m)
	}
	if len(r.members) > 1 {
		leader := ctx
		r.living.Store(int64(len(r.members)))
		ctx, r.giveUp = context.WithCancel(context.WithoutCancel(leader))
		r.noticed = context.AfterFunc(leader, r.leave)
	}
	return ctx, slices.Clone(r.members)
}

// leave notices that the caller of a member has gone, and gives the group up if it was the last one.
func (r *group) leave() {
	if r.living.Add(-1) == 0 {
		r.giveUp()
	}
}

// end ends the group, when the fate of all its members is known.
func (r *group) end() {
	r.patience.Stop()
	if r.giveUp != nil {
		r.noticed()
		r.giveUp()
	}
	q := r.groups
	q.mu.Lock()
	defer q.mu.Unlock()
	r.ended = true
	for _, m := range r.members {
		if q.writing[m.Session] == r {
			delete(q.writing, m.Session)
		}
	}
	if !r.stuck {
		q.running--
	}
	q.startNext()
	for _, m := range r.members[1:] {
		m.ended <- nil
	}
}

// release gives the slot of a group that takes too long to another. Those in line for its sessions go alone: they
// would wait for the same lock.
func (r *group) release() {
	q := r.groups
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.ended || r.stuck {
		return
	}
	r.stuck = true
	q.running--
	for _, l := range slices.Clone(q.turns) {
		for _, m := range slices.Clone(l.waiting) {
			if q.writing[m.Session] == r {
				q.take(l, slices.Index(l.waiting, m))
				m.ended <- nil
			}
		}
	}
	q.startNext()
}
