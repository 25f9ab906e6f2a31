// Package api is the HTTP API: routes, keys, handlers and errors. openapi/openapi.yaml is its contract.
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
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varve-dev/varve/docs"
	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/openai"
	"github.com/varve-dev/varve/internal/api/openapi"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/docsite"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
	"github.com/varve-dev/varve/internal/trace"
	"github.com/varve-dev/varve/internal/usage"
)

// Config is what the API needs.
type Config struct {
	Store  *postgres.Store
	Caller *modelcall.Caller  // asks the language models that policies may name; nil: there are none
	Log    *slog.Logger       // nil logs nothing
	Quotas session.Quotas     // of tenants that have none of their own
	Pause  time.Duration      // before the answer to a request that is refused because there are too many; 0: none
	Gate   *admit.Connections // nil: one that divides all connections of the store

	// Operators reaches all tenants, for the routes of operators; nil: there are none. OwnOperatorAddr keeps them off
	// what ServeHTTP answers: then OperatorsHandler alone has them.
	Operators       *postgres.Store
	OwnOperatorAddr bool

	Origins []string // of pages that may use MCP, as http.CrossOriginProtection takes them

	Memory    *admit.Gate // bytes, from which large requests draw; nil is without a bound
	SmallView int64       // bytes of a view that is read whole and not weighed; 0 for what fits Memory

	Features []feature.Feature
	Sites    *feature.SiteConfig // nil: features show no sites

	CPU *admit.Gate // processors, from which heavy work draws; nil is without a bound
}

// Server is the HTTP API. Make it with New.
type Server struct {
	Config
	public   *front
	private  *front // of operators; public, unless they have an address of their own
	keys     keyCache
	bases    *lru.Cache[session.Address, session.Basis] // of sessions that appends have read
	noting   sync.Mutex                                 // held while the use of a key is noted
	counter  ingest.Counter
	writers  *policy.Writers // the names of the language models
	waiter   request.Waiter
	thawer   *tier.Thawer
	usage    *usage.Counter
	ready    readiness
	draining atomic.Bool
	paused   atomic.Int32
	models   atomic.Pointer[modelList]

	description   func() (*openapi.Document, error)
	documentation func() (*docsite.Site, error)

	streams *streams

	unknownKeys unknownKeys
	quotas      *admit.Book

	operatorGate *admit.Connections
}

// knownBases is how many sessions appends need not read, about 5 MB.
const knownBases = 20_000

// New returns the HTTP API on a store.
func New(config Config) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Gate == nil {
		config.Gate = admit.NewConnections(int(config.Store.Pool().Config().MaxConns), 0)
	}
	config.Store.Follow(feature.Followers(config.Features))
	scoped := config.Store.In(postgres.Scope{Gate: config.Gate}) // for what several routes use
	s := &Server{Config: config, counter: ingest.Counter{Store: scoped, CPU: config.CPU}}
	s.bases, _ = lru.New[session.Address, session.Basis](knownBases) // its only error is a size of 0
	s.writers = &policy.Writers{}
	if config.Caller != nil {
		*s.writers = config.Caller.Models.Names()
	}
	s.usage = usage.New(s.Store, s.Log)
	s.unknownKeys = newUnknownKeys()
	s.quotas = admit.NewBook(config.Store.Quotas, config.Store.Stored, config.Quotas)
	s.streams = newStreams(s.Store, s.Log)
	s.thawer = &tier.Thawer{Store: scoped, Log: s.Log, Memory: s.Memory}
	s.waiter.Store = scoped
	s.waiter.Draining = &s.draining
	s.description = sync.OnceValues(func() (*openapi.Document, error) { return Describe(s.Features) })
	s.documentation = sync.OnceValues(func() (*docsite.Site, error) {
		description, err := s.description()
		if err != nil {
			return nil, err
		}
		return docsite.Make(docs.Files, description)
	})
	s.openFronts()
	s.routes()
	s.openSites()
	return s
}

// NewServer returns an HTTP server whose timeouts keep slow clients from holding it up. It speaks HTTP/1.1 alone: the
// streams of HTTP/2 are for the proxy to bound. The caller sets its Addr.
func NewServer(handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Protocols:         protocols,
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.public.ServeHTTP(w, r) }

