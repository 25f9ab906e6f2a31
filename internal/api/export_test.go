package api

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// Codes are all error codes with their statuses.
var Codes = statuses

// ProblemCodes are the other codes of single problems.
var ProblemCodes = problemCodes

// What is tested without a request.
var (
	AcceptsZstd = acceptsZstd
)

// Table lists every route with who may use it.
func (s *Server) Table() []request.Route { return s.public.table }

// Routes lists every route as "METHOD /path".
func (s *Server) Routes() (list []string) {
	for _, r := range s.Table() {
		list = append(list, r.Method+" "+r.Path)
		if r.Method == "GET" {
			list = append(list, "HEAD "+r.Path)
		}
	}
	slices.Sort(list)
	return list
}

// KeyCache is the cache of keys.
type KeyCache = keyCache

// Has and Add are what the cache does.
func (c *keyCache) Has(digest [32]byte, now time.Time) bool {
	_, ok := c.get(digest, now)
	return ok
}

// Add remembers a key.
func (c *keyCache) Add(digest [32]byte, asked time.Time) {
	c.add(digest, session.Caller{}, asked, keyLifetime)
}

// ExpireKeys makes every key be looked up again.
func (s *Server) ExpireKeys() {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	for digest, k := range s.keys.known {
		k.until = time.Time{}
		s.keys.known[digest] = k
	}
}

// ReadQuotas reads a tenant's quotas again, and counts what is stored of it.
func (s *Server) ReadQuotas(tenant uuid.UUID) {
	s.quotas = admit.NewBook(s.Store.Quotas, s.Store.Stored, s.Quotas)
	s.quotas.Account(context.Background(), tenant)
}

// Len returns the number of keys in the cache.
func (c *keyCache) Len() int { return len(c.known) }

// MaxCachedKeys is how many keys the cache may have.
const MaxCachedKeys = maxCachedKeys

// ListForTokens registers a route that would show a tenant's sessions to the holder of a session token.
func ListForTokens(s *Server) {
	s.tenants(session.SessionsRead).orTokens().list("/v1/sessions/all", s.listSessions)
}
