// Package api is how Varve is asked over HTTP: routes, bodies, keys and errors. docs/api.md is its contract.
//
// Start at routes in this file, the table of contents; then append.go and context.go, the two routes that matter most.
// Every handler decodes, makes one call of a store, and answers; errors.go turns what went wrong into a status and a
// code. Echo routes and is known to this file alone: handlers take an exchange, which is one request and its answer.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
)

// Config is what the API works on.
type Config struct {
	Store   *postgres.Store
	Results *persist.Store
	Models  *models.Registry // nil knows those that are built in
	Log     *slog.Logger     // nil logs nothing
}

// Server is the HTTP API. Make it with New.
type Server struct {
	Config
	echo     *echo.Echo
	keys     keyCache
	exact    exactCache
	ready    readiness
	draining atomic.Bool
}

// New is the HTTP API on a store.
func New(config Config) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Models == nil {
		config.Models = models.Embedded()
	}
	s := &Server{Config: config, echo: echo.New()}
	s.echo.Use(s.observe)
	s.routes()
	return s
}

// NewServer is an HTTP server with the timeouts that keep slow clients from holding it up. Its Addr is the caller's.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
}

// ServeHTTP answers one request. Echo matches the path as it was sent, so that an id may hold an escaped slash, and its
// parameters always are escaped.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.RawPath = r.URL.EscapedPath()
	s.echo.ServeHTTP(w, r)
}

// Drain makes /readyz say that no more requests should come. Requests are still answered.
func (s *Server) Drain() { s.draining.Store(true) }

// routes lists every route.
func (s *Server) routes() {
	s.get("/livez", open(s.livez))
	s.get("/readyz", open(s.readyz))
	s.get("/metrics", echo.WrapHandler(promhttp.Handler()))
	s.get("/openapi.yaml", open(s.readOpenAPI))
	s.get("/openapi.json", open(s.readOpenAPIJSON))
	s.get("/docs", open(s.readDocs))

	s.get("/v1/policies/profiles", s.authorized(s.listProfiles))
	s.get("/v1/policies/schema", s.authorized(s.readPolicySchema))
	s.get("/v1/policy", s.authorized(s.readTenantPolicy))
	s.echo.PUT("/v1/policy", s.authorized(s.putTenantPolicy))
	s.echo.PATCH("/v1/policy", s.authorized(s.patchTenantPolicy))
	s.echo.DELETE("/v1/policy", s.authorized(s.deleteTenantPolicy))
	s.get("/v1/policy/versions", s.authorized(s.listTenantPolicyVersions))
	s.echo.POST("/v1/policy/check", s.authorized(s.checkPolicy))
	s.get("/v1/sessions/:id/policy", s.authorized(s.readSessionPolicy))
	s.echo.PUT("/v1/sessions/:id/policy", s.authorized(s.putSessionPolicy))
	s.echo.PATCH("/v1/sessions/:id/policy", s.authorized(s.patchSessionPolicy))
	s.echo.DELETE("/v1/sessions/:id/policy", s.authorized(s.deleteSessionPolicy))
	s.get("/v1/sessions/:id/policy/versions", s.authorized(s.listSessionPolicyVersions))

	s.echo.POST("/v1/sessions", s.authorized(s.createSession))
	s.get("/v1/sessions", s.authorized(s.listSessions))
	s.echo.PUT("/v1/sessions/:id", s.authorized(s.putSession))
	s.get("/v1/sessions/:id", s.authorized(s.readSession))
	s.echo.PATCH("/v1/sessions/:id", s.authorized(s.patchSession))
	s.echo.DELETE("/v1/sessions/:id", s.authorized(s.deleteSession))

	s.echo.POST("/v1/sessions/:id/messages", s.authorized(s.appendMessages))
	s.get("/v1/sessions/:id/messages", s.authorized(s.listMessages))
	s.get("/v1/sessions/:id/context", s.authorized(s.readContext))

	s.echo.POST("/v1/sessions/:id/compact", s.authorized(s.compactSession))
	s.echo.POST("/v1/sessions/:id/preview", s.authorized(s.previewSession))
	s.echo.POST("/v1/compact", s.authorized(s.compactMessages))
	s.echo.POST("/v1/tokens", s.authorized(s.countTokens))
	s.get("/v1/sessions/:id/runs", s.authorized(s.listRuns))
	s.get("/v1/sessions/:id/runs/:run", s.authorized(s.readRun))
	s.get("/v1/models", s.authorized(s.listModels))
	s.get("/v1/sessions/:id/checkpoints", s.authorized(s.listCheckpoints))
	s.get("/v1/sessions/:id/checkpoints/:n", s.authorized(s.readCheckpoint))
	s.get("/v1/sessions/:id/checkpoints/:n/context", s.authorized(s.readCheckpointContext))
	s.get("/v1/sessions/:id/checkpoints/:n/diff", s.authorized(s.diffCheckpoints))
	s.echo.POST("/v1/sessions/:id/checkpoints/:n/restore", s.authorized(s.restoreCheckpoint))
	s.echo.POST("/v1/conversations", s.openAI(s.createConversation))
	s.get("/v1/conversations/:id", s.openAI(s.readConversation))
	s.echo.POST("/v1/conversations/:id", s.openAI(s.updateConversation))
	s.echo.DELETE("/v1/conversations/:id", s.openAI(s.deleteConversation))
	s.echo.POST("/v1/conversations/:id/items", s.openAI(s.createItems))
	s.get("/v1/conversations/:id/items", s.openAI(s.listItems))
	s.get("/v1/conversations/:id/items/:item", s.openAI(s.readItem))
	s.echo.DELETE("/v1/conversations/:id/items/:item", s.openAI(s.deleteItem))
	s.echo.POST("/v1/responses/compact", s.openAI(s.compactResponses))

	s.get("/v1/sessions/:id/results", s.authorized(s.listResults))
	s.get("/v1/sessions/:id/results/:ref", s.authorized(s.readResult))

	s.echo.POST("/v1/imports", s.authorized(s.createImport))
	s.get("/v1/imports", s.authorized(s.listImports))
	s.get("/v1/imports/:import", s.authorized(s.readImport))
	s.echo.POST("/v1/imports/:import", s.authorized(s.resumeImport))
	s.get("/v1/imports/:import/lines", s.authorized(s.listImportLines))
	s.get("/v1/export", s.authorized(s.exportTenant))
	s.get("/v1/sessions/:id/export", s.authorized(s.exportSession))

	s.echo.POST("/v1/admin/recompactions", s.authorized(s.createRecompaction))
	s.get("/v1/admin/recompactions", s.authorized(s.listRecompactions))
	s.get("/v1/admin/recompactions/:recompaction", s.authorized(s.readRecompaction))
	s.get("/v1/admin/recompactions/:recompaction/sessions", s.authorized(s.listRecompactionSessions))
	s.echo.POST("/v1/admin/recompactions/:recompaction/cancel", s.authorized(s.cancelRecompaction))
}

