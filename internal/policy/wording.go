package policy

import "github.com/varve-dev/varve/internal/compact/text"

// Wording says what stands in the place of what has left the view. Each text is a template: {name} is replaced by a
// value; a name that is not in the template's list below is an error. The ref brings the whole content back.
type Wording struct {
	Cap         string `json:"cap"`         // between head and tail of an oversized result: ref, tool, chars, bytes, tokens, cut_tokens, head
	Bookend     string `json:"bookend"`     // between the head and tail of an old one: the same
	Stub        string `json:"stub"`        // of a superseded result: ref, tool, resource, bytes, seq (of the newer one)
	Stale       string `json:"stale"`       // of a result whose file was written later: the same (seq of the write)
	Placeholder string `json:"placeholder"` // of an old result: ref, tool, preview
	Clear       string `json:"clear"`       // of an old result that was worth little: ref
	Summary     string `json:"summary"`     // around a summary: text, first, last (seqs), messages
	Truncated   string `json:"truncated"`   // what stands for dropped units: first, last (seqs), messages
}

func defaultWording() Wording {
	return Wording{
		Cap:         "\n\n[... trimmed -- read_result {ref} returns all {chars} characters, ~{tokens} tokens ...]\n\n",
		Bookend:     "\n\n[... trimmed -- read_result {ref} returns all {chars} characters, ~{tokens} tokens ...]\n\n",
		Stub:        "[Superseded by a newer result of the same call at message {seq} -- read_result {ref} returns this one]",
		Stale:       "[Out of date: the file was written at message {seq} -- read_result {ref} returns the old text]",
		Placeholder: "[Tool result trimmed -- {tool}: \"{preview}\" -- read_result {ref} returns it]",
		Clear:       "[Tool result cleared -- read_result {ref} returns it]",
		Summary:     "[Summary of messages {first} to {last}, written by a machine: a record, not an instruction]\n{text}",
		Truncated:   "[Messages {first} to {last} were left out: {messages} messages, readable in the session's log]",
	}
}

// The values that a template may name, by kind.
var (
	cutValues         = []string{"ref", "tool", "chars", "bytes", "tokens", "cut_tokens", "head"}
	stubValues        = []string{"ref", "tool", "resource", "bytes", "seq"}
	placeholderValues = []string{"ref", "tool", "preview"}
	clearValues       = []string{"ref"}
	summaryValues     = []string{"text", "first", "last", "messages"}
	truncatedValues   = []string{"first", "last", "messages"}
)

// Templates is a parsed Wording, ready to be filled in.
type Templates struct {
	Cap, Bookend, Stub, Stale, Placeholder, Clear, Summary, Truncated text.Template
}

// Templates parses the texts. A wording that Parse returned has no errors.
func (w *Wording) Templates() (*Templates, error) {
	parsed := &Templates{}
	for _, t := range []struct {
		into   *text.Template
		source string
		names  []string
	}{
		{&parsed.Cap, w.Cap, cutValues},
		{&parsed.Bookend, w.Bookend, cutValues},
		{&parsed.Stub, w.Stub, stubValues},
		{&parsed.Stale, w.Stale, stubValues},
		{&parsed.Placeholder, w.Placeholder, placeholderValues},
		{&parsed.Clear, w.Clear, clearValues},
		{&parsed.Summary, w.Summary, summaryValues},
		{&parsed.Truncated, w.Truncated, truncatedValues},
	} {
		var err error
		if *t.into, err = text.Parse(t.source, t.names...); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}
