package share

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

const (
	// writersAtOnce is how many writers of one session may hold a connection: while one commits, the next one waits
	// at its lock, so that the lock is never free without need.
	writersAtOnce = 2
	// maxWriters is how many may wait for them.
	maxWriters = 128
	// writerPatience is how long.
	writerPatience = 3 * time.Second
)

// sessions are the sessions that somebody writes to, in parts that do not wait for each other.
type sessions [32]writtenSessions

type writtenSessions struct {
	mu sync.Mutex
	of map[session.Address]*writers

	spare *writers // of a session that nobody writes to any more
}

type writers struct {
	writing int
	waiting []*waiter
}

// Pen is the right to write to a session. The zero value is the right of work that is not divided.
type Pen struct {
	part *writtenSessions
	at   session.Address
}

var seed = maphash.MakeSeed()

func (g *Gate) enterSession(ctx context.Context, at session.Address) (Pen, error) {
	part := &g.sessions[maphash.Comparable(seed, at)%uint64(len(g.sessions))]
	part.mu.Lock()
	w := part.of[at]
	if w == nil {
		if part.of == nil {
			part.of = map[session.Address]*writers{}
		}
		if w, part.spare = part.spare, nil; w == nil {
			w = &writers{}
		}
		part.of[at] = w
	}
	pen := Pen{part, at}
	if w.writing < writersAtOnce {
		w.writing++
		part.mu.Unlock()
		return pen, nil
	}
	if len(w.waiting) >= maxWriters {
		part.mu.Unlock()
		refusedWriters.Inc()
		return Pen{}, session.ErrSessionBusy
	}
	one := g.waiters.get()
	defer g.waiters.put(one)
	w.waiting = append(w.waiting, one)
	part.mu.Unlock()
	return pen, part.wait(ctx, w, one, g.writerPatience)
}

var (
	waitingWriters = waiting.WithLabelValues("session")
	refusedWriters = refused.WithLabelValues("session")
)

func (p *writtenSessions) wait(
	ctx context.Context, w *writers, one *waiter, patience time.Duration,
) error {
	came, err := one.await(ctx, patience, waitingWriters)
	if came {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(w.waiting, one)
	if at < 0 {
		<-one.turn
		return nil // it came at the last moment
	}
	w.waiting = slices.Delete(w.waiting, at, at+1)
	refusedWriters.Inc()
	return cmp.Or(err, session.ErrSessionBusy)
}

// Done gives the turn to who waits for it.
func (p Pen) Done() {
	if p.part == nil {
		return
	}
	p.part.mu.Lock()
	defer p.part.mu.Unlock()
	w := p.part.of[p.at]
	switch {
	case len(w.waiting) > 0:
		w.waiting[0].turn <- struct{}{}
		w.waiting = slices.Delete(w.waiting, 0, 1)
	case w.writing > 1:
		w.writing--
	default:
		w.writing = 0
		p.part.spare = w
		delete(p.part.of, p.at)
	}
}
