package admit

import (
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// Class is a kind of work that has database connections of its own.
type Class int

// The classes. Interactive is appends, views and small reads; Bulk is lists, exports, previews and what an operator
// asks; Keys looks up keys of which nobody knows yet whose they are.
const (
	Interactive Class = iota
	Bulk
	Keys
	classes
)

func (c Class) String() string { return [classes]string{"interactive", "bulk", "keys"}[c] }

// How long work of a class waits for a connection.
var patience = [classes]time.Duration{2 * time.Second, 5 * time.Second, time.Second}

// Of the writers of a session, two may hold a connection: while one commits, the next one waits at the session's lock,
// so that the lock is never free without need. The others wait without a connection.
const (
	writersAtOnce  = 2
	maxWriters     = 128
	writerPatience = 3 * time.Second
)

// Connections divides the connections of a pool among classes of work and their tenants, and has the writers of one
// session wait for each other. Make it with NewConnections. A nil value divides nothing.
type Connections struct {
	gates   [classes]*Gate
	writers [32]*gate[session.Address] // by the session, so that few writers share a lock
}

// Pen is the right to write to a session.
type Pen = turn[session.Address]

// NewConnections returns the gates of a pool of this many connections. A sixteenth is for keys and a quarter for bulk
// work, at least one each. Work waits for its turn as long as wait, or with 0 as long as its class does.
func NewConnections(size int, wait time.Duration) *Connections {
	c := &Connections{}
	keys, bulk := max(1, size/16), max(1, size/4)
	for class, n := range [classes]int{Interactive: max(1, size-keys-bulk), Bulk: bulk, Keys: keys} {
		busy := session.ErrTenantBusy
		if Class(class) == Keys {
			busy = nil
		}
		c.gates[class] = New(Config{
			Name: Class(class).String(), Size: int64(n), Patience: cmp.Or(wait, patience[class]), Busy: busy,
		})
	}
	for i := range c.writers {
		c.writers[i] = newGate[session.Address](Config{
			Name: "session", Size: math.MaxInt64, Each: writersAtOnce, Patience: cmp.Or(wait, writerPatience),
			Waiting: maxWriters, Busy: session.ErrSessionBusy,
		})
	}
	return c
}

// Size returns how many connections a class has, and how many of them one tenant can hold.
func (c *Connections) Size(class Class) (all, tenant int) {
	all = int(c.gates[class].config.Size)
	for tenant < all && tenant+1 <= 2*(all-tenant) {
		tenant++
	}
	return all, tenant
}

// Acquire waits until a tenant may take one more connection for work of a class. The caller ends the turn when it has
// given the connection back.
//
// Errors: ErrTenantBusy if the tenant's own work fills its share, ErrOverCapacity if that of others does.
func (c *Connections) Acquire(ctx context.Context, class Class, tenant uuid.UUID) (Turn, error) {
	if c == nil {
		return Turn{}, nil
	}
	if class == Keys {
		tenant = uuid.Nil // who sends an invented key can choose the tenant
	}
	return c.gates[class].Acquire(ctx, tenant, 1)
}

var seed = maphash.MakeSeed()

// Write waits for a turn to write to a session.
//
// Errors: ErrSessionBusy.
func (c *Connections) Write(ctx context.Context, at session.Address) (Pen, error) {
	if c == nil {
		return Pen{}, nil
	}
	return c.writers[maphash.Comparable(seed, at)%uint64(len(c.writers))].Acquire(ctx, at, 1)
}
