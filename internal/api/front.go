package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// front is what one address answers.
type front struct {
	echo  *echo.Echo
	table []request.Route
	site  http.Handler // nil: it has none
	home  string       // where / leads
}

func (s *Server) newFront() *front {
	f := &front{echo: echo.New(), home: "/docs"}
	f.echo.Use(func(next echo.HandlerFunc) echo.HandlerFunc { return s.observe(f, next) })
	return f
}

// openFronts makes the fronts, and the gate of the operators' connections.
func (s *Server) openFronts() {
	s.public = s.newFront()
	s.private = s.public
	if s.OwnOperatorAddr {
		s.private = s.newFront()
	}
	if s.Operators != nil {
		s.operatorGate = admit.NewConnections(int(s.Operators.Pool().Config().MaxConns), 0)
		s.Operators = s.Operators.In(postgres.Scope{Gate: s.operatorGate, Class: admit.Bulk})
	}
}

// frontsOf returns the fronts that have a route: every one has those that are open to everybody.
func (s *Server) frontsOf(r request.Route) []*front {
	switch {
	case r.Kind == "" && s.private != s.public:
		return []*front{s.public, s.private}
	case r.Kind == session.OperatorCaller:
		return []*front{s.private}
	}
	return []*front{s.public}
}

// openSites opens the sites of features, on the address of operators if there is one. What they ask both addresses
// answer.
func (s *Server) openSites() {
	if s.Sites == nil {
		return
	}
	paths := map[string]bool{}
	for _, r := range slices.Concat(s.public.table, s.private.table) {
		paths[r.Path] = true
	}
	for _, f := range s.Features {
		if f.Site == nil {
			continue
		}
		config := *s.Sites
		config.API, config.Operators = s.public, s.private
		config.Lacks = func(path string) bool { return !paths[path] }
		s.private.site, s.private.home = f.Site.Open(config), f.Site.Path
	}
}

// ServeHTTP answers one request. Echo matches the path as it was sent, so that an id may hold an escaped slash, and its
// parameters always are escaped.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor > 1 { // without TLS; net/http leaves it to the handler
		w.Header()["Connection"] = connectionClose
		http.Error(w, "only HTTP/1 is spoken here", http.StatusHTTPVersionNotSupported)
		return
	}
	r.URL.RawPath = r.URL.EscapedPath()
	below := strings.HasPrefix(r.URL.Path, f.home+"/") || r.URL.Path == f.home
	switch {
	case f.site != nil && below:
		f.site.ServeHTTP(w, r)
		return
	case r.URL.Path == "/":
		http.Redirect(w, r, f.home, http.StatusSeeOther)
		return
	}
	f.echo.ServeHTTP(w, r)
}
