// Package api is the HTTP API: routes, keys, handlers and errors. docs/api.md is its contract.
//
// Start at routes in this file, the table of contents; then append.go and context.go, the two routes that matter most.
// route.go reads what all requests of a route have: the key, the path, the names of the query, the body. A handler
// decodes the rest, resolves what the request leaves to the session or the tenant, makes one call that does the work,
// and answers; errors.go maps errors to codes and statuses. Package request is the kit under the handlers, package
// openai has OpenAI's routes. Only this file and route.go import Echo.
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

	"github.com/varve-dev/varve/internal/api/openai"
	"github.com/varve-dev/varve/internal/api/openapi"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/asker"
	"github.com/varve-dev/varve/internal/budget"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/ledger"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/quota"
	"github.com/varve-dev/varve/internal/recall"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/share"
)

// Config is what the API needs.
type Config struct {
	Store  *postgres.Store
	Models *models.Registry // nil: those that are built in
	Asker  *asker.Asker     // asks the language models that policies may name; nil: there are none
	Log    *slog.Logger     // nil logs nothing
	Quotas session.Quotas   // of tenants that have none of their own
	Pause  time.Duration    // before the answer to a request that is refused because there are too many; 0: none
	Gate   *share.Gate      // nil: one that divides all connections of the store

	Origins []string // of pages that may use MCP, as http.CrossOriginProtection takes them

	Memory    *budget.Budget // bytes, from which large requests draw; nil is without a bound
	SmallView int64          // bytes of a view that is read whole and not weighed; 0 for what fits Memory

	ImportBytes, ImportLines int64 // of one body of an import; 0 for ingest's

	CPU *budget.Budget // processors, from which heavy work draws; nil is without a bound
}

// Server is the HTTP API. Make it with New.
type Server struct {
	Config
	echo     *echo.Echo
	keys     keyCache
	counter  ingest.Counter
	writers  *policy.Writers // the names of the language models
	waiter   request.Waiter
	recall   *recall.Counter
	ledger   *ledger.Counter
	ready    readiness
	draining atomic.Bool
	paused   atomic.Int32
	mcp      http.Handler
	uploads  uploadPlaces

	strangers strangers
	quotas    *quota.Book
}

// New returns the HTTP API on a store.
func New(config Config) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Models == nil {
		config.Models = models.Embedded()
	}
	if config.Gate == nil {
		config.Gate = share.New(share.Config{Connections: int(config.Store.Pool().Config().MaxConns)})
	}
	s := &Server{Config: config, echo: echo.New(), counter: ingest.Counter{Store: config.Store, CPU: config.CPU}}
	s.writers = &policy.Writers{}
	if config.Asker != nil {
		*s.writers = config.Asker.Models.Names()
	}
	s.recall = recall.New(s.Store, s.Log)
	s.ledger = ledger.New(s.Store, s.Log)
	s.strangers = newStrangers()
	s.quotas = quota.NewBook(config.Store, config.Quotas)
	s.waiter.Store = s.Store
	s.waiter.Draining = &s.draining
	s.mcp = s.newMCP()
	s.echo.Use(s.observe)
	s.routes()
	return s
}

// NewServer returns an HTTP server whose timeouts keep slow clients from holding it up. The caller sets its Addr.
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

// Drain makes /readyz answer that the process takes no more requests. Requests are still answered, and the connections
// that they came by are closed then, so that none is cut when the process ends.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.waiter.Stop()
}

// Close writes what is counted and not written yet.
func (s *Server) Close(ctx context.Context) {
	s.recall.Flush(ctx)
	s.ledger.Flush(ctx)
	s.ready.database.Close(ctx)
}

// routes lists every route, room by room, with who may use it and the parameters of its query.
func (s *Server) routes() {
	keys := door{s, keyOnly}                 // for a key of the tenant, and no session token
	read := door{s, session.ScopeRead}       // for the session's tokens, too
	compact := door{s, session.ScopeCompact} // for those of them that may compact
	s.routeProcess()
	s.routePolicies(keys, read)
	s.routeSessions(keys, read)
	s.routeCompaction(keys, read, compact)
	s.routeSummaries(keys, read)
	s.routeOpenAI()
	s.routeResults(keys, read)
	s.routeTransfer(keys)
	s.routeRecompactions(keys)
	s.routeReplays(keys)
	s.routeAudit(keys)
}

// routeProcess has what is open to everybody: the state of the process, and the description of the API.
func (s *Server) routeProcess() {
	s.open("/livez", s.livez)
	s.open("/readyz", s.readyz)
	s.handle("GET", "/metrics", echo.WrapHandler(promhttp.Handler()))
	s.open("/openapi.yaml", describe(yamlType, func(d *openapi.Document) []byte { return d.YAML }))
	s.open("/openapi.json", describe(request.JSONType, func(d *openapi.Document) []byte { return d.JSON }))
	s.open("/docs", s.readDocs)
}

