package api

import (
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

func previewOf(p *compactor.Proposal, all bool) protocol.Preview {
	before, after := p.Tokens()
	answer := protocol.Preview{
		From: string(p.From), Through: p.Plan.Through, TokensBefore: before, TokensAfter: after,
		WouldChange: p.Changed, Due: p.Decision.Due(),
		Reason: p.Decision.Reason(), Why: p.Decision, Stages: p.Plan.Stages, Actions: p.Plan.Actions,
		Report: p.Report(),
	}
	if all {
		answer.Actions = p.Parts()
	}
	return answer
}

// previewSession handles POST /v1/sessions/{id}/preview.
func (s *Server) previewSession(req *request.Request) error {
	all := req.Query().Choice("actions", "changed", "all") == "all"
	if err := req.Err(); err != nil {
		return err
	}
	at := req.Address()
	found, err := s.Store.Session(req.Ctx, at)
	if err != nil {
		return err
	}
	order, err := s.previewOrder(req, at, req.Body())
	if err != nil {
		return err
	}
	snap, err := s.Store.Snapshot(req.Ctx, session.Key{Tenant: at.Tenant, Key: found.Key})
	if err != nil {
		return err
	}
	proposal, err := compactor.Propose(req.Ctx, s.Store, snap, order, nil)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, previewOf(proposal, all))
}

var previewFields = []string{"policy", "from"}

// previewOrder reads the body of a preview. No body is the compaction that an ordinary run would do.
func (s *Server) previewOrder(req *request.Request, at session.Address, body []byte) (o compactor.Request, err error) {
	o.Cause = compactor.CausePreview
	if len(body) == 0 {
		return o, nil
	}
	d, err := request.Open(body)
	if err != nil {
		return o, err
	}
	var changed rawjson.Span
	for name, value := range d.Fields(previewFields) {
		switch name {
		case "policy":
			changed = value
		case "from":
			o.From = readFrom(d, value)
		}
	}
	if changed != (rawjson.Span{}) {
		below, err := s.Store.SessionPolicy(req.Ctx, at)
		if err != nil {
			return o, err
		}
		o.Policy = ingest.PolicyOver(d, changed, below)
	}
	return o, d.Err()
}

// readFrom reads where a compaction starts.
func readFrom(d *request.Document, value rawjson.Span) compactor.From {
	text, ok := d.Text("/from", value, session.MaxIDBytes)
	from := compactor.From(text)
	if ok && from != compactor.FromCheckpoint && from != compactor.FromLog {
		d.Wrong("/from", request.InvalidRequest, "from must be checkpoint or log, or left out for what a run would "+
			"do, not %q",
			spelling.Shorten(text))
	}
	return from
}
