package api

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
)

// maxStatelessMessages is how many messages one request can have compacted.
const maxStatelessMessages = 100_000

// compactMessages is POST /v1/compact: messages in, compacted messages out, and nothing stored. It has no effect, so an
// Idempotency-Key says nothing to it.
func (s *Server) compactMessages(req *request.Request) error {
	req.Query()
	body := req.Body()
	if err := req.Err(); err != nil {
		return err
	}
	layers, err := s.tenantLayers(req, session.Address{})
	if err != nil {
		return err
	}
	d := statelessBody{Document: request.Document{Data: body}, layers: layers, windows: s.Models, force: true}
	if err := d.read(); err != nil {
		return err
	}
	snap, system, err := d.snapshot()
	if err != nil {
		return err
	}
	proposal, err := compactor.ProposeAlone(req.Ctx, snap, *d.policy, d.force)
	if err != nil {
		return err
	}
	return answerStateless(req, &d, proposal, system)
}

// statelessBody is the body of POST /v1/compact.
type statelessBody struct {
	request.Document
	layers         session.PolicyLayers // what its policy is put on top of
	windows        *models.Registry
	format         session.Format
	messages       []rawjson.Span
	policy         *policy.Policy
	model          string
	window         int // 0: that of the model
	overhead       int
	force          bool // compact what is below its trigger, too
	includeResults bool
	large          bool // it has more values than one message may have: each must be counted
}

var statelessFields = []string{"format", "messages", "policy", "model", "window_tokens", "overhead_tokens", "force", "include_results"}

// read checks the body and finds its members. What is wrong with them is noted, to be told with what is wrong with the
// messages.
func (d *statelessBody) read() error {
	limits := batchLimits
	limits.Nodes = 0
	if err := d.Check(limits); err != nil {
		return err
	}
	d.large = rawjson.Check(d.Data, batchLimits) != nil
	for name, value := range d.Members("", rawjson.Value(d.Data), statelessFields) {
		if err := d.set(name, value); err != nil {
			return err
		}
	}
	d.setWindow()
	d.checkMembers()
	if d.policy != nil || len(d.Problems) > 0 {
		return nil
	}
	tenants, err := tenantPolicyOf(&d.Document, d.layers)
	d.policy = tenants
	return err
}

// checkMembers requires what has to be there, and what has to fit together.
func (d *statelessBody) checkMembers() {
	if d.messages == nil && !d.Has("/messages") {
		d.Wrong("/messages", request.InvalidRequest, "messages is missing: an array of 1 to %d messages", maxStatelessMessages)
	}
	if d.format == "" && !d.Has("/format") {
		d.Wrong("/format", request.InvalidRequest, "format is missing: say %s", request.Formats())
	}
	if d.window > 0 && d.overhead >= d.window && !d.Has("/window_tokens") && !d.Has("/overhead_tokens") {
		d.Wrong("/overhead_tokens", request.InvalidRequest, "%d is not less than window_tokens, which is %d", d.overhead, d.window)
	}
}

// setWindow gives messages whose model is named the window of that model, unless the request says another.
func (d *statelessBody) setWindow() {
	switch {
	case d.window > 0:
	case d.model != "":
		d.window, _ = windowOf(&d.Document, d.windows, "/model", d.model)
	default:
		d.window = session.DefaultWindowTokens
	}
}

func (d *statelessBody) set(name string, value rawjson.Span) (err error) {
	switch name {
	case "format":
		d.format = d.Format(value)
	case "messages":
		d.messages = d.batch(value)
	case "policy":
		d.policy, err = policyOver(&d.Document, value, func() (session.PolicyLayers, error) { return d.layers, nil })
	case "model":
		d.model, _ = d.Text("/model", value, session.MaxIDBytes)
	case "window_tokens":
		d.window = int(d.Integer("/window_tokens", value, minWindowTokens, maxWindowTokens))
	case "overhead_tokens":
		d.overhead = int(d.Integer("/overhead_tokens", value, 0, maxOverheadTokens))
	case "force":
		d.force = d.Boolean("/force", value)
	case "include_results":
		d.includeResults = d.Boolean("/include_results", value)
	}
	return err
}

// batch finds the messages.
func (d *statelessBody) batch(value rawjson.Span) []rawjson.Span {
	spans, ok := d.Array("/messages", value)
	switch {
	case ok && len(spans) == 0:
		d.Wrong("/messages", request.InvalidRequest, "messages is empty: 1 to %d messages are possible", maxStatelessMessages)
	case len(spans) > maxStatelessMessages:
		d.Wrong("/messages", "too_many_messages", "there are %d messages, %d are the most", len(spans), maxStatelessMessages)
	}
	return spans
}

// snapshot is the messages as if they were the log of a session. A system prompt may stand apart from them.
func (d *statelessBody) snapshot() (snap postgres.Snapshot, system [][]byte, err error) {
	snap = postgres.Snapshot{Format: d.format, WindowTokens: d.window, OverheadTokens: d.overhead, Calibration: 1, LastSeq: int64(len(d.messages))}
	if d.Has("/messages") || !d.format.Valid() {
		return snap, nil, d.Err()
	}
	snap.Tail = make([]postgres.LogMessage, 0, len(d.messages))
	for i, span := range d.messages {
		tokens, pinned := d.message(i, span)
		snap.ContextTokens += tokens
		if pinned && wire.Apart(d.format) && len(snap.Tail) == 0 {
			snap.ApartTokens += tokens
			system = append(system, span.Of(d.Data))
			continue
		}
		snap.Tail = append(snap.Tail, postgres.LogMessage{Seq: int64(i + 1), Format: d.format, Tokens: tokens, Body: span.Of(d.Data)})
	}
	return snap, system, d.Err()
}