func (s *Server) routePolicies(keys, read door) {
	keys.get("/v1/policies/profiles", s.listProfiles)
	keys.get("/v1/policies/schema", s.readPolicySchema)
	keys.get("/v1/policy", s.readTenantPolicy)
	keys.put("/v1/policy", s.changeTenantPolicy(replaceLayer))
	keys.patch("/v1/policy", s.changeTenantPolicy(mergeLayer))
	keys.delete("/v1/policy", s.changeTenantPolicy(removeLayer))
	keys.list("/v1/policy/versions", s.listTenantPolicyVersions)
	keys.ask("/v1/policy/check", s.checkPolicy, "as")
	read.get("/v1/sessions/:id/policy", s.readSessionPolicy)
	keys.put("/v1/sessions/:id/policy", s.changeSessionPolicy(replaceLayer))
	keys.patch("/v1/sessions/:id/policy", s.changeSessionPolicy(mergeLayer))
	keys.delete("/v1/sessions/:id/policy", s.changeSessionPolicy(removeLayer))
	keys.list("/v1/sessions/:id/policy/versions", s.listSessionPolicyVersions)
}

// routeSessions has sessions with their messages and views, their tokens, and what is known of models and limits.
func (s *Server) routeSessions(keys, read door) {
	keys.post("/v1/sessions", s.createSession)
	keys.get("/v1/sessions", s.listSessions, sessionsQuery...)
	keys.put("/v1/sessions/:id", s.putSession)
	read.get("/v1/sessions/:id", s.readSession)
	keys.patch("/v1/sessions/:id", s.patchSession)
	keys.delete("/v1/sessions/:id", s.deleteSession)
	keys.post("/v1/sessions/:id/fork", s.forkSession)

	keys.post("/v1/sessions/:id/messages", s.appendMessages)
	keys.put("/v1/sessions/:id/messages", s.putMessages)
	keys.patch("/v1/sessions/:id/messages/:message", s.patchMessage)
	read.get("/v1/sessions/:id/messages", s.listMessages, "from_seq", "to_seq", "after_seq", "before_seq",
		"order", "limit")
	read.get("/v1/sessions/:id/context", s.readContext, "max_tokens", "format", "view", "model", "dialect", "pending",
		"fit", "wait", "as_of_seq", "as_of")

	keys.ask("/v1/sessions/:id/tokens", s.createToken) // shown once: an Idempotency-Key cannot bring it back
	keys.list("/v1/sessions/:id/tokens", s.listTokens)
	keys.delete("/v1/sessions/:id/tokens/:token", s.revokeToken)

	keys.ask("/v1/tokens", s.countTokens)
	keys.get("/v1/models", s.listModels, "model")
	keys.get("/v1/models/summaries", s.listSummaryModels)
	keys.get("/v1/limits", s.readLimits)
	keys.get("/v1/usage", s.readUsage, "from", "to", "format")
	keys.list("/v1/usage/sessions", s.listUsage)
}

// routeCompaction has compactions, their runs and checkpoints.
func (s *Server) routeCompaction(keys, read, compact door) {
	compact.do("/v1/sessions/:id/compact", s.compactSession, "wait")
	compact.ask("/v1/sessions/:id/preview", s.previewSession, "actions")
	keys.ask("/v1/compact", s.compactMessages)
	read.list("/v1/sessions/:id/runs", s.listRuns)
	read.get("/v1/sessions/:id/runs/:run", s.readRun)
	read.list("/v1/sessions/:id/checkpoints", s.listCheckpoints)
	read.get("/v1/sessions/:id/checkpoints/:n", s.readCheckpoint, "manifest")
	read.get("/v1/sessions/:id/checkpoints/:n/context", s.readContext)
	read.get("/v1/sessions/:id/checkpoints/:n/diff", s.diffCheckpoints, "to")
	keys.do("/v1/sessions/:id/checkpoints/:n/restore", s.restoreCheckpoint)
}

// routeSummaries has what summaries say, and what stays beside them word for word.
func (s *Server) routeSummaries(keys, read door) {
	read.get("/v1/sessions/:id/summaries", s.listSummaries, "checkpoint")
	keys.do("/v1/sessions/:id/summaries/rebuild", s.rebuildSummaries, "wait")

	read.get("/v1/sessions/:id/pins", s.listPins)
	read.get("/v1/sessions/:id/pins/candidates", s.listPinCandidates, "from_seq")
	keys.put("/v1/sessions/:id/pins/:ref", s.putPin)
	keys.delete("/v1/sessions/:id/pins/:ref", s.deletePin)
}

func (s *Server) routeOpenAI() {
	dialect := openai.Server{
		Store: s.Store, Models: s.Models, Writers: s.writers, Counter: &s.counter, Waiter: &s.waiter,
	}
	dialect.Register(s.openAI)
}