// OperatorsHandler answers requests to the address of operators: their routes and those of the process.
func (s *Server) OperatorsHandler() http.Handler { return s.private }

// Drain makes /readyz answer that the process takes no more requests. Requests are still answered, and the connections
// that they came by are closed then, so that none is cut when the process ends.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.waiter.Stop()
	s.streams.end()
}

// Close writes what is counted and not written yet.
func (s *Server) Close(ctx context.Context) {
	s.usage.Flush(ctx)
	s.ready.database.Close(ctx)
}

// routes lists every route, subject by subject, with who may use it and the parameters of its query: the tenant's keys
// with a scope, and, where orTokens says so, the tokens of the session.
func (s *Server) routes() {
	s.routeProcess()
	s.routeKeys()
	s.routePolicies()
	s.routeSessions()
	s.routeMessages()
	s.routeCompaction()
	s.routeSummaries()
	s.routeOpenAI()
	s.routeResults()
	s.routeFailures()
	s.routeErasures()
	s.routeAudit()
	s.routeEvents()
	s.routeOperators()
	s.routeFeatures()
}

// routeProcess has what is open to everybody: the state of the process, and the documentation.
func (s *Server) routeProcess() {
	s.open("/livez", s.livez)
	s.open("/readyz", s.readyz)
	s.handle(request.Route{Method: "GET", Path: "/metrics"}, echo.WrapHandler(promhttp.Handler()))
	s.open("/openapi.yaml", s.describe(yamlType, func(d *openapi.Document) []byte { return d.YAML }))
	s.open("/openapi.json", s.describe(request.JSONType, func(d *openapi.Document) []byte { return d.JSON }))
	s.open("/docs", s.readDocs)
	s.open("/docs/:page", s.readDocs)
}

// routeKeys has the tenant's keys, and the session tokens that they make.
func (s *Server) routeKeys() {
	s.tenants().get("/v1/key", s.readOwnKey)
	admin := s.tenants(session.ScopeAdmin)
	admin.show("/v1/keys", s.createKey)
	admin.list("/v1/keys", s.listKeys)
	admin.show("/v1/keys/:key/rotate", s.rotateKey)
	admin.delete("/v1/keys/:key", s.revokeKey)

	read, write := s.tenants(session.SessionsRead), s.tenants(session.SessionsWrite)
	give := s.tenants(session.SessionsWrite, session.SessionsRead, session.ResultsRead) // every token reads
	give.show("/v1/sessions/:id/tokens", s.createToken)
	read.list("/v1/sessions/:id/tokens", s.listTokens)
	write.delete("/v1/sessions/:id/tokens/:token", s.revokeToken)
}

func (s *Server) routePolicies() {
	read, change := s.tenants(session.SessionsRead), s.tenants(session.ScopePolicy).ownKeys()
	read.get("/v1/policies/profiles", s.listProfiles)
	read.get("/v1/policies/schema", s.readPolicySchema)
	read.get("/v1/policy", s.readTenantPolicy)
	change.put("/v1/policy", s.changeTenantPolicy(replaceLayer))
	change.patch("/v1/policy", s.changeTenantPolicy(mergeLayer))
	change.delete("/v1/policy", s.changeTenantPolicy(removeLayer))
	read.list("/v1/policy/versions", s.listTenantPolicyVersions)
	read.ask("/v1/policy/check", s.checkPolicy, "as")
	read.orTokens().get("/v1/sessions/:id/policy", s.readSessionPolicy)
	change.put("/v1/sessions/:id/policy", s.changeSessionPolicy(replaceLayer))
	change.patch("/v1/sessions/:id/policy", s.changeSessionPolicy(mergeLayer))
	change.delete("/v1/sessions/:id/policy", s.changeSessionPolicy(removeLayer))
	read.list("/v1/sessions/:id/policy/versions", s.listSessionPolicyVersions)
}

