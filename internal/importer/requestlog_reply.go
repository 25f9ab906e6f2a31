package importer

import (
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// repeated reports whether the messages begin with a part of the conversation's last response: a client may leave out
// the rest.
func (t *thread) repeated(rest [][]byte) bool {
	said := allStatements(t.format, t.replied())
	repeats := func(s string) bool { return slices.Contains(said, s) }
	return slices.ContainsFunc(allStatements(t.format, rest[:t.models(rest)]), repeats)
}

// replied returns the messages that only a response has.
func (t *thread) replied() (bodies [][]byte) {
	for _, m := range t.messages[len(t.messages)-t.reply:] {
		bodies = append(bodies, m.Body)
	}
	return bodies
}

// models returns how many messages of the model a list begins with.
func (t *thread) models(list [][]byte) int {
	for i, body := range list {
		if m, _ := wire.Inspect(t.format, body); m.Role != "assistant" && m.Role != "model" {
			return i
		}
	}
	return len(list)
}

// settle returns what a request adds behind the conversation's last response, which it repeats. A response that is
// repeated but for its signatures stays: without those the model's provider may refuse to go on. What else the request
// leaves out is noted.
func (r *requests) settle(line int, t *thread, rest [][]byte) [][]byte {
	n := t.models(rest)
	if n == 0 {
		return rest
	}
	reply, again := t.replied(), rest[:n]
	said, repeated := allStatements(t.format, reply), allStatements(t.format, again)
	signed := leftOut(signatures(reply), signatures(again))
	lost := leftOut(said, repeated)
	switch {
	case signed.bytes > 0 && slices.Equal(said, repeated):
		r.file.note(line, "the request repeats the response before it without its signatures (%d bytes): they are kept",
			signed.bytes)
		return append(slices.Clone(reply), rest[n:]...)
	case lost.count > 0 || signed.count > 0:
		r.file.note(line, "the request leaves out %d of %d texts and calls of the response before it (%d bytes), and "+
			"%d bytes of signatures: the conversation has what the request says",
			lost.count, len(said), lost.bytes, signed.bytes)
	}
	return rest
}

// share is a part of a list of texts.
type share struct{ count, bytes int }

// leftOut returns how much of a list is not in another one.
func leftOut(list, other []string) (s share) {
	for _, text := range list {
		if !slices.Contains(other, text) {
			s.count++
			s.bytes += len(text)
		}
	}
	return s
}

// allStatements returns the statements of messages.
func allStatements(format session.Format, bodies [][]byte) (all []string) {
	for _, body := range bodies {
		_, own := statements(format, body)
		all = append(all, own...)
	}
	return all
}

// statements returns the role, texts and calls of a message, without regard to how a client writes them.
func statements(format session.Format, body []byte) (role string, all []string) {
	m, _ := wire.Inspect(format, body)
	for _, p := range m.Parts {
		text := p.Value.Of(body)
		switch {
		case p.Kind == wire.Text && isString(text):
			all = append(all, stringValue(text))
		case p.Kind == wire.Text:
			all = append(all, string(text))
		case p.Kind == wire.Call:
			all = append(all, "call "+p.Name+" "+p.CallID)
		}
	}
	return m.Role, all
}

// signing are the members in which providers sign or seal the model's thoughts: Gemini's parts, the same in what
// Google's and other gateways answer as Chat Completions, Anthropic's thinking, and Responses' reasoning.
var signing = set("thoughtSignature", "thought_signature", "signature", "encrypted_content")

// signatures returns the signatures in messages, wherever they are.
func signatures(bodies [][]byte) (all []string) {
	for _, body := range bodies {
		all = appendSignatures(all, body)
	}
	return all
}

func appendSignatures(all []string, raw []byte) []string {
	switch {
	case len(raw) > 0 && raw[0] == '{':
		redacted := parseObject(raw).text("type") == "redacted_thinking"
		for key, value := range rawjson.Members(raw, 0) {
			name := stringValue(key.Of(raw))
			text := stringValue(value.Of(raw))
			if text != "" && (signing[name] || redacted && name == "data") {
				all = append(all, text)
				continue
			}
			all = appendSignatures(all, value.Of(raw))
		}
	case len(raw) > 0 && raw[0] == '[':
		for _, element := range parseArray(raw) {
			all = appendSignatures(all, element)
		}
	}
	return all
}
