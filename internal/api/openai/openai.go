// Package openai answers the part of OpenAI's API that Varve has: Conversations, whose items are the messages of a
// session, and the compaction of Responses. docs/openai.md is its contract.
//
// Start at Register, the list of its routes; then conversations.go. item.go converts between messages and items,
// compact.go compacts. It owns no tables.
package openai

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// Server answers requests in OpenAI's dialect.
type Server struct {
	Writers *policy.Writers
	Counter *ingest.Counter
	Waiter  *request.Waiter
	// Awake brings a session back if it is cold.
	Awake func(ctx context.Context, at session.Address) error
	// Served counts a view that a reader got, with its tokens.
	Served func(at session.Address, tokens int64)
}

// Adder registers a route that a scope opens.
type Adder func(needs session.Scope, method, path string, h func(*request.Request) error, query ...string)

// Register registers every route of the dialect, with the parameters of its query. Clients send view and fit
// with every request.
func (s *Server) Register(add Adder) {
	add(session.SessionsWrite, "POST", "/v1/conversations", s.createConversation, "view", "fit")
	add(session.SessionsRead, "GET", "/v1/conversations/:id", s.readConversation, "view", "fit")
	add(session.SessionsWrite, "POST", "/v1/conversations/:id", s.updateConversation, "view", "fit")
	add(session.ScopeErase, "DELETE", "/v1/conversations/:id", s.deleteConversation, "view", "fit")
	add(session.SessionsWrite, "POST", "/v1/conversations/:id/items", s.createItems, "view", "fit")
	add(session.SessionsRead, "GET", "/v1/conversations/:id/items", s.listItems, "view", "fit",
		"after", "limit", "order")
	add(session.SessionsRead, "GET", "/v1/conversations/:id/items/:item", s.readItem, "view", "fit")
	add(session.SessionsWrite, "DELETE", "/v1/conversations/:id/items/:item", s.deleteItem, "view", "fit")
	add(session.ScopeCompact, "POST", "/v1/responses/compact", s.compactResponses, "view", "fit",
		"tools", "window_tokens")
}

// ErrorType returns the type of an error as OpenAI's API names it.
func ErrorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// Problem returns an error in the shape of OpenAI's API, and its status there.
func Problem(f *request.Failure, status int) (any, int) {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	e := protocol.OpenAIError{Message: f.Detail, Type: ErrorType(status), Code: f.Code}
	if len(f.Problems) > 0 {
		param := paramOf(f.Problems[0].Pointer)
		e.Param = &param
	}
	return map[string]protocol.OpenAIError{"error": e}, status
}

// paramOf writes a JSON pointer as OpenAI does: "/items/0/content" is "items[0].content".
func paramOf(pointer string) string {
	var param strings.Builder
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		_, err := strconv.Atoi(step)
		switch {
		case err == nil && param.Len() > 0:
			param.WriteString("[" + step + "]")
		case param.Len() > 0:
			param.WriteString("." + step)
		default:
			param.WriteString(step)
		}
	}
	return param.String()
}

// errNoItem is the error of an item that does not exist, or not any more.
var errNoItem = request.Fail(request.NotFound, "there is no such item in this conversation: GET "+
	"/v1/conversations/{id}/items lists them")

// maxPageBytes ends a page of large messages before its limit.
const maxPageBytes = 16 << 20