// routeSessions has sessions, and what is known of models and limits.
func (s *Server) routeSessions() {
	read, write := s.tenants(session.SessionsRead), s.tenants(session.SessionsWrite).ownKeys()
	write.post("/v1/sessions", s.createSession, strictParameter, includeParameter)
	read.get("/v1/sessions", s.listSessions, sessionsQuery...)
	write.put("/v1/sessions/:id", s.putSession, strictParameter, includeParameter)
	read.orTokens().get("/v1/sessions/:id", s.readSession, includeParameter)
	write.patch("/v1/sessions/:id", s.patchSession, strictParameter, includeParameter)
	s.tenants(session.ScopeErase).ownKeys().delete("/v1/sessions/:id", s.deleteSession)
	s.tenants(session.SessionsWrite, session.SessionsRead).ownKeys().post("/v1/sessions/:id/fork", s.forkSession,
		includeParameter)
	export := s.tenants(session.ScopeExport)
	archive := s.tenants(session.SessionsWrite, session.ScopeExport).ownKeys()
	export.get("/v1/export", s.exportTenant, searchQuery...)
	export.get("/v1/sessions/:id/export", s.exportSession)
	archive.do("/v1/sessions/:id/archive", s.archiveSession)
	archive.do("/v1/sessions/:id/unarchive", s.unarchiveSession)
	read.get("/v1/sessions/:id/archive", s.readArchive)
	read.list("/v1/archives", s.listArchives)

	read.ask("/v1/tokens", s.countTokens)
	read.get("/v1/models", s.listModels, "model")
	read.get("/v1/models/summaries", s.listSummaryModels)
	read.get("/v1/limits", s.readLimits)
	read.get("/v1/retention", s.readRetention)
	read.get("/v1/retention/preview", s.previewRetention, "idle_seconds", "max_age_seconds", "then",
		"archive_max_age_seconds")
	s.tenants(session.ScopeAdmin, session.ScopeErase).put("/v1/retention", s.putRetention)
	read.get("/v1/usage", s.readUsage, "from", "to", "format")
	read.list("/v1/usage/sessions", s.listUsage)
	read.get("/v1/usage/state", s.readState)
	read.get("/v1/usage/runs", s.readRunsByHour, "hours")
}

// routeMessages has the messages of sessions and their views.
func (s *Server) routeMessages() {
	read, write := s.tenants(session.SessionsRead).orTokens(), s.tenants(session.SessionsWrite).ownKeys()
	write.post("/v1/sessions/:id/messages", s.appendMessages, append([]string{strictParameter, returnParameter},
		viewQuery...)...)
	write.put("/v1/sessions/:id/messages", s.putMessages, strictParameter)
	write.patch("/v1/sessions/:id/messages/:message", s.patchMessage, strictParameter)
	read.get("/v1/sessions/:id/messages", s.listMessages, "from_seq", "to_seq", "after_seq", "before_seq",
		"order", "limit", minSeq)
	read.get("/v1/sessions/:id/context", s.readContext, append([]string{"view", "as_of_seq", "as_of", minSeq},
		viewQuery...)...)
	read.get("/v1/sessions/:id/timeline", s.readTimeline, "points")
	read.get("/v1/sessions/:id/context/units", s.readUnits, "as_of_seq", "as_of", "from_seq", "limit",
		"repairs", "format", "dialect")
}

// routeCompaction has compactions, their runs and checkpoints.
func (s *Server) routeCompaction() {
	read, compact := s.tenants(session.SessionsRead).orTokens(), s.tenants(session.ScopeCompact).ownKeys()
	compact.orTokens().do("/v1/sessions/:id/compact", s.compactSession, "wait")
	compact.orTokens().ask("/v1/sessions/:id/preview", s.previewSession, "actions", "units",
		"from_seq", "limit")
	compact.ask("/v1/compact", s.compactMessages, strictParameter)
	read.list("/v1/sessions/:id/runs", s.listRuns)
	read.get("/v1/sessions/:id/runs/:run", s.readRun)
	read.list("/v1/sessions/:id/checkpoints", s.listCheckpoints)
	read.get("/v1/sessions/:id/checkpoints/:n", s.readCheckpoint, "manifest")
	read.get("/v1/sessions/:id/checkpoints/:n/context", s.readContext)
	read.get("/v1/sessions/:id/checkpoints/:n/diff", s.diffCheckpoints, "to")
	compact.do("/v1/sessions/:id/checkpoints/:n/restore", s.restoreCheckpoint)
}

