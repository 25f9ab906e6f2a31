package stateless

import (
	"encoding/hex"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/protocol"
)

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
func FiguresOf(p *compactor.Proposal, includeResults bool) Figures {
	f := Figures{
		TokensBefore: p.View(), TokensAfter: p.View(), Due: p.Decision.Due(), Reason: p.Decision.Reason(),
		Stages: p.Plan.Stages, Actions: []compact.Action{},
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
