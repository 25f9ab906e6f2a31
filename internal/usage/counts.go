package usage

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// counts counts values of type V by keys of type K until it has written them. Many goroutines may use it. Its exported
// fields must not change once it is used.
type counts[K comparable, V any] struct {
	After     time.Duration // from the first count that is not written until it is
	Timeout   time.Duration // of one Write
	Max       int           // keys in memory; counts of others are dropped
	Statement int           // the most keys that one Write takes
	Merge     func(into *V, more V)
	Write     func(ctx context.Context, tenant uuid.UUID, list []entry[K, V]) error
	Failed    func(tenant uuid.UUID, err error) // a Write; what it had is counted again
	Dropped   func(V)

	mu      sync.Mutex
	pending map[countOf[K]]*V
	timer   bool // one is set that writes the pending counts

	writing sync.Mutex // held by the one that writes
}

type countOf[K comparable] struct {
	tenant uuid.UUID
	key    K
}

// entry is what was counted of one key.
type entry[K comparable, V any] struct {
	Key   K
	Value V
}

// Add counts more of a tenant's key.
func (t *counts[K, V]) Add(tenant uuid.UUID, key K, more V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(countOf[K]{tenant, key}, more)
	if !t.timer {
		t.timer = true
		time.AfterFunc(t.After, t.flushed)
	}
}

// add counts more, unless there are too many keys.
func (t *counts[K, V]) add(at countOf[K], more V) {
	known := t.pending[at]
	switch {
	case known != nil:
		t.Merge(known, more)
	case len(t.pending) >= t.Max:
		t.Dropped(more)
	default:
		if t.pending == nil {
			t.pending = map[countOf[K]]*V{}
		}
		t.pending[at] = &more
	}
}

// Waiting returns how many keys have counts that are not written.
func (t *counts[K, V]) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}

// flushed writes what is counted when the timer rings.
func (t *counts[K, V]) flushed() {
	t.mu.Lock()
	t.timer = false
	t.mu.Unlock()
	t.Flush(context.Background())
}

// Flush writes what is counted and waits for that. What cannot be written is kept for the next time.
func (t *counts[K, V]) Flush(ctx context.Context) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	taken := t.pending
	t.pending = nil
	t.mu.Unlock()
	byTenant := map[uuid.UUID][]entry[K, V]{}
	for at, value := range taken {
		byTenant[at.tenant] = append(byTenant[at.tenant], entry[K, V]{at.key, *value})
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
func (t *counts[K, V]) write(ctx context.Context, tenant uuid.UUID, list []entry[K, V]) {
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
		t.add(countOf[K]{tenant, e.Key}, e.Value)
	}
}