// routeSummaries has what summaries say, and what stays beside them word for word.
func (s *Server) routeSummaries() {
	read, write := s.tenants(session.SessionsRead).orTokens(), s.tenants(session.SessionsWrite)
	read.get("/v1/sessions/:id/summaries", s.listSummaries, "checkpoint")
	s.tenants(session.ScopeCompact).ownKeys().do("/v1/sessions/:id/summaries/rebuild", s.rebuildSummaries, "wait")

	read.get("/v1/sessions/:id/pins", s.listPins)
	read.get("/v1/sessions/:id/pins/candidates", s.listPinCandidates, "from_seq")
	write.put("/v1/sessions/:id/pins/:ref", s.putPin)
	write.delete("/v1/sessions/:id/pins/:ref", s.deletePin)
}

func (s *Server) routeOpenAI() {
	dialect := openai.Server{
		Writers: s.writers, Counter: &s.counter, Waiter: &s.waiter, Awake: s.awake, Served: s.usage.Served,
	}
	dialect.Register(s.openAI)
}

// routeResults has results, and the tools with which an agent reads them back.
func (s *Server) routeResults() {
	read := s.tenants(session.ResultsRead).orTokens()
	read.get("/v1/sessions/:id/results", s.listResults, resultsQuery...)
	read.get("/v1/sessions/:id/results/grep", s.grepResults, append([]string{"refs"}, grepQuery...)...)
	read.get("/v1/sessions/:id/results/:ref", s.readResult, readQuery...)
	read.get("/v1/sessions/:id/results/:ref/grep", s.grepResult, grepQuery...)
	read.get("/v1/sessions/:id/search", s.searchSession, "q", "limit", "max_bytes", "cursor")

	read.get("/v1/tools", s.listTools, "format")
	s.tenants(session.ResultsRead).ask("/v1/tools/names", s.nameTools)
	read.ask("/v1/sessions/:id/tools/:tool", s.callTool)
	mcp := read.Post("/mcp", s.serveMCP)
	mcp.Read, mcp.Query = request.ReadNothing, []string{"session"}
	mcp.Keys = request.KeyIdle
	s.handle(mcp, s.sameOrigin(s.authorized(mcp)))
}

// routeFailures has the sessions whose compaction fails.
func (s *Server) routeFailures() {
	read, compact := s.tenants(session.SessionsRead), s.tenants(session.ScopeCompact).ownKeys()
	read.list("/v1/admin/failures", s.listFailures)
	compact.do("/v1/admin/failures/:id/retry", s.retryFailure)
}

// routeErasures has the erasures of a tenant, what verifies their receipts, and what keeps sessions from them.
func (s *Server) routeErasures() {
	erase := s.tenants(session.ScopeErase)
	erase.ownKeys().post("/v1/erasures", s.createErasure)
	erase.list("/v1/erasures", s.listErasures)
	erase.get("/v1/erasures/:erasure", s.readErasure)
	read, admin := s.tenants(session.SessionsRead), s.tenants(session.ScopeAdmin)
	read.list("/v1/holds", s.listHolds)
	read.get("/v1/sessions/:id/hold", s.readHold)
	admin.put("/v1/sessions/:id/hold", s.putHold)
	admin.delete("/v1/sessions/:id/hold", s.deleteHold)
}

