package api

import (
	"strings"
	"sync"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/share"
)

// keyLifetime is how long a key is accepted after the database confirmed it, and so how late a revocation can be.
const keyLifetime = 5 * time.Second

// authenticate finds who sent the request: the holder of a tenant's key or of a session token. Text that cannot be
// either is refused without a database read, and every refusal looks the same.
func (s *Server) authenticate(req *request.Request) error {
	text := bearer(req.R.Header["Authorization"])
	if tenant, digest, err := session.ParseToken(text); err == nil {
		// A token is looked up for every request, so that its revocation, its expiry and the end of its session hold
		// at once: an agent sends few.
		ctx := share.With(req.Ctx, s.Gate, share.Keys)
		req.Caller, err = s.Store.CallerByToken(ctx, tenant, digest)
		req.Tenant = req.Caller.Tenant
		return err
	}
	tenant, digest, err := session.ParseKey(text)
	if err != nil {
		return err
	}
	now := time.Now()
	if !s.keys.has(digest, now) {
		ctx := share.With(req.Ctx, s.Gate, share.Keys)
		if _, err := s.Store.KeyByDigest(ctx, tenant, digest); err != nil {
			return err
		}
		s.keys.add(digest, now)
	}
	req.Tenant, req.KeyDigest = tenant, digest
	req.Caller = session.Caller{Tenant: tenant}
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

// keyOnly is the access of routes that take a tenant's key and no session token.
const keyOnly session.Scope = ""

const notAllowed = "token_not_allowed"

var (
	errKeyOnly = request.Fail(notAllowed, "a session token cannot do this: it takes a key of the tenant")
	errOther   = request.Fail(notAllowed, "the session token is for another session, and reaches that one alone")
)

// admit reports whether the caller may use a route. It looks at no session, so that its answer tells nothing about one.
func admit(req *request.Request, access session.Scope, ofSession bool) error {
	caller := &req.Caller
	switch {
	case !caller.Bound():
		return nil
	case access == keyOnly:
		return errKeyOnly
	case ofSession && req.Address().ID != caller.Session:
		return errOther
	case !caller.May(access):
		return request.Fail(notAllowed, "the session token may not do this: it needs the scope %s", access)
	}
	return nil
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