func (s *Server) get(path string, h echo.HandlerFunc) {
	s.echo.GET(path, h)
	s.echo.HEAD(path, h)
}

// routed carries an exchange through Echo.
type routed struct {
	echo.Context
	x exchange
}

// param is a parameter of the path, still escaped.
func (c *routed) param(name string) string { return c.Param(name) }

func open(h func(*exchange) error) echo.HandlerFunc {
	return func(c echo.Context) error { return h(&c.(*routed).x) }
}

// requestTimeout bounds what one request may wait for the database.
const requestTimeout = 30 * time.Second

// authorized runs h for a caller whose key is good.
func (s *Server) authorized(h func(*exchange) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		x := &c.(*routed).x
		ctx, cancel := context.WithTimeout(x.ctx, requestTimeout)
		defer cancel()
		x.ctx = ctx
		if err := s.authenticate(x); err != nil {
			return err
		}
		return h(x)
	}
}

// openAI is authorized for a route of OpenAI's API: what goes wrong is answered as OpenAI does.
func (s *Server) openAI(h func(*exchange) error) echo.HandlerFunc {
	authorized := s.authorized(h)
	return func(c echo.Context) error {
		c.(*routed).x.openAI = true
		return authorized(c)
	}
}

// observe gives a request its id, answers its error, survives its panic, and logs it in one line.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		response := c.Response()
		rc := &routed{Context: c, x: newExchange(response, c.Request())}
		rc.x.raw, rc.x.route, rc.x.param = response.Writer, c.Path(), rc.param
		err := routing(recovered(s.Log, &rc.x, func() error { return next(rc) }))
		if err != nil {
			s.answer(&rc.x, err, response.Committed)
		}
		s.log(&rc.x, began, response.Status, response.Size)
		if err != nil && response.Committed && rc.x.truncated {
			panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
		}
		return nil
	}
}

// routing says Echo's errors in our own words.
func routing(err error) error {
	switch {
	case errors.Is(err, echo.ErrNotFound):
		return errNoRoute
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return errNoMethod
	}
	return err
}
