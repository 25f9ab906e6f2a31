package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tools"
)

// maxMCPBody is how large a request over MCP is: calls have arguments, not contents.
const maxMCPBody = 256 << 10

// sessionHeader names the session of a request that came with a tenant's key; the query does, too.
const sessionHeader = "X-Varve-Session"

var (
	errForeignOrigin = request.Fail("forbidden", "the page that sent this is of another origin: an agent sends no "+
		"Origin header; VARVE_MCP_ORIGINS lists the origins of pages that may")
	errNoMCPSession = request.Fail(request.InvalidRequest, "with a key of the tenant, name the session: "+
		"/mcp?session=ID or the header X-Varve-Session; a session token (POST /v1/sessions/{id}/tokens) needs "+
		"neither, and is what an agent should hold")
	errOneSession = request.Fail(request.InvalidRequest,
		"session and X-Varve-Session name different sessions: send one")
)

// accepted is what the protocol wants a client to accept. Answers are JSON, whatever it says.
var accepted = []string{"application/json, text/event-stream"}

// mcpOptions keep nothing between two requests, so that any replica answers any of them.
var mcpOptions = &mcp.StreamableHTTPOptions{
	Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxMCPBody,
	// Every request has a token, so that a page that reaches this address by a name of its own gains nothing; a proxy
	// on the same machine keeps the public name.
	DisableLocalhostProtection: true,
}

// serveMCP handles POST /mcp: the session of a token, or the one that a request with a tenant's key names.
func (s *Server) serveMCP(req *request.Request) error {
	at, err := mcpAddress(req)
	if err != nil {
		return err
	}
	if !req.Caller.Bound() { // a token ends with its session
		if _, err := req.Store.Session(req.Ctx, at); err != nil {
			return err
		}
	}
	caller, id := req.Caller, req.ID
	runner := &tools.Runner{Store: req.Store, At: at, May: caller.May, Memory: s.Memory, CPU: s.CPU}
	account, batch := s.quotas.Account(req.Ctx, req.Tenant), batch{}
	server := tools.NewMCP(config.Version(), tools.All(caller.May),
		func(ctx context.Context, name string, given []byte) *mcp.CallToolResult {
			// An older client's call continues when the client is gone, so that it must not touch the request.
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			done, err := batch.next(ctx, account)
			if err != nil {
				return (&tools.Answer{Text: failureOf(err).Detail, IsError: true}).MCP()
			}
			defer done()
			answer, err := s.runTool(ctx, runner, viaMCP, name, given)
			if errors.Is(err, session.ErrNotFound) { // the session may be cold
				if err = s.awake(ctx, at); err == nil {
					answer, err = s.runTool(ctx, runner, viaMCP, name, given)
				}
			}
			if err != nil {
				if failed := failureOf(err); !errors.Is(err, context.Canceled) && !slices.Contains(shed, failed.Code) {
					s.Log.Error("tool failed", "request_id", id, "tool", name, "err", err)
				}
				answer = &tools.Answer{Text: failureOf(err).Detail, IsError: true}
			}
			return answer.MCP()
		})
	req.W.Header()["Cache-Control"] = request.NoStore
	req.R.Header["Accept"] = accepted
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, mcpOptions)
	handler.ServeHTTP(req.W, req.R.WithContext(req.Ctx))
	return nil
}

// batch are the calls of one request, which the protocol's older versions allow. It is as many requests as it holds:
// they run one after the other, and each is taken off the tenant's quotas, the first one as the request itself.
type batch struct {
	mu    sync.Mutex
	calls int
}

// next waits for the call before to end. The caller calls done when its own has.
//
// Errors: that of ctx, *admit.ExceededError.
func (b *batch) next(ctx context.Context, account *admit.Account) (done func(), err error) {
	b.mu.Lock()
	b.calls++
	if err = ctx.Err(); err == nil && b.calls > 1 {
		err = account.Request(time.Now(), 0, http.Header{})
	}
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	return b.mu.Unlock, nil
}

// mcpAddress returns the session that a request is about.
func mcpAddress(req *request.Request) (at session.Address, err error) {
	q := req.Query()
	asked := q.Text("session", "")
	header := req.R.Header.Get(sessionHeader)
	if err := req.Err(); err != nil {
		return at, err
	}
	if asked != "" && header != "" && asked != header {
		return at, errOneSession
	}
	if asked == "" {
		asked = header
	}
	switch {
	case req.Caller.Bound() && asked != "" && asked != req.Caller.Session:
		return at, errOther
	case req.Caller.Bound():
		at = req.Caller.Address()
	case asked == "":
		return at, errNoMCPSession
	default:
		at = session.Address{Tenant: req.Tenant, ID: asked}
	}
	if problem := session.CheckID(at.ID); problem != "" {
		return at, session.Invalid("session", request.InvalidRequest, "the session's id %s", problem)
	}
	req.SessionID = at.ID
	return at, nil
}

// sameOrigin refuses requests that a page of another origin sent, which would use a browser to reach a session.
func (s *Server) sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	protection := http.NewCrossOriginProtection()
	for _, origin := range s.Origins {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			panic(err) // the settings were validated
		}
	}
	return func(c echo.Context) error {
		if protection.Check(c.Request()) != nil {
			return errForeignOrigin
		}
		return next(c)
	}
}
