package compact

import (
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Every text that replaces a part is made here, from the policy's wording. A text depends only on the part and the
// action, never on what came later, so that it does not change once written.

const (
	previewChars  = 80  // of a result's beginning in its placeholder
	labelChars    = 64  // of a tool's name in a placeholder
	resourceBytes = 120 // of a resource's name in a stub
	charsPerToken = 4

	// stubTokens is about the size of a stub; stages use it to foresee the size of a view.
	stubTokens = 30
	// markerTokens is about the size of the line between head and tail.
	markerTokens = 26
)

// minCut is how many bytes a bookend must cut away: fewer save nothing, because of the line between head and tail.
const minCut = 32

// minCutChars returns how many characters a bookend keeps at least. If replacements must be smaller, every cut is
// longer than the line that may replace it later, so that it does not matter which of the two was needed first.
func (s *runState) minCutChars() int {
	if s.policy.OnlySmaller {
		return policy.MaxLineBytes / 2
	}
	return 0
}

// words are a policy's wording, ready to be filled in.
type words struct {
	parts              [Omit]text.Template // in place of a part, or between its head and tail
	head               text.Template       // before the head of a bookend
	again              text.Template       // a placeholder of a result that can be had again
	summary, truncated text.Template
}

// texts are the policy's wording and the buffers that drafts are made in.
type texts struct {
	words    *words
	text     []byte
	unquoted []byte
	quoted   []byte
	spare    []byte
}

// wordsOf parses a policy's wording, which has a text for each action on parts under the action's name.
func wordsOf(w *policy.Wording) (*words, error) {
	templates, err := w.Templates()
	if err != nil {
		return nil, err
	}
	all := &words{
		head: templates["bookend_head"], again: templates["placeholder_again"],
		summary: templates["summary"], truncated: templates["truncated"],
	}
	for do := range all.parts {
		all.parts[do] = templates[actionNames[do]]
	}
	return all, nil
}

// values are the values of a template.
type values struct {
	action                    ActionKind
	ref                       session.ResultRef
	refText                   string // in place of ref, if it is not empty
	tool, resource, preview   string
	chars, bytes, tokens, cut int
	head                      int
	seq                       int64
	callID                    string
	again                     bool // the result can be had again
	whole                     bool // nothing is cut
	count                     counter
}

// appendCut writes a part's head and tail around a line about what is missing.
func (w *words) appendCut(dst []byte, do ActionKind, head, tail []byte, v values) []byte {
	v.cut = v.tokens - v.count.text(head) - v.count.text(tail)
	v.head = text.Len(head)
	if do == Bookend {
		dst = w.appendHead(dst, v)
	}
	dst = append(dst, head...)
	if !v.whole {
		dst = w.parts[do].Append(dst, v.append)
	}
	return append(dst, tail...)
}

// appendHead writes what is before the head of a bookend.
func (w *words) appendHead(dst []byte, v values) []byte {
	if v.again {
		return dst
	}
	return w.head.Append(dst, v.append)
}

// line returns the text of the line that replaces a part.
func (w *words) line(v values) *text.Template {
	if v.action == Placeholder && v.again && w.again.Constant() > 0 {
		return &w.again
	}
	return &w.parts[v.action]
}

// appendLine writes the line that replaces a part. If a long name or preview makes it too long, it shortens those.
func (w *words) appendLine(dst []byte, v values) []byte {
	start := len(dst)
	for {
		dst = w.line(v).Append(dst[:start], v.append)
		line := dst[start:]
		short := rawjson.QuotedLen(line)-len(line)+text.Len(line) <= policy.MaxLineBytes
		if short || v.preview == "" && v.resource == "" && len(v.tool) <= 1 {
			return dst
		}
		v.preview, v.resource = shorter(v.preview), shorter(v.resource)
		if v.preview == "" && v.resource == "" {
			v.tool = shorter(label(v.tool))
		}
	}
}

// shorter returns a text without its last eighth, at least a character, and without invalid UTF-8.
func shorter(t string) string {
	whole := []byte(strings.ToValidUTF8(t, ""))
	return strings.TrimRight(string(text.First(whole, max(text.Len(whole)*7/8-1, 0))), " ")
}

// append writes the value of that name.
func (v values) append(dst []byte, name string) []byte {
	switch name {
	case "ref":
		if v.refText != "" {
			return append(dst, v.refText...)
		}
		return append(dst, v.ref.String()...)
	case "tool":
		return append(dst, label(v.tool)...)
	case "resource":
		return append(dst, text.First([]byte(v.resource), resourceBytes)...)
	case "preview":
		return append(dst, v.preview...)
	case "call_id":
		return append(dst, label(v.callID)...)
	case "seq":
		return strconv.AppendInt(dst, v.seq, 10)
	}
	return strconv.AppendInt(dst, int64(map[string]int{
		"chars": v.chars, "bytes": v.bytes, "tokens": v.tokens, "cut_tokens": v.cut, "head": v.head,
	}[name]), 10)
}

// previewOf returns a result's beginning on one line. It masks secrets before the cut: half of one is not recognised.
func previewOf(t []byte) string {
	const enough = 8 * previewChars
	return text.PlainPreview([]byte(resource.Mask(string(text.First(t, enough)))), previewChars)
}

// label makes a tool's name, which the caller chooses, safe to use in a line.
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
