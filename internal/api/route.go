package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// handler answers one request.
type handler func(*request.Request) error

// routeGroup registers the routes that callers of one kind with some scopes may use: every route is in one, and so
// says who may use it.
type routeGroup struct {
	s *Server
	request.Access
}

// tenants returns the group of routes for the tenant's keys with some scopes.
func (s *Server) tenants(scopes ...session.Scope) routeGroup {
	return routeGroup{s, request.Tenants(scopes...)}
}

// orTokens returns the same group for session tokens, too.
func (g routeGroup) orTokens() routeGroup {
	g.Tokens = true
	return g
}

// ownKeys returns the same group for handlers that store Idempotency-Keys themselves.
func (g routeGroup) ownKeys() routeGroup {
	g.OwnKeys = true
	return g
}

// The methods below register routes as those of request.Access make them.

func (g routeGroup) post(path string, h handler, query ...string) { g.s.add(g.Post(path, h, query...)) }
func (g routeGroup) put(path string, h handler, query ...string)  { g.s.add(g.Put(path, h, query...)) }
func (g routeGroup) patch(path string, h handler, query ...string) {
	g.s.add(g.Patch(path, h, query...))
}
func (g routeGroup) delete(path string, h handler, query ...string) {
	g.s.add(g.Delete(path, h, query...))
}
func (g routeGroup) do(path string, h handler, query ...string)  { g.s.add(g.Do(path, h, query...)) }
func (g routeGroup) ask(path string, h handler, query ...string) { g.s.add(g.Ask(path, h, query...)) }
func (g routeGroup) show(path string, h handler)                 { g.s.add(g.Show(path, h)) }
func (g routeGroup) get(path string, h handler, query ...string) { g.s.add(g.Get(path, h, query...)) }
func (g routeGroup) list(path string, h handler)                 { g.s.add(g.List(path, h)) }

// sessionless are the routes that take session tokens although their paths name no session: their handlers go by the
// caller's.
var sessionless = []string{"/mcp", "/v1/tools"}

// add registers a route.
func (s *Server) add(r request.Route) {
	if r.Tokens && !strings.HasPrefix(r.Path, "/v1/sessions/:id") && !slices.Contains(sessionless, r.Path) {
		panic(r.Path + " takes session tokens, but is not a session's") // it would open the tenant to an agent
	}
	s.handle(r, s.authorized(r))
}

// open registers a route that needs no key.
func (s *Server) open(path string, h handler) {
	s.handle(request.Route{Method: "GET", Path: path}, func(c echo.Context) error { return h(&c.(*routed).req) })
}

// openAI registers a route of OpenAI's API.
func (s *Server) openAI(needs session.Scope, method, path string, h func(*request.Request) error, query ...string) {
	access := request.Tenants(needs).WithOwnKeys()
	route := access.Get(path, h)
	switch method {
	case http.MethodPost:
		route = access.Post(path, h)
	case http.MethodDelete:
		route = access.Delete(path, h)
	}
	route.Query = query
	dialect := s.authorized(route)
	s.handle(route, func(c echo.Context) error {
		c.(*routed).req.OpenAI = true
		return dialect(c)
	})
}

// handle registers a route, whose requests take database connections of its class, on the fronts that have it.
func (s *Server) handle(r request.Route, h echo.HandlerFunc) {
	gate, class := s.Gate, classOf(r)
	if r.Kind == session.OperatorCaller {
		gate = s.operatorGate
	}
	store := s.Store.In(postgres.Scope{Gate: gate, Class: class})
	if r.Kind == session.OperatorCaller {
		store = s.Operators // so that all that the request does is one transaction
	}
	shared := func(c echo.Context) error {
		req := &c.(*routed).req
		req.Store = store
		req.Base = audit.With(req.Base, &req.Actor)
		req.Ctx = req.Base
		return h(c)
	}
	for _, f := range s.frontsOf(r) {
		f.table = append(f.table, r)
		f.echo.Add(r.Method, r.Path, shared)
		if r.Method == http.MethodGet {
			f.echo.HEAD(r.Path, shared)
		}
	}
}

