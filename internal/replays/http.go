package replays

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
)

// handlers answer the requests about replays.
type handlers struct{ writers *policy.Writers }

var (
	errNone     = request.Fail(request.NotFound, "there is no such replay: GET /v1/admin/replays lists them")
	errNoReport = request.Fail(request.NotFound,
		"the replay has no report: it is made at the end, see its state at GET /v1/admin/replays/{id}")
)

// routes returns the routes of replays.
func routes(a *feature.API) []request.Route {
	read, admin := request.Tenants(session.SessionsRead), request.Tenants(session.ScopeAdmin).WithOwnKeys()
	h := handlers{a.Writers}
	const one = "/v1/admin/replays/:replay"
	return []request.Route{
		admin.Post("/v1/admin/replays", h.create),
		read.List("/v1/admin/replays", h.list),
		read.Get(one, h.read).About("replay", errNone),
		read.List(one+"/sessions", h.listSessions).About("replay", errNone),
		read.Get(one+"/report", h.report, "format").About("replay", errNone),
		admin.Do(one+"/cancel", h.cancel).About("replay", errNone),
	}
}

// create handles POST /v1/admin/replays.
func (h handlers) create(req *request.Request) error {
	r, err := decode(req.Body())
	if err != nil {
		return err
	}
	if err := h.resolve(req, r); err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return err
	}
	if err := req.Store.RequireTenant(req.Ctx, req.Tenant, r.tenant); err != nil {
		return err
	}
	begun, replayed, err := store{req.Store}.Create(req.Ctx, req.Tenant, r.replay, req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answer(req, begun)
}

func answer(req *request.Request, r Stored) error {
	return request.AnswerWork(req, r.State.Ended(), "/v1/admin/replays/"+r.ID.String(), answerOf(r))
}

func answerOf(r Stored) Replay {
	a := Replay{
		ID: r.ID, State: r.State, Windows: r.Windows, Filter: r.Filter, Sample: r.Sample, Seed: r.Seed,
		MaxMessages: r.MaxMessages, MaxBytes: r.MaxBytes, Error: r.Error, CreatedAt: r.CreatedAt,
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		Progress: ReplayProgress{
			Matched: r.Matched, TooShort: r.TooShort, Total: r.Total, Done: r.Done(), Measured: r.Measured,
			Failed: r.Failed, Skipped: r.Skipped, Outcomes: r.Outcomes, Contender: r.Contender,
		},
	}
	if a.Windows == nil {
		a.Windows = []int{}
	}
	if a.Progress.Skipped == nil {
		a.Progress.Skipped = []ReplaySkip{}
	}
	for _, c := range r.Contenders {
		a.Policies = append(a.Policies, ReplayPolicy{Name: c.Name, Source: c.Source, Policy: c.Patch})
	}
	return a
}

// read handles GET /v1/admin/replays/{replay}.
func (h handlers) read(req *request.Request) error {
	found, err := store{req.Store}.Read(req.Ctx, req.Tenant, req.PathID("replay"))
	return request.AnswerFound(req, found, err, answerOf)
}

// list handles GET /v1/admin/replays.
func (h handlers) list(req *request.Request) error {
	find := func(l *request.List) ([]Stored, error) {
		return store{req.Store}.List(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last Stored) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "replays", find, answerOf, place)
}

// listSessions handles GET /v1/admin/replays/{replay}/sessions.
func (h handlers) listSessions(req *request.Request) error {
	id := req.PathID("replay")
	find := func(l *request.List) ([]ReplaySession, error) {
		return store{req.Store}.Sessions(req.Ctx, req.Tenant, id, l.After.Order, l.Limit)
	}
	place := func(last ReplaySession) request.Place { return request.Place{Order: last.Place} }
	return request.AnswerList(req, "sessions of replay "+id.String(), find, request.AsIs, place)
}

// reportFormats are the forms of a report beside JSON.
var reportFormats = map[string]struct {
	mediaType []string
	write     func(*replay.Report, io.Writer) error
}{
	"csv":  {[]string{"text/csv; charset=utf-8"}, (*replay.Report).WriteCSV},
	"svg":  {[]string{"image/svg+xml"}, (*replay.Report).WriteSVG},
	"text": {[]string{"text/plain; charset=utf-8"}, (*replay.Report).WriteText},
}

// report handles GET /v1/admin/replays/{replay}/report.
func (h handlers) report(req *request.Request) error {
	name := req.Query().Choice("format", "json", "csv", "svg", "text")
	if err := req.Err(); err != nil {
		return err
	}
	stored, err := store{req.Store}.Report(req.Ctx, req.Tenant, req.PathID("replay"))
	switch {
	case err != nil:
		return err
	case stored == nil:
		return errNoReport
	}
	format, ok := reportFormats[name]
	if !ok {
		return req.Bytes(http.StatusOK, request.JSONType, stored)
	}
	var report replay.Report
	if err := json.Unmarshal(stored, &report); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := format.write(&report, &text); err != nil {
		return err
	}
	return req.Bytes(http.StatusOK, format.mediaType, text.Bytes())
}

// cancel handles POST /v1/admin/replays/{replay}/cancel.
func (h handlers) cancel(req *request.Request) error {
	found, replayed, err := store{req.Store}.Cancel(req.Ctx, req.Tenant, req.PathID("replay"), req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answer(req, found)
}
