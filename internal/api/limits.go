package api

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// storing are the routes that store messages or sessions; those that make a session are the first.
var (
	making = []storingRoute{{"POST", "/v1/sessions"}, {"PUT", "/v1/sessions/:id"}, {"POST", "/v1/conversations"},
		{"POST", "/v1/sessions/:id/fork"}}
	storing = append(slices.Clone(making), storingRoute{"POST", "/v1/sessions/:id/messages"},
		storingRoute{"PUT", "/v1/sessions/:id/messages"}, storingRoute{"PATCH", "/v1/sessions/:id/messages/:message"},
		storingRoute{"POST", "/v1/imports"}, storingRoute{"POST", "/v1/imports/:import"},
		storingRoute{"POST", "/v1/sessions/:id/results"}, storingRoute{"POST", "/v1/conversations/:id/items"})
)

// storingRoute is a route that stores.
type storingRoute struct{ method, path string }

// charge takes a request off its tenant's quotas.
func (s *Server) charge(req *request.Request, path string) error {
	if req.Caller.Kind == session.OperatorCaller {
		return nil
	}
	account := s.quotas.Account(req.Ctx, req.Tenant)
	if err := account.Request(time.Now(), req.R.ContentLength, req.W.Header()); err != nil {
		return err
	}
	if account.CountsBytes() && req.R.Body != nil && req.R.Body != http.NoBody {
		req.R.Body = &chargedBody{req.R.Body, account}
	}
	route := storingRoute{req.R.Method, path}
	if !slices.Contains(storing, route) {
		return nil
	}
	err := account.Store(slices.Contains(making, route))
	if err != nil && path == "/v1/sessions/:id" {
		if _, missing := req.Store.Session(req.Ctx, req.Address()); missing == nil {
			return nil // it changes one that is there
		}
	}
	return err
}

// chargedBody takes what is read of a body off the tenant's quota.
type chargedBody struct {
	io.ReadCloser
	account *admit.Account
}

func (b *chargedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.account.Sent(n)
	return n, err
}

// quotaFailure returns what to answer to a request that exceeds a quota, nil for other errors.
func quotaFailure(err error) *request.Failure {
	var exceeded *admit.ExceededError
	if !errors.As(err, &exceeded) {
		return nil
	}
	f := &request.Failure{Code: "quota_exceeded", RetryAfter: max(exceeded.After, time.Second),
		Detail: exceeded.Error() + ": nothing was done; GET /v1/limits shows all quotas, try again after Retry-After"}
	if exceeded.Quota == "requests_per_second" {
		f.Code = rateLimited
	}
	return f
}

// limits are those that are the same everywhere.
var limits = map[string]int64{
	"body_bytes": session.MaxBodyBytes, "message_bytes": session.MaxMessageBytes,
	"messages_per_append": session.MaxBatchMessages, "messages_per_put": session.MaxWholeMessages,
	"messages_per_session": session.MaxSessionMessages, "tail_bytes": session.MaxTailBytes,
	"json_depth": session.MaxJSONDepth, "json_values": session.MaxJSONNodes, "number_bytes": session.MaxNumberBytes,
	"id_bytes": session.MaxIDBytes, "client_id_bytes": session.MaxClientIDBytes,
	"call_id_bytes": session.MaxCallIDBytes, "metadata_keys": session.MaxMetadataKeys,
	"metadata_key_bytes": session.MaxMetadataKey, "metadata_value_bytes": session.MaxMetadataValue,
	"page": session.MaxPage, "message_page": session.MaxMessagePage,
	"idempotency_key_bytes": session.MaxIdempotencyKey, "tokens_per_session": session.MaxLiveTokens,
	"uploads_per_session": session.MaxUploads,
}

// readLimits handles GET /v1/limits: what bounds the tenant's requests, and what of it is used.
func (s *Server) readLimits(req *request.Request) error {
	u := s.quotas.Account(req.Ctx, req.Tenant).Usage(time.Now())
	spent, err := modelcall.Calls{Store: req.Store}.Spending(req.Ctx, req.Tenant, time.Now())
	if err != nil {
		return err
	}
	a := protocol.Limits{
		Object: "limits", Limits: limits, Connections: map[string]protocol.Share{}, Quotas: u.Quotas,
		Used: protocol.Used{
			RequestsLeft: u.RequestsLeft, BytesLeft: u.BytesLeft, Imports: u.Imports, Stored: u.Stored, Models: spent,
		},
	}
	for _, class := range []admit.Class{admit.Interactive, admit.Bulk} {
		all, tenant := s.Gate.Size(class)
		a.Connections[class.String()] = protocol.Share{Process: all, Tenant: tenant}
	}
	return req.JSON(http.StatusOK, a)
}
