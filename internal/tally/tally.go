// Package tally counts in memory what would cost too much to write at once, and writes it a little later, tenant by
// tenant. Package recall counts reads by it, package ledger usage.
//
// Start at Tally.Add. A process that is killed loses what it has not written; Flush writes it before a process ends.
package tally

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Tally counts values of type V by keys of type K until it has written them. Many goroutines may use it. Its exported
// fields must not change once it is used.
type Tally[K comparable, V any] struct {
	After     time.Duration // from the first count that is not written until it is
	Timeout   time.Duration // of one Write
	Max       int           // keys in memory; counts of others are dropped
	Statement int           // the most keys that one Write takes
	Merge     func(into *V, more V)
	Write     func(ctx context.Context, tenant uuid.UUID, list []Entry[K, V]) error
	Failed    func(tenant uuid.UUID, err error) // a Write; what it had is counted again
	Dropped   func(V)

	mu      sync.Mutex
	pending map[place[K]]*V
	timer   bool // one is set that writes the pending counts

	writing sync.Mutex // held by the one that writes
}

type place[K comparable] struct {
	tenant uuid.UUID
	key    K
}

// Entry is what was counted of one key.
type Entry[K comparable, V any] struct {
	Key   K
	Value V
}

// Add counts more of a tenant's key.
func (t *Tally[K, V]) Add(tenant uuid.UUID, key K, more V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(place[K]{tenant, key}, more)
	if !t.timer {
		t.timer = true
		time.AfterFunc(t.After, t.flushed)
	}
}

// add counts more, unless there are too many keys.
func (t *Tally[K, V]) add(at place[K], more V) {
	known := t.pending[at]
	switch {
	case known != nil:
		t.Merge(known, more)
	case len(t.pending) >= t.Max:
		t.Dropped(more)
	default:
		if t.pending == nil {
			t.pending = map[place[K]]*V{}
		}
		t.pending[at] = &more
	}
}

// Waiting returns how many keys have counts that are not written.
func (t *Tally[K, V]) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}

// flushed writes what is counted when the timer rings.
func (t *Tally[K, V]) flushed() {
	t.mu.Lock()
	t.timer = false
	t.mu.Unlock()
	t.Flush(context.Background())
}

// Flush writes what is counted and waits for that. What cannot be written is kept for the next time.
func (t *Tally[K, V]) Flush(ctx context.Context) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	taken := t.pending
	t.pending = nil
	t.mu.Unlock()
	byTenant := map[uuid.UUID][]Entry[K, V]{}
	for at, value := range taken {
		byTenant[at.tenant] = append(byTenant[at.tenant], Entry[K, V]{at.key, *value})
	}
	for tenant, list := range byTenant {
		for len(list) > 0 {
			n := min(len(list), t.Statement)
			t.write(ctx, tenant, list[:n])
			list = list[n:]
		}
	}
}

// write writes a tenant's counts, or puts them back.
func (t *Tally[K, V]) write(ctx context.Context, tenant uuid.UUID, list []Entry[K, V]) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	err := t.Write(ctx, tenant, list)
	if err == nil {
		return
	}
	t.Failed(tenant, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range list {
		t.add(place[K]{tenant, e.Key}, e.Value)
	}
}
