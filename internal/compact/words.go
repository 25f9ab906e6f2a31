package compact

import (
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

// Every text that stands in a part's place is made here, from the policy's wording. A text depends on the part and the
// action alone, never on what came later, so that it does not change once written. A line is never longer than the least
// that head and tail may keep (policy.MinCutChars), so each step of the ladder is no longer than the one above it.

const (
	previewChars  = 80  // of a result's beginning in its placeholder
	labelChars    = 64  // of a tool's name in a placeholder
	resourceBytes = 120 // of a resource's name in a stub
	charsPerToken = 4

	// stubTokens is about what a stub costs; stages use it to foresee what a view will have.
	stubTokens = 28
	// markerTokens is about what the line between head and tail costs.
	markerTokens = 24
)

// words are a policy's wording, ready to be filled in.
type words struct {
	cut, line          [Omit]text.Template
	summary, truncated text.Template
}

// wordsOf parses a policy's wording, whose templates have been checked when it was parsed.
func wordsOf(w *policy.Wording) (*words, error) {
	t, err := w.Templates()
	if err != nil {
		return nil, err
	}
	all := &words{summary: t.Summary, truncated: t.Truncated}
	all.cut[Cap], all.cut[Bookend] = t.Cap, t.Bookend
	all.line[Stub], all.line[Stale] = t.Stub, t.Stale
	all.line[Placeholder], all.line[Blank] = t.Placeholder, t.Clear
	return all, nil
}

// values are what a template is filled with.
type values struct {
	action                    ActionKind
	ref                       session.ResultRef
	tool, resource, preview   string
	chars, bytes, tokens, cut int
	head                      int
	seq                       int64
}

// appendCut writes a part's head and tail around a line that says what is missing.
func (w *words) appendCut(dst []byte, do ActionKind, head, tail []byte, v values) []byte {
	v.cut = v.tokens - tokens.Estimate(head) - tokens.Estimate(tail)
	v.head = text.Len(head)
	dst = append(dst, head...)
	dst = w.cut[do].Append(dst, v.append)
	return append(dst, tail...)
}

// appendLine writes a stub, a placeholder or what is left of a cleared result. If a long name or preview makes it too
// long, that is shortened.
func (w *words) appendLine(dst []byte, v values) []byte {
	start, room := len(dst), 2*policy.MinCutChars
	for {
		dst = w.line[v.action].Append(dst[:start], v.append)
		if rawjson.QuotedLen(dst[start:]) <= room || v.preview == "" && v.resource == "" && len(v.tool) <= 1 {
			return dst
		}
		v.preview, v.resource = shorter(v.preview), shorter(v.resource)
		if v.preview == "" && v.resource == "" {
			v.tool = shorter(label(v.tool))
		}
	}
}

// shorter returns a text with an eighth less of it, at least a character; what is no UTF-8 is left out.
func shorter(t string) string {
	whole := []byte(strings.ToValidUTF8(t, ""))
	return strings.TrimRight(string(text.First(whole, max(text.Len(whole)*7/8-1, 0))), " ")
}

// append writes the value of a name.
func (v values) append(dst []byte, name string) []byte {
	switch name {
	case "ref":
		return append(dst, v.ref.String()...)
	case "tool":
		return append(dst, label(v.tool)...)
	case "resource":
		return append(dst, text.First([]byte(v.resource), resourceBytes)...)
	case "preview":
		return append(dst, v.preview...)
	case "seq":
		return strconv.AppendInt(dst, v.seq, 10)
	}
	return strconv.AppendInt(dst, int64(map[string]int{
		"chars": v.chars, "bytes": v.bytes, "tokens": v.tokens, "cut_tokens": v.cut, "head": v.head,
	}[name]), 10)
}

// previewOf is a result's beginning on one line. Secrets are masked before it is cut: nobody recognises half of one.
func previewOf(t []byte) string {
	const enough = 8 * previewChars
	return text.PlainPreview([]byte(resource.Mask(string(text.First(t, enough)))), previewChars)
}

// label makes a tool's name safe to stand in a line: whoever defines the tools chooses it.
func label(tool string) string {
	if tool == "" {
		return "unknown"
	}
	safe := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return '_'
		}
		return r
	}, tool)
	return safe[:min(len(safe), labelChars)]
}
