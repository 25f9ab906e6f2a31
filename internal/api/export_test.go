package api

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/quota"
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

// Routes lists every route as "METHOD /path".
func (s *Server) Routes() (list []string) {
	for _, r := range s.echo.Routes() {
		if r.Method != "echo_route_not_found" {
			list = append(list, r.Method+" "+r.Path)
		}
	}
	slices.Sort(list)
	return list
}

// KeyCache is the cache of keys.
type KeyCache = keyCache

// Has and Add are what the cache does.
func (c *keyCache) Has(digest [32]byte, now time.Time) bool { return c.has(digest, now) }

// Add remembers a key.
func (c *keyCache) Add(digest [32]byte, asked time.Time) { c.add(digest, asked, keyLifetime) }

// ExpireKeys makes every key be looked up again.
func (s *Server) ExpireKeys() {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	for digest := range s.keys.until {
		s.keys.until[digest] = time.Time{}
	}
}

// ReadQuotas reads a tenant's quotas again, and counts what is stored of it.
func (s *Server) ReadQuotas(tenant uuid.UUID) {
	s.quotas = quota.NewBook(s.Store, s.Quotas)
	s.quotas.Account(context.Background(), tenant)
}

// Len returns the number of keys in the cache.
func (c *keyCache) Len() int { return len(c.until) }

// MaxCachedKeys is how many keys the cache may have.
const MaxCachedKeys = maxCachedKeys

// ListForTokens registers a route that would show a tenant's sessions to the holder of a session token.
func ListForTokens(s *Server) { door{s, session.ScopeRead}.list("/v1/sessions/all", s.listSessions) }