// message checks one message.
func (d *statelessBody) message(i int, span rawjson.Span) (tokens int64, pinned bool) {
	body := span.Of(d.Data)
	if d.large {
		if err := session.CheckJSON(request.PointerTo("/messages", i), body, rawjson.Limits{Nodes: session.MaxJSONNodes}); err != nil {
			d.Add("", err)
			return 0, false
		}
	}
	found, err := wire.Inspect(d.format, body)
	if err != nil {
		d.Add(request.PointerTo("/messages", i), err)
		return 0, false
	}
	return int64(found.Tokens), found.Flags&wire.FlagPinned != 0
}

// removed is a result that has left the messages. Nothing is stored, so its ref names it in this answer only.
type removed struct {
	Ref       string `json:"ref"`
	Seq       int64  `json:"seq"`
	Part      int    `json:"part"`
	Tool      string `json:"tool"`
	CallID    string `json:"call_id"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
	Tokens    int    `json:"tokens"`
	SHA256    string `json:"sha256"`
	Content   string `json:"content"`
}

func removedOf(results []compact.Result) []removed {
	list := make([]removed, len(results))
	for i := range results {
		r := &results[i]
		list[i] = removed{
			Ref: r.Ref.String(), Seq: r.Seq, Part: r.Part, Tool: r.Tool, CallID: r.CallID, MediaType: r.MediaType, Bytes: len(r.Stored),
			Tokens: r.Tokens, SHA256: hex.EncodeToString(r.SHA256[:]), Content: string(r.Stored),
		}
	}
	return list
}

// compacted is what was done to the messages, which stand behind it.
type compacted struct {
	TokensBefore int64                 `json:"tokens_before"`
	TokensAfter  int64                 `json:"tokens_after"`
	Changed      bool                  `json:"changed"`
	Due          bool                  `json:"due"`
	Reason       string                `json:"reason"`
	Stages       []compact.StageReport `json:"stages"`
	Actions      []compact.Action      `json:"actions"`
	Results      []removed             `json:"results,omitzero"` // not there unless it was asked for
	Report       *protocol.Report      `json:"report"`           // null if nothing was changed
}

func compactedOf(p *compactor.Proposal, includeResults bool) compacted {
	c := compacted{
		TokensBefore: p.View(), TokensAfter: p.View(), Due: p.Decision.Due(), Reason: p.Decision.Reason(), Stages: p.Plan.Stages, Actions: []compact.Action{},
	}
	if includeResults {
		c.Results = []removed{}
	}
	if p.Decision.Verdict != compactor.Now {
		return c
	}
	report := p.Report()
	c.Changed, c.Actions, c.Report = true, p.Plan.Actions, &report
	_, c.TokensAfter = p.Tokens()
	if includeResults {
		c.Results = removedOf(p.Plan.Results)
	}
	return c
}

// stateless answers with the messages that a proposal makes, byte for byte, and with what was done to them.
func answerStateless(req *request.Request, d *statelessBody, p *compactor.Proposal, system [][]byte) error {
	figures, err := json.Marshal(compactedOf(p, d.includeResults))
	if err != nil {
		return err
	}
	out := req.Buffer()
	out.B = append(append(out.B, figures[:len(figures)-1]...), `,"format":`...)
	out.B = rawjson.Quote(out.B, []byte(d.format))
	messages, err := view.Split(appendCompacted(nil, p))
	if err != nil {
		return err
	}
	made := d.rendered(system, messages)
	if len(made.Repairs) > 0 {
		out.B = view.AppendMember(out.B, "repairs", made.Repairs)
	}
	apart := 0
	if wire.Apart(d.format) {
		apart = made.System
	}
	if prompt := wire.AppendSystem(d.format, nil, made.Bodies[:apart]); len(prompt) > 0 && string(prompt) != "[]" {
		out.B = append(append(out.B, `,"system":`...), prompt...)
	}
	out.B = append(out.B, `,"messages":[`...)
	out.B = append(out.B, bytes.Join(made.Bodies[apart:], []byte{','})...)
	out.B = append(out.B, "]}"...)
	return req.Bytes(http.StatusOK, request.JSONType, out.B)
}

// rendered is what came of the messages, so that their provider takes it.
func (d *statelessBody) rendered(system, messages [][]byte) *wire.Rendition {
	view := make([]wire.Stored, 0, len(system)+len(messages))
	for _, body := range append(system, messages...) {
		view = append(view, wire.Stored{Format: d.format, Body: body})
	}
	return wire.Render(d.format, view, wire.Options{Model: d.model})
}

// appendCompacted appends the rendition and the messages behind it, or the messages as they came if nothing is changed.
func appendCompacted(dst []byte, p *compactor.Proposal) []byte {
	through, first := int64(0), true
	if p.Decision.Verdict == compactor.Now {
		dst, through, first = append(dst, p.Made.Body...), p.Made.Through, len(p.Made.Body) == 0
	}
	for i := range p.Snapshot.Tail {
		m := &p.Snapshot.Tail[i]
		if m.Seq <= through {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		dst, first = append(dst, m.Body...), false
	}
	return dst
}
