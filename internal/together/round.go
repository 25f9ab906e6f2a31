package together

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// Round is work that is done in one go by the caller who leads it.
type Round[T any] struct {
	queue    *Queue[T]
	members  []*member[T] // the one who leads it first
	patience *time.Timer

	stuck bool // it has no slot any more
	ended bool

	living  atomic.Int64 // members whose callers have not gone
	giveUp  context.CancelFunc
	noticed func() bool // stops looking whether the caller who leads it has gone
}

// Board takes those into the round who wait and fit, and returns the work of all, that of the one who leads it first.
// The context of a round of several ends when those of all of them have ended: no caller's end is another's.
func (r *Round[T]) Board(ctx context.Context) (context.Context, []T) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	r.fill()
	if len(r.members) > 1 {
		leader := ctx
		r.living.Store(int64(len(r.members)))
		ctx, r.giveUp = context.WithCancel(context.WithoutCancel(leader))
		r.noticed = context.AfterFunc(leader, r.leave)
	}
	work := make([]T, len(r.members))
	for i, m := range r.members {
		work[i] = m.work
	}
	return ctx, work
}

func (r *Round[T]) fill() {
	q := r.queue
	bytes := r.members[0].bytes
	fits := func(m *member[T]) bool {
		busy := q.rounds[m.at]
		return (busy == nil || busy == r) && bytes+m.bytes <= q.config.Bytes
	}
	for !r.stuck && len(r.members) < q.config.Members {
		m := q.next(fits)
		if m == nil {
			return
		}
		bytes += m.bytes
		m.round = r
		q.rounds[m.at] = r
		r.members = append(r.members, m)
	}
}

// leave notices that the caller of a member has gone, and gives the round up if it was the last one.
func (r *Round[T]) leave() {
	if r.living.Add(-1) == 0 {
		r.giveUp()
	}
}

// End ends the round. It must be called when the work of all members is decided, or left undone.
func (r *Round[T]) End() {
	r.patience.Stop()
	if r.giveUp != nil {
		r.noticed()
		r.giveUp()
	}
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	r.ended = true
	for _, m := range r.members {
		if q.rounds[m.at] == r {
			delete(q.rounds, m.at)
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

// release gives the slot of a round that takes too long to another. Those in line for its sessions go alone: they
// would wait for the same, and whoever does that is counted by package share.
func (r *Round[T]) release() {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.ended || r.stuck {
		return
	}
	r.stuck = true
	q.running--
	for _, l := range slices.Clone(q.turns) {
		for _, m := range slices.Clone(l.waiting) {
			if q.rounds[m.at] == r {
				q.take(l, slices.Index(l.waiting, m))
				m.ended <- nil
			}
		}
	}
	q.startNext()
}
