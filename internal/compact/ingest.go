package compact

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// Capped is a message whose oversized results were cut before it entered a view.
type Capped struct {
	Body    []byte // as it stands in the view
	Tokens  int    // of Body
	Results []Result
}

// CapAtIngest cuts the oversized results of a message that is being appended as number seq, just as the cap stage will cut
// them. tool is called with every part of the message, in order, and returns for a result the tool of the call that it
// answers; a result that answers none stays. CapAtIngest returns nil if nothing is to be cut.
func CapAtIngest(
	p *policy.Policy, f session.Format, seq int64, body []byte, tool func(part *wire.Part) (string, bool),
) (*Capped, error) {
	words, err := wordsOf(&p.Wording)
	if err != nil {
		return nil, fmt.Errorf("compact: wording: %w", err)
	}
	found, err := wire.Inspect(f, body)
	if err != nil {
		return nil, fmt.Errorf("compact: message %d: %w", seq, err)
	}
	c := &Capped{Tokens: found.Tokens}
	var edits []wire.Edit
	for i := range found.Parts {
		at := &found.Parts[i]
		name, known := tool(at)
		if at.Kind != wire.Result || !known || slices.Contains(p.Protect.Tools, name) {
			continue
		}
		if edit, cut := c.cut(p, words, f, seq, body, at, name); cut {
			edits = append(edits, edit)
		}
	}
	if len(edits) == 0 {
		return nil, nil
	}
	c.Body = wire.Replace(nil, body, edits)
	return c, nil
}

// cut cuts one result, if that makes it smaller.
func (c *Capped) cut(p *policy.Policy, w *words, f session.Format, seq int64, body []byte, at *wire.Part, tool string) (wire.Edit, bool) {
	size := at.Value.End - at.Value.Start
	if (*resultCap)(&p.Cap).surely(at.Tokens, size) {
		return wire.Edit{}, false
	}
	content := wire.ResultText(f, body, *at)
	if !content.OnlyText || (*resultCap)(&p.Cap).exceeds(at.Tokens, content.Text) == "" {
		return wire.Edit{}, false
	}
	head, tail := (*resultCap)(&p.Cap).cut(content.Text)
	sum := sha256.Sum256(content.Stored)
	v := values{
		action: Cap, ref: session.NewResultRef(seq, at.Index, sum), tool: tool, chars: text.Len(content.Text), bytes: len(content.Stored), tokens: at.Tokens,
	}
	literal := rawjson.Quote(nil, w.appendCut(nil, Cap, head, tail, v))
	now := tokens.EstimateLiteral(literal)
	before, after := wrapping(f, at.Value.Of(body))
	with := slices.Concat([]byte(before), literal, []byte(after))
	if len(with) >= size || now >= at.Tokens {
		return wire.Edit{}, false
	}
	c.Tokens += now - at.Tokens
	c.Results = append(c.Results, Result{
		Ref: v.ref, Seq: seq, Part: at.Index, Tool: tool, CallID: at.CallID, Category: string(p.Trim.Categories[tool]),
		MediaType: content.MediaType, Stored: content.Stored, SHA256: sum, Lines: linesOf(content.Stored), Tokens: at.Tokens,
	})
	return wire.Edit{Span: at.Value, With: with}, true
}
