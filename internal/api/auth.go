package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/share"
)

// authenticate finds who sent the request: the holder of a tenant's key or of a session token. Text that cannot be
// either is refused without a database read, and every refusal looks the same.
func (s *Server) authenticate(req *request.Request) error {
	text := bearer(req.R.Header["Authorization"])
	if tenant, digest, err := session.ParseToken(text); err == nil {
		// A token is looked up for every request, so that its revocation, its expiry and the end of its session hold
		// at once: an agent sends few.
		return s.lookUp(req, digest, 0, func(ctx context.Context) (err error) {
			req.Caller, err = s.Store.CallerByToken(ctx, tenant, digest)
			req.Tenant = req.Caller.Tenant
			return err
		})
	}
	tenant, digest, err := session.ParseKey(text)
	if err != nil {
		return err
	}
	if !s.keys.has(digest, time.Now()) {
		err := s.lookUp(req, digest, keyLifetime, func(ctx context.Context) error {
			_, err := s.Store.KeyByDigest(ctx, tenant, digest)
			return err
		})
		if err != nil {
			return err
		}
	}
	req.Tenant, req.KeyDigest = tenant, digest
	req.Caller = session.Caller{Tenant: tenant}
	return nil
}

// actorOf returns who sent a request, as the audit trail names them.
func actorOf(req *request.Request) audit.Actor {
	a := audit.Actor{Kind: audit.ByKey, Key: req.KeyDigest, Request: req.ID, Address: req.R.RemoteAddr}
	if req.Caller.Bound() {
		a.Kind, a.ID = audit.ByToken, req.Caller.Token
	}
	return a
}

// lookUp asks the database for a key or token, which is then accepted for a lifetime without asking. One that was
// confirmed before is looked up on its tenant's connections. Any other may be invented, as its checksum is public: such
// lookups have connections of their own, and an address that has sent many unknown ones waits.
func (s *Server) lookUp(
	req *request.Request, digest [32]byte, lifetime time.Duration, ask func(ctx context.Context) error,
) error {
	now, ctx := time.Now(), req.Ctx
	if !s.keys.knows(digest) {
		ctx = share.With(ctx, s.Gate, share.Keys)
		if err := s.strangers.admit(req.R.RemoteAddr, digest, now); err != nil {
			return err
		}
	}
	err := ask(ctx)
	switch {
	case err == nil:
		s.keys.add(digest, now, lifetime)
	case errors.Is(err, session.ErrUnauthorized):
		s.keys.forget(digest)
		s.strangers.remember(req.R.RemoteAddr, digest, now)
	}
	return err
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
