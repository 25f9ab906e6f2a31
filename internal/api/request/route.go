package request

import (
	"net/http"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// Route is a route: who may use it, what is read of a request before its handler runs, and the handler.
type Route struct {
	Method, Path string
	Access

	Query  []string             // the parameters that it knows
	Read   func(*Request)       // the body; what is wrong with it is kept for Err
	Handle func(*Request) error // runs if nothing is wrong

	Keys KeyUse // what an Idempotency-Key does

	Part    string // the parameter of the path that is the id of what the request is about; "" for none
	Missing error  // what its absence is called; nil is session.ErrNotFound
}

// KeyUse is what an Idempotency-Key does on a route.
type KeyUse int

// What an Idempotency-Key does.
const (
	KeyIdle    KeyUse = iota // nothing: the route changes nothing
	KeyOnce                  // the answer is stored in the transaction around the handler
	KeyOwn                   // the handler stores it in a transaction of its own
	KeyRefused               // the answer has a secret, which is not stored: a request with a key is refused
)

// Access is who may use a route. Its methods make routes: with a document as the body (Post, Put, Patch), without one
// (Do, Delete), with one but without effect (Ask), and with one and a secret in the answer (Show). The handler of Feed
// reads the body itself.
type Access struct {
	Kind    session.CallerKind // who may use it beside holders of tokens; "" for everybody
	Scopes  []session.Scope    // all of which the caller needs
	Tokens  bool               // session tokens with the scopes may use it, too
	OwnKeys bool               // its routes that change something are KeyOwn, not KeyOnce
}

// Tenants returns access for the tenant's keys with some scopes.
func Tenants(scopes ...session.Scope) Access {
	return Access{Kind: session.TenantCaller, Scopes: scopes}
}

// WithOwnKeys returns the same access for handlers that wait, or need more than one transaction.
func (a Access) WithOwnKeys() Access {
	a.OwnKeys = true
	return a
}

// changing returns a route that changes something.
func (a Access) changing(method, path string, read func(*Request), h func(*Request) error, query []string) Route {
	keys := KeyOnce
	if a.OwnKeys {
		keys = KeyOwn
	}
	return Route{Method: method, Path: path, Access: a, Read: read, Handle: h, Query: query, Keys: keys}
}

// Post returns a route.
func (a Access) Post(path string, h func(*Request) error, query ...string) Route {
	return a.changing(http.MethodPost, path, readDocument, h, query)
}

// Put returns a route.
func (a Access) Put(path string, h func(*Request) error, query ...string) Route {
	return a.changing(http.MethodPut, path, readDocument, h, query)
}

// Patch returns a route.
func (a Access) Patch(path string, h func(*Request) error, query ...string) Route {
	return a.changing(http.MethodPatch, path, readDocument, h, query)
}

// Delete returns a route.
func (a Access) Delete(path string, h func(*Request) error, query ...string) Route {
	return a.changing(http.MethodDelete, path, readCommand, h, query)
}

// Do returns a route.
func (a Access) Do(path string, h func(*Request) error, query ...string) Route {
	return a.changing(http.MethodPost, path, readCommand, h, query)
}

// Ask returns a route.
func (a Access) Ask(path string, h func(*Request) error, query ...string) Route {
	read := func(req *Request) { req.Body() }
	return Route{Method: http.MethodPost, Path: path, Access: a, Read: read, Handle: h, Query: query}
}

// Show returns a route.
func (a Access) Show(path string, h func(*Request) error) Route {
	show := a.Ask(path, h)
	show.Keys = KeyRefused
	return show
}

// Feed returns a route.
func (a Access) Feed(path string, h func(*Request) error, query ...string) Route {
	read := func(req *Request) { req.Idempotency() } // without a fingerprint of the body
	return Route{Method: http.MethodPost, Path: path, Access: a, Read: read, Handle: h, Query: query, Keys: KeyOwn}
}

// Get returns a route.
func (a Access) Get(path string, h func(*Request) error, query ...string) Route {
	return Route{Method: http.MethodGet, Path: path, Access: a, Read: ReadNothing, Handle: h, Query: query}
}

// List returns a route that answers with a page of a list.
func (a Access) List(path string, h func(*Request) error) Route { return a.Get(path, h, ListQuery...) }

func readDocument(req *Request) { req.Body(); req.Idempotency() }
func readCommand(req *Request)  { req.EmptyBody(); req.Idempotency() }

// ReadNothing leaves a request without a body as it is.
func ReadNothing(*Request) {}

// About returns the route of a path with an id; missing is the error if nothing has that id.
func (r Route) About(part string, missing error) Route {
	r.Part, r.Missing = part, missing
	return r
}

// OfSession reports whether the path names a session.
func (r *Route) OfSession() bool { return strings.Contains(r.Path, "/:id") }

// OfTenant reports whether the path names a tenant, as routes of operators do.
func (r *Route) OfTenant() bool { return strings.Contains(r.Path, "/:tenant") }

// Reads reports whether requests of the route change nothing.
func (r *Route) Reads() bool {
	return r.Method == http.MethodGet || r.Path == "/mcp" || strings.HasSuffix(r.Path, "/tools/:tool")
}
