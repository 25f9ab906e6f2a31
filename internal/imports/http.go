package imports

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// handlers answer the requests about imports.
type handlers struct {
	api          *feature.API
	store        store
	bytes, lines int64 // of one body
}

var errNone = request.Fail(request.NotFound, "there is no such import: GET /v1/imports lists them")

// routes returns what makes the routes of imports, with the bounds of a body. An import may bring policies.
func routes(bytes, lines int64) func(*feature.API) []request.Route {
	return func(a *feature.API) []request.Route {
		read := request.Tenants(session.SessionsRead)
		bring := request.Tenants(session.SessionsWrite, session.ScopePolicy)
		h := handlers{a, store{a.Store}, bytes, lines}
		const one = "/v1/imports/:import"
		return []request.Route{
			bring.Feed("/v1/imports", h.create, "from", "session", "settings", "branch", "strict", "more"),
			read.List("/v1/imports", h.list),
			read.Get(one, h.read, "wait").About("import", errNone),
			bring.Feed(one, h.resume, "from_line", "settings", "branch", "strict", "more").About("import", errNone),
			read.Get(one+"/lines", h.listLines, "from", "limit", "outcome").About("import", errNone),
		}
	}
}

// create handles POST /v1/imports: the body is imported while it arrives.
func (h handlers) create(req *request.Request) error {
	q := req.Query()
	from := q.Choice("from", sources()...)
	id := q.Text("session", "")
	f := &feed{First: 1}
	readFeed(q, f)
	if problem := session.CheckID(id); id != "" && problem != "" {
		q.Wrong("session", request.InvalidRequest, "the session's id %s", problem)
	}
	if err := req.Err(); err != nil {
		return err
	}
	key := ""
	if id := req.Idempotency(); id != nil {
		key = id.Key
	}
	begun, err := h.store.begin(req.Ctx, req.Tenant, key, from, id)
	if err != nil {
		return err
	}
	return h.feed(req, f, begun)
}

// resume handles POST /v1/imports/{import}: the rest of the lines, or the next lines.
func (h handlers) resume(req *request.Request) error {
	q := req.Query()
	f := &feed{First: q.Integer("from_line", 1, maxLine, 1)}
	readFeed(q, f)
	if err := req.Err(); err != nil {
		return err
	}
	found, err := h.store.resume(req.Ctx, req.Tenant, req.PathID("import"))
	if err != nil {
		return err
	}
	return h.feed(req, f, found)
}

// readFeed reads what both requests say of their body.
func readFeed(q *request.Query, f *feed) {
	f.More, f.Strict = q.Flag("more"), q.Flag("strict")
	f.Settings = []byte(q.Text("settings", ""))
	f.Branch = q.Text("branch", "")
}

// maxLine bounds the numbers of lines.
const maxLine = 1 << 40

// feed writes the request's body into an import, and answers with the import as it is then.
func (h handlers) feed(req *request.Request, f *feed, i stored) error {
	end, err := h.api.Quotas.Account(req.Ctx, req.Tenant).Import()
	if err != nil {
		return err
	}
	defer end()
	req.Ctx = req.Base
	req.W.Header().Set("Location", "/v1/imports/"+i.ID.String())
	f.stored = i
	f.Store, f.Awake = h.store, h.api.Awake
	f.Writers = h.api.Writers
	f.Tenant = req.Tenant
	f.CPU = req.Processors()
	f.ChangedBy = req.KeyDigest
	f.Stopping = h.api.Stopping
	f.bodyBytes, f.bodyLines = h.bytes, h.lines
	body, err := req.File()
	if err == nil {
		defer body.Close()
		err = f.Run(req.Ctx, body)
	}
	if err != nil {
		// The request may be gone. One that took the import over decides its state.
		why := h.api.Explain(err)
		gone := req.R.Context().Err() != nil || errors.Is(err, io.ErrUnexpectedEOF)
		if gone || errors.Is(err, context.Canceled) || errors.Is(err, request.ErrClientGone) {
			why = "the client hung up before the last line: send the rest of the lines"
		}
		if !f.State.Ended() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Ctx), batchTimeout)
			defer cancel()
			_, _ = h.store.endAttempt(ctx, req.Tenant, f.stored, protocol.ImportQueued, why)
		}
		req.Drain()
		return err
	}
	status := http.StatusAccepted // it waits for more lines
	switch {
	case i.State.Ended(): // before this request
		req.W.Header().Set("Idempotent-Replayed", "true")
		status = http.StatusOK
	case f.State.Ended():
		status = http.StatusCreated
	}
	return req.JSON(status, answer(f.stored))
}

// read handles GET /v1/imports/{import}.
func (h handlers) read(req *request.Request) error {
	wait := req.Query().Seconds("wait", 60)
	if err := req.Err(); err != nil {
		return err
	}
	look := func() (stored, error) { return h.store.read(req.Ctx, req.Tenant, req.PathID("import")) }
	found, err := look()
	if err == nil && wait > 0 {
		up := time.Now().Add(wait)
		ctx, cancel := req.Extend(up)
		defer cancel()
		req.Ctx = ctx
		idle := func(i stored) bool { return i.State != protocol.ImportRunning }
		found, err = request.Until(ctx, h.api.Waiter, req.Tenant, found.ID, found, up, idle, look)
	}
	return request.AnswerFound(req, found, err, answer)
}

// list handles GET /v1/imports.
func (h handlers) list(req *request.Request) error {
	find := func(l *request.List) ([]stored, error) {
		return h.store.list(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last stored) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "imports", find, answer, place)
}

// lineOutcomes are the values of outcome; "" is every line.
var lineOutcomes = []string{
	"", string(protocol.LineCreated), string(protocol.LineExists), string(protocol.LineStored),
	string(protocol.LineDuplicate),
	string(protocol.LineChecked), string(protocol.LineSkipped), string(protocol.LineRejected),
}

// listLines handles GET /v1/imports/{import}/lines.
func (h handlers) listLines(req *request.Request) error {
	q := req.Query()
	limit := int(q.Integer("limit", 1, session.MaxMessagePage, 100))
	r := selected{
		From: q.Integer("from", 1, maxLine, 1), Limit: limit + 1,
		Outcome: protocol.LineOutcome(q.Choice("outcome", lineOutcomes...)),
	}
	if err := req.Err(); err != nil {
		return err
	}
	found, err := h.store.lines(req.Ctx, req.Tenant, req.PathID("import"), r)
	if err != nil {
		return err
	}
	page := protocol.ImportLines{Data: found[:min(limit, len(found))], HasMore: len(found) > limit}
	if page.HasMore {
		page.Next = &found[limit].N
	}
	return req.JSON(http.StatusOK, page)
}
