package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/api/stateless"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// maxWait is how many seconds a caller can wait for a compaction.
const maxWait = 60

// compactSession handles POST /v1/sessions/{id}/compact.
func (s *Server) compactSession(req *request.Request) error {
	wait := req.Query().Seconds("wait", maxWait)
	if err := req.Err(); err != nil {
		return err
	}
	run, replayed, err := s.waiter.Compact(req, req.Address(), wait)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	location := "/v1/sessions/" + escapeID(req.SessionID) + "/runs/" + run.ID.String()
	return request.AnswerWork(req, run.State.Ended(), location, run)
}

// readRun handles GET /v1/sessions/{id}/runs/{run}.
func (s *Server) readRun(req *request.Request) error {
	found, err := req.Store.Run(req.Ctx, req.Address(), req.PathID("run"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// listRuns handles GET /v1/sessions/{id}/runs.
func (s *Server) listRuns(req *request.Request) error {
	at := req.Address()
	find := func(l *request.List) ([]session.Run, error) { return req.Store.Runs(req.Ctx, at, l.Page()) }
	place := func(last session.Run) request.Place { return request.PlaceIn(last.TriggeredAt, last.ID) }
	return request.AnswerList(req, "runs of "+at.ID, find, request.AsIs, place)
}

func (s *Server) previewOf(p *compactor.Proposal, all bool) protocol.Preview {
	before, after := p.Tokens()
	answer := protocol.Preview{
		From: string(p.From), Through: p.Plan.Through, TokensBefore: before, TokensAfter: after,
		WouldChange: p.Changed, Due: p.Decision.Due(),
		Reason: p.Decision.Reason(), Why: p.Decision, Stages: p.Plan.Stages, Actions: p.Plan.Actions,
		Report: p.Report(), Summaries: p.Wants(s.Caller),
	}
	if all {
		answer.Actions = p.Parts()
	}
	return answer
}

// previewSession handles POST /v1/sessions/{id}/preview.
func (s *Server) previewSession(req *request.Request) error {
	q := req.Query()
	all, units := q.Choice("actions", "changed", "all") == "all", q.Flag("units")
	from := q.Integer("from_seq", 1, session.MaxSessionMessages+1, 1)
	limit := int(q.Integer("limit", 1, session.MaxMessagePage, defaultMessages))
	if err := req.Err(); err != nil {
		return err
	}
	at := req.Address()
	found, err := req.Store.Session(req.Ctx, at)
	if err != nil {
		return err
	}
	order, err := s.previewOrder(req, at, req.Body())
	if err != nil {
		return err
	}
	key := session.Key{Tenant: at.Tenant, Key: found.Key}
	order.Window = compactor.WindowWithin(s.Memory.Size() / proposalsAtOnce)
	order.Room = compactor.RoomWithin(s.Memory.Size())
	weight, err := s.admitProposal(req, key, order)
	if err != nil {
		return err
	}
	snap, err := req.Store.Snapshot(req.Ctx, key)
	if err != nil {
		return err
	}
	var proposal *compactor.Proposal
	bytes := weight.Checkpoint + weight.Tail
	err = heavy(req, bytes, order.Ask, func(ctx context.Context, cpu admit.Processors) (err error) {
		order.CPU = cpu
		proposal, err = compactor.Propose(ctx, req.Store, snap, order)
		return err
	})
	if err != nil {
		return err
	}
	answer := s.previewOf(proposal, all)
	if !units || !proposal.Changed {
		return req.JSON(http.StatusOK, answer)
	}
	return req.Heavy(int64(len(proposal.Made.Body)), func() error {
		return answerWithUnits(req, answer, proposal, from, limit)
	})
}

// answerWithUnits answers with a preview and a page of the view that it makes.
func answerWithUnits(
	req *request.Request, answer protocol.Preview, p *compactor.Proposal, from int64, limit int,
) error {
	made, err := p.Placed()
	if err != nil {
		return err
	}
	page, err := unitsOf(req.Ctx, made, "", from, limit)
	if err != nil {
		return err
	}
	head, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	body := req.Buffer()
	body.B = append(append(body.B, head[:len(head)-1]...), `,"units":[`...)
	body.B = append(page.appendUnits(body.B), "]}"...)
	return req.Bytes(http.StatusOK, request.JSONType, body.B)
}

// proposalsAtOnce is the number of previews of large sessions that the process can always hold in memory.
const proposalsAtOnce = 4

// admitProposal waits until there is the memory for a proposal for a session, which the request holds until it ends.
func (s *Server) admitProposal(
	req *request.Request, key session.Key, order compactor.Request,
) (weight postgres.Weight, err error) {
	weigh := req.Store.Weight
	if order.From == compactor.FromLog {
		weigh = req.Store.LogWeight
	}
	if weight, err = weigh(req.Ctx, key); err != nil {
		return weight, err
	}
	return weight, req.Admit(compactor.Memory(weight, order.Window))
}

var previewFields = []string{"policy", "from", "ask"}

// previewOrder reads the body of a preview. No body is the compaction that an ordinary run would do.
func (s *Server) previewOrder(req *request.Request, at session.Address, body []byte) (o compactor.Request, err error) {
	o.Cause, o.Caller = compactor.CausePreview, s.Caller
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
		case "ask":
			o.Ask = d.Boolean("/ask", value)
		}
	}
	if changed != (rawjson.Span{}) {
		below, err := req.Store.SessionPolicy(req.Ctx, at)
		if err != nil {
			return o, err
		}
		o.Policy = ingest.PolicyOver(d, changed, below, s.writers)
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

// compactMessages handles POST /v1/compact: messages in, compacted messages out, and nothing stored.
func (s *Server) compactMessages(req *request.Request) error {
	below, err := s.tenantLayers(req)
	if err != nil {
		return err
	}
	strict := req.Query().Flag(strictParameter)
	var b *stateless.Body
	size := int64(len(req.Body()))
	err = req.Heavy(size, func() (err error) {
		b, err = decodeCompact(req.Body())
		return err
	})
	if err == nil {
		err = b.Admit(req) // while it holds no processor
	}
	if err != nil {
		return err
	}
	b.Tells, b.Strict = true, strict
	var answer []byte
	err = heavy(req, size, b.Ask, func(ctx context.Context, cpu admit.Processors) (err error) {
		answer, err = s.compacted(ctx, cpu, req, b, below)
		return err
	})
	if err != nil {
		return err
	}
	return req.Bytes(http.StatusOK, request.JSONType, answer)
}

// compacted returns the answer to a request with messages, which it compacts.
func (s *Server) compacted(
	ctx context.Context, cpu admit.Processors, req *request.Request, b *stateless.Body, below session.PolicyLayers,
) ([]byte, error) {
	b.Resolve(below, s.writers)
	b.Check()
	snap, system, err := b.Snapshot()
	if err != nil {
		return nil, err
	}
	proposal, err := b.Propose(ctx, cpu, req.Tenant, s.Caller, snap)
	if err != nil {
		return nil, err
	}
	return answerCompacted(req, b, proposal, system, s.Caller)
}

func decodeCompact(body []byte) (*stateless.Body, error) {
	b := &stateless.Body{Force: true}
	if err := b.Open(body); err != nil {
		return nil, err
	}
	for name, value := range b.Fields(stateless.Fields) {
		b.Set(name, value)
	}
	return b, nil
}

// answerCompacted returns the answer with the messages that a proposal makes, byte for byte, and with what was done to
// them.
func answerCompacted(
	req *request.Request, b *stateless.Body, p *compactor.Proposal, system [][]byte, asks *modelcall.Caller,
) ([]byte, error) {
	report := stateless.FiguresOf(p, b.IncludeResults, asks)
	report.Warnings = b.Warnings
	figures, err := json.Marshal(report)
	if err != nil {
		return nil, err
	}
	out := req.Buffer()
	out.B = append(append(out.B, figures[:len(figures)-1]...), `,"format":`...)
	out.B = rawjson.Quote(out.B, []byte(b.Format))
	messages, err := stateless.Messages(p)
	if err != nil {
		return nil, err
	}
	made, err := b.Render(req.Ctx, append(system, messages...)...)
	if err != nil {
		return nil, err
	}
	if len(made.Repairs) > 0 {
		out.B = view.AppendMember(out.B, "repairs", made.Repairs)
	}
	if len(made.ToolNames) > 0 {
		out.B = view.AppendMember(out.B, "tool_names", made.ToolNames)
	}
	separate := 0
	if provider.SeparatesSystem(b.Format) {
		separate = made.System
	}
	if prompt := wire.AppendSystem(b.Format, nil, made.Bodies[:separate]); len(prompt) > 0 && string(prompt) != "[]" {
		out.B = append(append(out.B, `,"system":`...), prompt...)
	}
	out.B = append(out.B, `,"messages":[`...)
	out.B = append(out.B, bytes.Join(made.Bodies[separate:], []byte{','})...)
	out.B = append(out.B, "]}"...)
	return out.B, nil
}
