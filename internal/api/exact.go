package api

import (
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// countExactly counts an append's messages by the tokenizer that the session's policy names, if that is an exact one. A
// usage says more than the count, and for tenants that have no such policy, which is nearly all, nothing is looked up.
func (s *Server) countExactly(req *request.Request, a *session.Append) error {
	if a.Usage != nil {
		return nil
	}
	if exact, err := s.countsExactly(req); err != nil || !exact {
		return err
	}
	tokenizer, err := s.Store.Tokenizer(req.Ctx, a.Session)
	if errors.Is(err, session.ErrNotFound) || err == nil && tokenizer == estimated {
		return nil
	}
	if err != nil {
		return err
	}
	var total int64
	for i := range a.Messages {
		found, err := wire.Count(a.Format, a.Messages[i].Body, func(text string) (int, error) { return tokens.Count(tokenizer, text) })
		if err != nil {
			return err
		}
		total += int64(found.Tokens)
	}
	a.ExactTokens = &total
	return nil
}

// countsExactly reports whether a policy of the caller's tenant names an exact tokenizer.
func (s *Server) countsExactly(req *request.Request) (bool, error) {
	now := time.Now()
	if exact, known := s.exact.of(req.Tenant, now); known {
		return exact, nil
	}
	exact, err := s.Store.CountsExactly(req.Ctx, req.Tenant)
	if err == nil {
		s.exact.add(req.Tenant, exact, now)
	}
	return exact, err
}

// exactLifetime is how late the first policy of a tenant that names an exact tokenizer may be noticed.
const exactLifetime = 5 * time.Second

// exactCache remembers which tenants have a policy that names an exact tokenizer.
type exactCache struct {
	mu      sync.RWMutex
	tenants map[uuid.UUID]exactEntry
}

type exactEntry struct {
	exact bool
	until time.Time
}

// maxCachedTenants bounds the memory of the cache to about a megabyte.
const maxCachedTenants = 10_000

func (c *exactCache) of(tenant uuid.UUID, now time.Time) (exact, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.tenants[tenant]
	return e.exact, now.Before(e.until)
}

func (c *exactCache) add(tenant uuid.UUID, exact bool, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenants == nil || len(c.tenants) >= maxCachedTenants {
		c.tenants = map[uuid.UUID]exactEntry{}
	}
	c.tenants[tenant] = exactEntry{exact: exact, until: asked.Add(exactLifetime)}
}