// routeOperators has what operators do across tenants. A process without a login for that has none of it.
func (s *Server) routeOperators() {
	if s.Operators == nil {
		return
	}
	operator := routeGroup{s, request.Access{Kind: session.OperatorCaller}}
	operator.get("/v1/admin/key", s.readOwnOperatorKey)
	operator.show("/v1/admin/keys", s.createOperatorKey)
	operator.list("/v1/admin/keys", s.listOperatorKeys)
	operator.delete("/v1/admin/keys/:key", s.revokeOperatorKey)
	operator.get("/v1/admin/audit", s.listAudit, auditQuery...)
	operator.get("/v1/admin/audit/export", s.exportAudit, "after")

	operator.post("/v1/admin/jobs/retry", changeJobs(audit.JobRetry))
	operator.post("/v1/admin/jobs/cancel", changeJobs(audit.JobCancel))

	operator.show("/v1/admin/tenants", s.createTenant) // with a key, if it asks for one
	operator.list("/v1/admin/tenants", s.listTenants)
	operator.get("/v1/admin/sessions", s.listAllSessions, allSessionsQuery...)
	operator.get("/v1/admin/usage", s.readUsage, "from", "to", "format")
	operator.get("/v1/admin/usage/state", s.readStateOfAll)
	operator.get("/v1/admin/tenants/:tenant", s.readTenant)
	operator.patch("/v1/admin/tenants/:tenant", s.changeTenant)
	operator.delete("/v1/admin/tenants/:tenant", s.deleteTenant, "confirm")
	operator.list("/v1/admin/erasures", s.listErasures)
	operator.get("/v1/admin/erasures/:erasure", s.readErasure)
	operator.get("/v1/admin/tenants/:tenant/policy", s.readTenantPolicy)
	operator.ownKeys().put("/v1/admin/tenants/:tenant/policy", s.changeTenantPolicy(replaceLayer))
	operator.ownKeys().patch("/v1/admin/tenants/:tenant/policy", s.changeTenantPolicy(mergeLayer))
	operator.list("/v1/admin/tenants/:tenant/holds", s.listHolds)
	operator.get("/v1/admin/tenants/:tenant/hold", s.readHold)
	operator.put("/v1/admin/tenants/:tenant/hold", s.putHold)
	operator.delete("/v1/admin/tenants/:tenant/hold", s.deleteHold)
	operator.show("/v1/admin/tenants/:tenant/keys", s.createKey)
	operator.list("/v1/admin/tenants/:tenant/keys", s.listKeys)
	operator.show("/v1/admin/tenants/:tenant/keys/:key/rotate", s.rotateKey)
	operator.delete("/v1/admin/tenants/:tenant/keys/:key", s.revokeKey)
}

// routeAudit has who did what.
func (s *Server) routeAudit() {
	s.tenants(session.ScopeAdmin).get("/v1/audit", s.listAudit, auditQuery...)
	s.tenants(session.ScopeAdmin, session.ScopeExport).get("/v1/audit/export", s.exportAudit, "after")
}

// routeEvents has what happened.
func (s *Server) routeEvents() {
	s.tenants(session.SessionsRead).get("/v1/events", s.readEvents, eventsQuery...)
}

// observe gives a request its id, answers its error, recovers from its panic, and logs it in one line.
func (s *Server) observe(f *front, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		requestsInFlight.Inc()
		defer requestsInFlight.Dec()
		response := c.Response()
		traced, span := trace.Request(c.Request(), c.Path())
		c.SetRequest(traced)
		rc := &routed{Context: c, req: request.New(response, c.Request())}
		rc.req.Raw = response.Writer
		if s.draining.Load() || mayBeSmuggled(c.Request()) {
			response.Header()["Connection"] = connectionClose
		}
		rc.req.Route = c.Path()
		rc.req.Memory, rc.req.CPU = s.Memory, s.CPU
		rc.req.Param = c.Param
		err := f.ownError(&rc.req, recovered(s.Log, &rc.req, func() error { return routedTo(rc, next) }))
		rc.req.Free()
		if err != nil {
			s.answer(&rc.req, err, response.Committed)
		}
		s.log(&rc.req, began, response.Status, response.Size)
		count(&rc.req, began, response.Status)
		span.Answered(response.Status, rc.req.ID)
		if err != nil && response.Committed && rc.req.Truncated {
			panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
		}
		return nil
	}
}

// routedTo runs the handler of a request. Echo's own for OPTIONS says 204 to anybody.
func routedTo(rc *routed, next echo.HandlerFunc) error {
	if rc.Request().Method == http.MethodOptions && rc.Get(echo.ContextKeyHeaderAllow) != nil {
		return echo.MethodNotAllowedHandler(rc)
	}
	return next(rc)
}

var connectionClose = []string{"close"}

// mayBeSmuggled reports whether a request may have had a Content-Length beside its Transfer-Encoding, which net/http
// drops without a word. A proxy that goes by the other of the two would take what follows for another request, so that
// nothing may follow (RFC 9112, 6.1).
func mayBeSmuggled(r *http.Request) bool { return len(r.TransferEncoding) > 0 }

// ownError returns our error for one of Echo's.
func (f *front) ownError(req *request.Request, err error) error {
	switch {
	case errors.Is(err, echo.ErrNotFound):
		return request.Fail(request.NotFound, "there is no such route%s; GET /docs/api.html shows all",
			f.nearestRoute(req.R.URL.Path))
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return request.Fail("method_not_allowed", "%s", otherMethods(req))
	}
	return err
}
