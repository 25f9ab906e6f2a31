package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// authenticate finds who sent the request: the holder of a tenant's key, of a session token or of an operator's key.
// Text that can be none is refused without a database read, and every refusal looks the same.
func (s *Server) authenticate(req *request.Request) error {
	text := bearer(req.R.Header["Authorization"])
	if tenant, digest, err := session.ParseToken(text); err == nil {
		// A token is looked up for every request, so that its revocation, its expiry and the end of its session hold
		// at once: an agent sends few.
		ask := func(store *postgres.Store) (found postgres.Authorized, err error) {
			found.Caller, err = store.CallerByToken(req.Ctx, tenant, digest)
			return found, err
		}
		return s.lookUp(req, digest, 0, req.Store, s.Gate, ask)
	}
	if digest, err := session.ParseOperatorKey(text); err == nil && s.Operators != nil {
		return s.believeOrLookUp(req, digest, s.Operators, s.operatorGate,
			func(store *postgres.Store) (postgres.Authorized, error) { return store.OperatorByKey(req.Ctx, digest) })
	}
	tenant, digest, err := session.ParseKey(text)
	if err != nil {
		return err
	}
	req.KeyDigest = digest
	return s.believeOrLookUp(req, digest, req.Store, s.Gate, func(store *postgres.Store) (postgres.Authorized, error) {
		return store.CallerByKey(req.Ctx, tenant, digest)
	})
}

// lookup asks the database whom a key or token lets in.
type lookup func(*postgres.Store) (postgres.Authorized, error)

// believeOrLookUp accepts a key that the database confirmed a moment ago, or asks it.
func (s *Server) believeOrLookUp(
	req *request.Request, digest [32]byte, store *postgres.Store, gate *admit.Connections, ask lookup,
) error {
	if caller, ok := s.keys.get(digest, time.Now()); ok {
		req.Tenant, req.Caller = caller.Tenant, caller
		return nil
	}
	return s.lookUp(req, digest, keyLifetime, store, gate, ask)
}

// actorOf returns who sent a request, as the audit trail names them.
func actorOf(req *request.Request) audit.Actor {
	a := audit.Actor{Kind: audit.ByKey, ID: req.Caller.APIKey, Request: req.ID, Address: req.R.RemoteAddr}
	switch req.Caller.Kind {
	case session.TokenCaller:
		a.Kind, a.ID = audit.ByToken, req.Caller.Token
	case session.OperatorCaller:
		a.Kind = audit.ByOperator
	}
	return a
}

// lookUp asks the database for a key or token, which is then accepted for a lifetime without asking. One that was
// confirmed before is looked up on its tenant's connections. Any other may be invented, as its checksum is public: such
// lookups have connections of their own, and an address that has sent many unknown ones waits.
func (s *Server) lookUp(
	req *request.Request, digest [32]byte, lifetime time.Duration, store *postgres.Store, gate *admit.Connections,
	ask lookup,
) error {
	now := time.Now()
	if !s.keys.knows(digest) {
		store = store.In(postgres.Scope{Gate: gate, Class: admit.Keys})
		if err := s.unknownKeys.admit(req.R.RemoteAddr, digest, now); err != nil {
			return err
		}
	}
	found, err := ask(store)
	switch {
	case err == nil:
		req.Tenant, req.Caller = found.Tenant, found.Caller
		s.keys.add(digest, found.Caller, now, lifetime)
		if found.NoteUse {
			s.noteUse(found.Caller)
		}
	case errors.Is(err, session.ErrUnauthorized):
		s.keys.forget(digest)
		s.unknownKeys.remember(req.R.RemoteAddr, digest, now)
	}
	return err
}

// noteTime bounds how long it may take to note that a key was used.
const noteTime = 10 * time.Second

// noteUse writes beside the request that a key was used. One use at a time is written: of a key that does not get its
// turn, a later use is.
func (s *Server) noteUse(caller session.Caller) {
	if !s.noting.TryLock() {
		return
	}
	go func() {
		defer s.noting.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), noteTime)
		defer cancel()
		var err error
		if caller.Kind == session.OperatorCaller {
			err = s.Operators.NoteOperatorUse(ctx, caller.APIKey)
		} else {
			err = s.Store.In(postgres.Scope{Gate: s.Gate, Class: admit.Bulk}).NoteUse(ctx, caller.Tenant, caller.APIKey)
		}
		if err != nil {
			s.Log.LogAttrs(ctx, slog.LevelDebug, "the use of a key was not noted", slog.String("error", err.Error()))
		}
	}()
}

// bearer returns the token of an Authorization header, "" if there is not exactly one.
func bearer(header []string) string {
	const scheme = "bearer "
	if len(header) != 1 || len(header[0]) < len(scheme) || !strings.EqualFold(header[0][:len(scheme)], scheme) {
		return ""
	}
	return strings.TrimSpace(header[0][len(scheme):])
}

// The codes of callers who may not use a route.
const (
	notAllowed    = "token_not_allowed"
	keyNotAllowed = "key_not_allowed"
	scopeMissing  = "scope_missing"
)

var (
	errKeyOnly = request.Fail(notAllowed, "a session token cannot do this: it takes a key of the tenant")
	errOther   = request.Fail(notAllowed, "the session token is for another session, and reaches that one alone")

	errOperators = request.Fail(keyNotAllowed, "this takes an operator's key (vop_…)")
	errTenants   = request.Fail(keyNotAllowed, "an operator's key reaches the operators' routes alone: this takes a "+
		"key of the tenant (vk_…)")
)

// lacks returns the error of a key that lacks a scope.
func lacks(scope session.Scope) error {
	return &request.Failure{Code: scopeMissing, Scope: scope, Detail: fmt.Sprintf("the key lacks the scope %s: a key "+
		"with the scope admin makes one that has it (POST /v1/keys)", scope)}
}

// suspended returns the error of a tenant some of whose requests are refused.
func suspended(what session.Suspension) error {
	return request.Fail("tenant_suspended", "the operator has suspended the tenant, and refuses %s: nothing was done",
		map[session.Suspension]string{
			session.SuspendReads: "what reads", session.SuspendWrites: "what does more than read",
			session.SuspendAll: "all requests",
		}[what])
}

// authorize reports whether the caller may use a route. It looks at no session, so that its answer tells nothing about
// one.
func authorize(req *request.Request, route *request.Route) error {
	caller := &req.Caller
	missing := caller.Lacks(route.Scopes...)
	switch {
	case caller.Suspended.Refuses(route.Reads()):
		return suspended(caller.Suspended)
	case route.Kind == session.OperatorCaller && caller.Kind != session.OperatorCaller:
		return errOperators
	case route.Kind != session.OperatorCaller && caller.Kind == session.OperatorCaller:
		return errTenants
	case caller.Bound() && !route.Tokens:
		return errKeyOnly
	case caller.Bound() && route.OfSession() && req.Address().ID != caller.Session:
		return errOther
	case caller.Bound() && missing != "":
		return request.Fail(notAllowed, "the session token may not do this: it needs the scope %s", missing)
	case missing != "":
		return lacks(missing)
	}
	return nil
}
