package api

import (
	"strings"
	"sync"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// keyLifetime is how long a key is accepted after the database confirmed it, and so how late a revocation can be.
const keyLifetime = 5 * time.Second

// authenticate finds the tenant whose key the request came with. Text that cannot be a key is refused without a
// database read, and every refusal looks the same.
func (s *Server) authenticate(req *request.Request) error {
	tenant, digest, err := session.ParseKey(bearer(req.R.Header["Authorization"]))
	if err != nil {
		return err
	}
	now := time.Now()
	if !s.keys.has(digest, now) {
		if _, err := s.Store.KeyByDigest(req.Ctx, tenant, digest); err != nil {
			return err
		}
		s.keys.add(digest, now)
	}
	req.Tenant, req.KeyDigest = tenant, digest
	return nil
}

// bearer returns the token of an Authorization header, "" if there is not exactly one.
func bearer(header []string) string {
	const scheme = "bearer "
	if len(header) != 1 || len(header[0]) < len(scheme) || !strings.EqualFold(header[0][:len(scheme)], scheme) {
		return ""
	}
	return strings.TrimSpace(header[0][len(scheme):])
}

// keyCache remembers the digests of keys that the database confirmed a moment ago; unknown keys are not remembered.
// A digest covers the whole key, its tenant included, and cannot be aimed at an entry byte by byte.
type keyCache struct {
	mu    sync.RWMutex
	until map[[32]byte]time.Time
}

// maxCachedKeys bounds the memory of the cache to about a megabyte.
const maxCachedKeys = 10_000

func (c *keyCache) has(digest [32]byte, now time.Time) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return now.Before(c.until[digest])
}

// add remembers a key from the time of the database read.
func (c *keyCache) add(digest [32]byte, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil || len(c.until) >= maxCachedKeys {
		c.until = map[[32]byte]time.Time{}
	}
	c.until[digest] = asked.Add(keyLifetime)
}