// routeResults has results, uploads of them, and the tools with which an agent reads them back.
func (s *Server) routeResults(keys, read door) {
	read.get("/v1/sessions/:id/results", s.listResults, resultsQuery...)
	read.get("/v1/sessions/:id/results/grep", s.grepResults, append([]string{"refs"}, grepQuery...)...)
	keys.feed("/v1/sessions/:id/results", s.createUpload, "tool", "call_id", "media_type", "sha256", "more")
	keys.get("/v1/sessions/:id/results/uploads/:upload", s.readUpload)
	keys.feed("/v1/sessions/:id/results/uploads/:upload", s.resumeUpload, "offset", "more")
	keys.delete("/v1/sessions/:id/results/uploads/:upload", s.abandonUpload)
	read.get("/v1/sessions/:id/results/:ref", s.readResult, readQuery...)
	read.get("/v1/sessions/:id/results/:ref/grep", s.grepResult, grepQuery...)
	read.get("/v1/sessions/:id/search", s.searchSession, "q", "limit", "max_bytes", "cursor")

	keys.get("/v1/recall", s.readRecall, "from", "to")
	read.get("/v1/tools", s.listTools, "format")
	keys.ask("/v1/tools/names", s.nameTools)
	read.ask("/v1/sessions/:id/tools/:tool", s.callTool)
	s.handle("POST", "/mcp", s.sameOrigin(s.authorized("/mcp", read.access, nothing, s.serveMCP, []string{"session"})))
}

func (s *Server) routeTransfer(keys door) {
	keys.feed("/v1/imports", s.createImport, "from", "session", "settings", "more")
	keys.list("/v1/imports", s.listImports)
	keys.get("/v1/imports/:import", s.readImport, "wait")
	keys.feed("/v1/imports/:import", s.resumeImport, "from_line", "settings", "more")
	keys.get("/v1/imports/:import/lines", s.listImportLines, "from", "limit", "outcome")
	keys.get("/v1/export", s.exportTenant)
	keys.get("/v1/sessions/:id/export", s.exportSession)
}

// routeRecompactions has what an operator does about many sessions.
func (s *Server) routeRecompactions(keys door) {
	keys.list("/v1/admin/failures", s.listFailures)
	keys.do("/v1/admin/failures/:id/retry", s.retryFailure)
	keys.post("/v1/admin/recompactions", s.createRecompaction)
	keys.list("/v1/admin/recompactions", s.listRecompactions)
	keys.get("/v1/admin/recompactions/:recompaction", s.readRecompaction)
	keys.list("/v1/admin/recompactions/:recompaction/sessions", s.listRecompactionSessions)
	keys.do("/v1/admin/recompactions/:recompaction/cancel", s.cancelRecompaction)
}

func (s *Server) routeReplays(keys door) {
	keys.post("/v1/admin/replays", s.createReplay)
	keys.list("/v1/admin/replays", s.listReplays)
	keys.get("/v1/admin/replays/:replay", s.readReplay)
	keys.list("/v1/admin/replays/:replay/sessions", s.listReplaySessions)
	keys.get("/v1/admin/replays/:replay/report", s.readReplayReport, "format")
	keys.do("/v1/admin/replays/:replay/cancel", s.cancelReplay)
}

// routeAudit has who did what.
func (s *Server) routeAudit(keys door) {
	keys.get("/v1/audit", s.listAudit, append([]string{"action", "object", "actor", "since", "until", "order"},
		request.ListQuery...)...)
	keys.get("/v1/audit/export", s.exportAudit, "after")
}

// observe gives a request its id, answers its error, recovers from its panic, and logs it in one line.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		response := c.Response()
		rc := &routed{Context: c, req: request.New(response, c.Request())}
		rc.req.Raw = response.Writer
		if s.draining.Load() {
			response.Header()["Connection"] = connectionClose
		}
		rc.req.Route = c.Path()
		rc.req.Memory, rc.req.CPU = s.Memory, s.CPU
		rc.req.Param = c.Param
		err := s.ownError(&rc.req, recovered(s.Log, &rc.req, func() error { return next(rc) }))
		rc.req.Free()
		if err != nil {
			s.answer(&rc.req, err, response.Committed)
		}
		s.log(&rc.req, began, response.Status, response.Size)
		if err != nil && response.Committed && rc.req.Truncated {
			panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
		}
		return nil
	}
}

var connectionClose = []string{"close"}

// ownError returns our error for one of Echo's.
func (s *Server) ownError(req *request.Request, err error) error {
	switch {
	case errors.Is(err, echo.ErrNotFound):
		return request.Fail(request.NotFound, "there is no such route%s; GET /docs shows all",
			s.nearestRoute(req.R.URL.Path))
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return request.Fail("method_not_allowed", "%s", otherMethods(req))
	}
	return err
}