// prompt are the reads that an agent waits for before its next step. All others may read much.
var prompt = []string{
	"/v1/sessions/:id", "/v1/sessions/:id/context", "/v1/sessions/:id/messages", "/v1/sessions/:id/results/:ref",
	"/v1/conversations/:id", "/v1/conversations/:id/items", "/v1/conversations/:id/items/:item", "/v1/key", "/v1/tools",
}

// bulk are the ends of other routes whose requests read or write much, or rarely matter to an agent's next step.
var bulk = []string{"/preview", "/v1/compact", "/tokens", "/fork"}

// classOf returns the class of a route. Bulk work has connections of its own, so that appends and views do not wait for
// it.
func classOf(r request.Route) admit.Class {
	isBulk := func(end string) bool { return strings.HasSuffix(r.Path, end) }
	switch {
	case strings.HasPrefix(r.Path, "/v1/admin/"), slices.ContainsFunc(bulk, isBulk):
		return admit.Bulk
	case r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/v1/") && !slices.Contains(prompt, r.Path):
		return admit.Bulk
	}
	return admit.Interactive
}

// routed carries a request through Echo.
type routed struct {
	echo.Context
	req request.Request
}

// requestTimeout bounds how long one request may wait for the database.
const requestTimeout = 30 * time.Second

// authorized runs h for a caller who may use the route, with a request in whose path, query and body nothing is wrong
// that shows without the handler.
func (s *Server) authorized(route request.Route) echo.HandlerFunc {
	part := partOf(route)
	return func(c echo.Context) error {
		req := &c.(*routed).req
		ctx, cancel := context.WithTimeout(req.Ctx, requestTimeout)
		defer cancel()
		req.Ctx = ctx
		if err := s.authenticate(req); err != nil {
			return err
		}
		req.Actor = actorOf(req)
		if err := authorize(req, &route); err != nil {
			return err
		}
		if err := s.enterTenant(req, &route); err != nil {
			return err
		}
		req.Query(route.Query...)
		if route.OfSession() {
			req.Address()
		}
		if err := s.charge(req, route.Path); err != nil {
			return err
		}
		part.read(req)
		route.Read(req)
		sent := func() bool { return c.Response().Committed }
		req.Begun = sent
		handle := func() error { return once(req, &route) }
		err := req.Err()
		if err == nil {
			err = s.orThawed(req, &route, handle(), sent, handle)
		}
		if err == nil && route.OfSession() && req.R.Method != http.MethodGet && req.R.Method != http.MethodHead {
			s.usage.Changed(req.Address())
		}
		if part.missing != nil && errors.Is(err, session.ErrNotFound) {
			return part.missing
		}
		return err
	}
}

// part is what a path names beside a session, or instead of one.
type part struct {
	read    func(*request.Request)
	missing error // what its absence is called
}

// parts lists them by the parameter of the path.
var parts = map[string]part{
	":run":     {func(req *request.Request) { req.PathID("run") }, errNoRun},
	":erasure": {func(req *request.Request) { req.PathID("erasure") }, errNoErasure},
	":key":     {func(req *request.Request) { req.PathID("key") }, errNoKey},
	":token":   {func(req *request.Request) { req.PathID("token") }, errNoToken},
	":message": {func(req *request.Request) { clientIDOf(req) }, errNoMessage},
	":n":       {func(req *request.Request) { checkpointOf(req) }, errNoCheckpoint},
}

func partOf(route request.Route) part {
	if route.Part != "" {
		return part{func(req *request.Request) { req.PathID(route.Part) }, route.Missing}
	}
	for step := range strings.SplitSeq(route.Path, "/") {
		if p, ok := parts[step]; ok {
			return p
		}
	}
	return part{read: request.ReadNothing}
}
