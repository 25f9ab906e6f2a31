package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
)

// createReplay handles POST /v1/admin/replays.
func (s *Server) createReplay(req *request.Request) error {
	r, err := decodeReplay(req.Body())
	if err != nil {
		return err
	}
	if err := s.resolveContenders(req, r); err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return err
	}
	if r.tenant != "" && r.tenant != req.Tenant.String() {
		return fmt.Errorf("replay of tenant %s: %w", r.tenant, session.ErrForbidden)
	}
	begun, replayed, err := req.Store.CreateReplay(req.Ctx, req.Tenant, r.replay, req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answerReplay(req, begun)
}

func answerReplay(req *request.Request, r session.Replay) error {
	return answerWork(req, r.State.Ended(), "/v1/admin/replays/"+r.ID.String(), replayOf(r))
}

func replayOf(r session.Replay) protocol.Replay {
	a := protocol.Replay{
		ID: r.ID, State: r.State, Windows: r.Windows, Filter: r.Filter, Sample: r.Sample, Seed: r.Seed,
		MaxMessages: r.MaxMessages, MaxBytes: r.MaxBytes, Error: r.Error, CreatedAt: r.CreatedAt,
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		Progress: protocol.ReplayProgress{
			Matched: r.Matched, TooShort: r.TooShort, Total: r.Total, Done: r.Done(), Measured: r.Measured,
			Failed: r.Failed, Skipped: r.Skipped, Outcomes: r.Outcomes, Contender: r.Contender,
		},
	}
	if a.Windows == nil {
		a.Windows = []int{}
	}
	if a.Progress.Skipped == nil {
		a.Progress.Skipped = []session.ReplaySkip{}
	}
	for _, c := range r.Contenders {
		a.Policies = append(a.Policies, protocol.ReplayPolicy{Name: c.Name, Source: c.Source, Policy: c.Patch})
	}
	return a
}

// readReplay handles GET /v1/admin/replays/{replay}.
func (s *Server) readReplay(req *request.Request) error {
	found, err := req.Store.Replay(req.Ctx, req.Tenant, req.PathID("replay"))
	return request.AnswerFound(req, found, err, replayOf)
}

// listReplays handles GET /v1/admin/replays.
func (s *Server) listReplays(req *request.Request) error {
	find := func(l *request.List) ([]session.Replay, error) {
		return req.Store.Replays(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last session.Replay) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "replays", find, replayOf, place)
}

// listReplaySessions handles GET /v1/admin/replays/{replay}/sessions.
func (s *Server) listReplaySessions(req *request.Request) error {
	id := req.PathID("replay")
	find := func(l *request.List) ([]session.ReplaySession, error) {
		return req.Store.ReplaySessions(req.Ctx, req.Tenant, id, l.After.Order, l.Limit)
	}
	place := func(last session.ReplaySession) request.Place { return request.Place{Order: last.Place} }
	return request.AnswerList(req, "sessions of replay "+id.String(), find, request.AsIs, place)
}

// reportFormats are the forms of a report beside JSON.
var reportFormats = map[string]struct {
	mediaType []string
	write     func(*replay.Report, io.Writer) error
}{
	"csv":  {csvType, (*replay.Report).WriteCSV},
	"svg":  {[]string{"image/svg+xml"}, (*replay.Report).WriteSVG},
	"text": {[]string{"text/plain; charset=utf-8"}, (*replay.Report).WriteText},
}

// readReplayReport handles GET /v1/admin/replays/{replay}/report.
func (s *Server) readReplayReport(req *request.Request) error {
	name := req.Query().Choice("format", "json", "csv", "svg", "text")
	if err := req.Err(); err != nil {
		return err
	}
	stored, err := req.Store.ReplayReport(req.Ctx, req.Tenant, req.PathID("replay"))
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

// cancelReplay handles POST /v1/admin/replays/{replay}/cancel.
func (s *Server) cancelReplay(req *request.Request) error {
	found, replayed, err := req.Store.CancelReplay(req.Ctx, req.Tenant, req.PathID("replay"), req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answerReplay(req, found)
}
