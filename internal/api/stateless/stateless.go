// Package stateless compacts messages that come with a request and are not stored.
//
// Start at Body: Open it, Set its members, Resolve its policy, and Compact it. POST /v1/compact and OpenAI's
// POST /v1/responses/compact share it. It owns no tables.
package stateless

import (
	"context"
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// MaxMessages is how many messages one request can have compacted.
const MaxMessages = 100_000

// Body is the body of POST /v1/compact.
type Body struct {
	ingest.Batch
	Model          string
	Window         int // 0: that of the model
	Overhead       int
	Force          bool // compact what is below its trigger, too
	IncludeResults bool
	Ask            bool           // models for the summaries that are not kept
	member         rawjson.Span   // the policy as it was sent
	policy         *policy.Policy // nil until Resolve
}

// Fields are the members of POST /v1/compact.
var Fields = []string{
	"format", "messages", "policy", "model", "window_tokens", "overhead_tokens", "force", "include_results", "ask",
}

// Set reads a member.
func (b *Body) Set(name string, value rawjson.Span) {
	switch name {
	case "format":
		b.Format = b.ReadFormat(value)
	case "messages":
		b.ReadMessages("/messages", value)
	case "policy":
		b.member = value
	case "model":
		b.Model, _ = b.Text("/model", value, session.MaxIDBytes)
	case "window_tokens":
		b.Window = int(b.Integer("/window_tokens", value, session.MinWindowTokens, session.MaxWindowTokens))
	case "overhead_tokens":
		b.Overhead = int(b.Integer("/overhead_tokens", value, 0, ingest.MaxOverheadTokens))
	case "force":
		b.Force = b.Boolean("/force", value)
	case "include_results":
		b.IncludeResults = b.Boolean("/include_results", value)
	case "ask":
		b.Ask = b.Boolean("/ask", value)
	}
}

// ReadMessages reads the array of messages.
func (b *Body) ReadMessages(pointer string, value rawjson.Span) { b.List(pointer, value, MaxMessages) }

// Resolve puts the policy, whose model is one of writers, on top of the layers below.
func (b *Body) Resolve(below session.PolicyLayers, writers *policy.Writers) {
	if b.member != (rawjson.Span{}) {
		b.policy = ingest.PolicyOver(&b.Document, b.member, below, writers)
	} else {
		b.policy = ingest.TenantPolicy(&b.Document, below)
	}
}

// Check requires the members that must be there, and that they fit together. Messages whose model is named have the
// window of that model unless the request sets another.
func (b *Body) Check() {
	switch {
	case b.Window > 0:
	case b.Model != "":
		b.Window, _ = ingest.WindowOf(&b.Document, b.Model, b.Strict)
	default:
		b.Window = session.DefaultWindowTokens
	}
	if b.Spans == nil && !b.Has("/messages") {
		b.Wrong("/messages", request.InvalidRequest, "messages is missing: it must be an array of 1 to %d messages",
			MaxMessages)
	}
	b.RequireFormat()
	if b.Window > 0 && !b.Has("/window_tokens") && !b.Has("/overhead_tokens") {
		ingest.CheckOverhead(&b.Document, b.Overhead, b.Window)
	}
}

// Snapshot returns the messages as if they were the log of a session, and apart from them the leading system messages
// of formats that have them apart. Its error is everything that is wrong with the body.
func (b *Body) Snapshot() (snap postgres.Snapshot, system [][]byte, err error) {
	snap = postgres.Snapshot{
		Format: b.Format, WindowTokens: b.Window, OverheadTokens: b.Overhead, Calibration: 1,
		LastSeq: int64(len(b.Spans)),
	}
	if !b.Format.Valid() || len(b.Spans) > MaxMessages {
		return snap, nil, b.Err()
	}
	snap.Tail = make([]postgres.LogMessage, 0, len(b.Spans))
	for i := range b.Spans {
		found, ok := b.Inspect(i)
		if !ok {
			continue
		}
		if b.policy != nil {
			compact.Recount(b.policy, b.Format, b.Body(i), &found)
		}
		tokens := int64(found.Tokens)
		snap.ContextTokens += tokens
		if found.Flags&wire.FlagPinned != 0 && provider.SeparatesSystem(b.Format) && len(snap.Tail) == 0 {
			snap.SeparateTokens += tokens
			system = append(system, b.Body(i))
			continue
		}
		snap.Tail = append(snap.Tail, postgres.LogMessage{Seq: int64(i + 1), Format: b.Format, Tokens: tokens,
			Body: b.Body(i)})
	}
	return snap, system, b.Tell(b.Model)
}

// Admit waits until the process has the memory for Snapshot and Propose. Call it before a processor is taken.
func (b *Body) Admit(req *request.Request) error {
	weight := postgres.Weight{Tail: int64(len(b.Data)), Messages: int64(len(b.Spans))}
	return req.Admit(compactor.Memory(weight, max(weight.Tail, 1)))
}

// Propose compacts a snapshot of the body for a tenant. asks is nil if no model is configured.
func (b *Body) Propose(
	ctx context.Context, cpu admit.Processors, tenant uuid.UUID, asks *modelcall.Caller, snap postgres.Snapshot,
) (*compactor.Proposal, error) {
	snap.Tenant = tenant
	return compactor.ProposeAlone(ctx, snap, compactor.Request{Policy: b.policy, CPU: cpu, Caller: asks, Ask: b.Ask},
		b.Force)
}

// Render returns messages in a form that their provider accepts.
func (b *Body) Render(ctx context.Context, messages ...[]byte) (*wire.Rendition, error) {
	view := make([]wire.Stored, len(messages))
	for i, body := range messages {
		view[i] = wire.Stored{Format: b.Format, Body: body}
	}
	return wire.Render(ctx, b.Format, view, wire.Options{Model: b.Model})
}

// Messages returns the rendition and the messages after it, or the messages as they came if nothing is changed.
func Messages(p *compactor.Proposal) (bodies [][]byte, err error) {
	through := int64(0)
	if p.Decision.Verdict == compactor.Now {
		through = p.Made.Through
		bodies, err = view.Split(p.Made.Body)
	}
	for i := range p.Snapshot.Tail {
		if m := &p.Snapshot.Tail[i]; m.Seq > through {
			bodies = append(bodies, m.Body)
		}
	}
	return bodies, err
}

// Figures report what was done to the messages, which follow them in the answer.
type Figures struct {
	TokensBefore int64                 `json:"tokens_before"`
	TokensAfter  int64                 `json:"tokens_after"`
	Changed      bool                  `json:"changed"`
	Due          bool                  `json:"due"`
	Reason       string                `json:"reason"`
	Stages       []compact.StageReport `json:"stages"`
	Actions      []compact.Action      `json:"actions"`
	Results      []Result              `json:"results,omitzero"` // only if the request asks for them
	Report       *protocol.Report      `json:"report"`           // null if nothing was changed

	Summaries []protocol.WantedSummary `json:"summaries"` // that models write
	// what the request leaves open, such as the window of a model that is not known
	Warnings []session.Warning `json:"warnings,omitempty" schema:"minItems: 1"`
}

// Result is a tool result that is no longer among the messages. Nothing is stored, so its ref names it in this answer
// only.
type Result struct {
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

// FiguresOf returns the figures of a proposal.
func FiguresOf(p *compactor.Proposal, includeResults bool, asks *modelcall.Caller) Figures {
	f := Figures{
		TokensBefore: p.View(), TokensAfter: p.View(), Due: p.Decision.Due(), Reason: p.Decision.Reason(),
		Stages: p.Plan.Stages, Actions: []compact.Action{}, Summaries: p.Wants(asks),
	}
	if includeResults {
		f.Results = []Result{}
	}
	if p.Decision.Verdict != compactor.Now {
		return f
	}
	report := p.Report()
	f.Changed = true
	f.Actions = p.Plan.Actions
	f.Report = &report
	_, f.TokensAfter = p.Tokens()
	if includeResults {
		f.Results = results(p.Plan.Results)
	}
	return f
}

func results(found []compact.Result) []Result {
	list := make([]Result, len(found))
	for i := range found {
		r := &found[i]
		list[i] = Result{
			Ref: r.Ref.String(), Seq: r.Seq, Part: r.Part, Tool: r.Tool, CallID: r.CallID, MediaType: r.MediaType,
			Bytes: len(r.Stored), Tokens: r.Tokens, SHA256: hex.EncodeToString(r.SHA256[:]), Content: string(r.Stored),
		}
	}
	return list
}
