// Package together lets work that arrives at the same time be done in one go: a round. The appends of a process commit
// so.
//
// Start at Queue.Enter. There is no timer that work waits for: what finds a free slot leads a round at once. What
// arrives while all slots are taken waits in line, and the next free slot takes several. Who leads a round does the
// work of all of its members; the package only says who they are. Tenants take turns, and two rounds never have work of
// one session at the same time.
package together

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// maxWaiting is how many works of a tenant wait in line. The others are not held up by it: they are done alone.
const maxWaiting = 256

// Config says how work is put together.
type Config struct {
	Slots   int   // rounds at a time
	Members int   // of a round
	Bytes   int64 // of a round of several members
	// Patience is how long a round keeps its slot. One that takes longer is held up by somebody else's lock, say, and
	// must not hold up those in line.
	Patience time.Duration
}

// Queue puts work together. Make it with New.
type Queue[T any] struct {
	config Config

	mu      sync.Mutex
	running int                           // rounds that have a slot
	rounds  map[session.Address]*Round[T] // by the sessions that they write to
	lines   map[uuid.UUID]*line[T]        // of tenants that wait
	turns   []*line[T]                    // the same, the one whose turn is next first
}

// line is the work of a tenant that waits.
type line[T any] struct {
	tenant  uuid.UUID
	waiting []*member[T]
}

// member is one work.
type member[T any] struct {
	at    session.Address
	bytes int64
	work  T
	round *Round[T]      // that does it; nil while it waits
	ended chan *Round[T] // gets the round that it shall lead, or nil if there is nothing to wait for any more
}

// New returns a queue.
func New[T any](config Config) *Queue[T] {
	return &Queue[T]{config: config, rounds: map[session.Address]*Round[T]{}, lines: map[uuid.UUID]*line[T]{}}
}

// Load returns how many rounds have a slot, and how many works wait in line.
func (q *Queue[T]) Load() (rounds, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lines {
		waiting += len(l.waiting)
	}
	return q.running, waiting
}

// Enter waits until a caller has something to do. It returns a round that the caller leads, or none: then a round that
// another leads has ended that the work was in, or the work is better done alone. The error is that of ctx, if it ended
// before the work was in a round.
func (q *Queue[T]) Enter(ctx context.Context, at session.Address, bytes int64, work T) (*Round[T], error) {
	m := &member[T]{at: at, bytes: bytes, work: work}
	q.mu.Lock()
	busy := q.rounds[at]
	if busy == nil && q.running < q.config.Slots {
		defer q.mu.Unlock()
		return q.start(m), nil
	}
	if busy != nil && busy.stuck || !q.wait(m) {
		q.mu.Unlock()
		return nil, nil
	}
	q.mu.Unlock()
	select {
	case round := <-m.ended:
		return round, nil
	case <-ctx.Done():
		return q.leave(ctx, m)
	}
}

// wait puts a member at the end of its tenant's line, unless that is full.
func (q *Queue[T]) wait(m *member[T]) bool {
	l := q.lines[m.at.Tenant]
	if l == nil {
		l = &line[T]{tenant: m.at.Tenant}
		q.lines[m.at.Tenant] = l
		q.turns = append(q.turns, l)
	}
	if len(l.waiting) >= maxWaiting {
		return false
	}
	m.ended = make(chan *Round[T], 1)
	l.waiting = append(l.waiting, m)
	return true
}

// leave takes a member out whose caller has gone. What is in a round already is waited for: the one who leads it reads
// the work.
func (q *Queue[T]) leave(ctx context.Context, m *member[T]) (*Round[T], error) {
	q.mu.Lock()
	l := q.lines[m.at.Tenant]
	if l != nil {
		if at := slices.Index(l.waiting, m); at >= 0 {
			q.take(l, at)
			q.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	round := m.round
	q.mu.Unlock()
	if round != nil {
		round.leave()
	}
	return <-m.ended, nil
}

// take removes a member from a line, and the line if it was the last one.
func (q *Queue[T]) take(l *line[T], at int) *member[T] {
	m := l.waiting[at]
	l.waiting = slices.Delete(l.waiting, at, at+1)
	if len(l.waiting) == 0 {
		delete(q.lines, l.tenant)
		q.turns = slices.DeleteFunc(q.turns, func(other *line[T]) bool { return other == l })
	}
	return m
}

// start gives a member a slot and a round to lead.
func (q *Queue[T]) start(m *member[T]) *Round[T] {
	r := &Round[T]{queue: q, members: []*member[T]{m}}
	q.running++
	q.rounds[m.at] = r
	r.patience = time.AfterFunc(q.config.Patience, r.release)
	return r
}

// startNext gives free slots to those who wait.
func (q *Queue[T]) startNext() {
	for q.running < q.config.Slots {
		m := q.next(func(m *member[T]) bool { return q.rounds[m.at] == nil })
		if m == nil {
			return
		}
		m.ended <- q.start(m)
	}
}

// next takes the first member that fits of the tenant whose turn it is, and puts that tenant behind the others.
func (q *Queue[T]) next(fits func(m *member[T]) bool) *member[T] {
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
