package postgres

import (
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/varve-dev/varve/internal/session"
)

// writes remembers when this process last wrote to a session and to a tenant, so that who wrote reads what was written.
// What it forgets counts as written to by everybody.
type writes struct {
	mu       *sync.Mutex
	sessions *lru.Cache[session.Address, time.Time]
	tenants  *lru.Cache[uuid.UUID, tenantWrites]
	floor    *time.Time
}

// tenantWrites is when a tenant was written to: at all, and beside its single sessions.
type tenantWrites struct{ any, wide time.Time }

// How many sessions and tenants are remembered: those of the last moments are enough, because a standby that is asked
// has soon passed all that was written before.
const (
	rememberedSessions = 16_384
	rememberedTenants  = 4_096
)

func newWrites() writes {
	w := writes{mu: &sync.Mutex{}, floor: new(time.Time)}
	forget := func(t time.Time) {
		if t.After(*w.floor) {
			*w.floor = t
		}
	}
	// Their only error is a size of 0.
	w.sessions, _ = lru.NewWithEvict(rememberedSessions, func(_ session.Address, t time.Time) { forget(t) })
	w.tenants, _ = lru.NewWithEvict(rememberedTenants, func(_ uuid.UUID, t tenantWrites) { forget(t.any) })
	return w
}

// note remembers a write to a session or, without an id, to anything of a tenant. No tenant is all of them.
func (w *writes) note(at session.Address) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if at.Tenant == uuid.Nil {
		*w.floor = now
		return
	}
	of, _ := w.tenants.Get(at.Tenant)
	of.any = now
	if at.ID == "" {
		of.wide = now
	} else {
		w.sessions.Add(at, now)
	}
	w.tenants.Add(at.Tenant, of)
}

// last returns when what a read of a session or, without an id, of anything of a tenant shows was last written.
func (w *writes) last(at session.Address) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := *w.floor
	of, _ := w.tenants.Get(at.Tenant)
	written := of.any
	if at.ID != "" {
		written, _ = w.sessions.Get(at)
		if of.wide.After(written) {
			written = of.wide
		}
	}
	if written.After(last) {
		last = written
	}
	return last
}

// Wrote notes that a request of this process may have written to a session or, without an id, to anything of a tenant,
// or, without a tenant, of all of them. Later reads of it that Reading is asked for show that.
func (s *Store) Wrote(at session.Address) {
	if s.standby != nil {
		s.standby.wrote.note(at)
	}
}
