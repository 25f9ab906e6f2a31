package openai

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// withoutTools writes items as messages only, because OpenAI's own compaction returns no calls: a call and its result
// become one message of the assistant, and the reasoning that led to calls is dropped. Sessions of the Agents SDK for
// JavaScript store the output unchanged, and accept messages and compaction items only. A call without a result is in
// progress: it is kept, with the reasoning before it.
func withoutTools(bodies [][]byte) [][]byte {
	t := textWriter{calls: map[string]wire.Block{}, answered: answeredCalls(bodies)}
	for _, body := range bodies {
		t.item(body)
	}
	return t.out
}

// textWriter writes items as messages.
type textWriter struct {
	calls    map[string]wire.Block // by id, until their result
	answered map[string]bool       // the ids of calls with a result
	thoughts [][]byte              // the reasoning immediately before
	out      [][]byte
}

// answeredCalls returns the ids of the calls that have a result.
func answeredCalls(bodies [][]byte) map[string]bool {
	ids := map[string]bool{}
	for _, body := range bodies {
		for _, n := range wire.Decode(session.OpenAIResponses, body) {
			for i := range n.Blocks {
				if n.Blocks[i].Kind == wire.Result {
					ids[n.Blocks[i].CallID] = true
				}
			}
		}
	}
	return ids
}

func (t *textWriter) item(body []byte) {
	if kind := readFields(body).kind; kind == "message" || kind == "compaction" {
		t.out, t.thoughts = append(t.out, body), nil
		return
	}
	for _, n := range wire.Decode(session.OpenAIResponses, body) {
		for i := range n.Blocks {
			t.block(body, &n.Blocks[i])
		}
	}
}

func (t *textWriter) block(body []byte, p *wire.Block) {
	switch p.Kind {
	case wire.Reasoning:
		t.thoughts = append(t.thoughts, body)
		return
	case wire.Call:
		if !t.answered[p.CallID] {
			t.out = append(append(t.out, t.thoughts...), body)
			break
		}
		t.calls[p.CallID] = *p
	case wire.Result:
		t.result(p)
	default:
		t.add(quotedf("[%s: %s]", readFields(body).kind, body))
	}
	t.thoughts = nil
}

// result writes a call and its result as two texts. Images and files follow in a message of the user, because only
// users can send them.
func (t *textWriter) result(p *wire.Block) {
	name, value := []byte("a tool"), []byte("{}")
	if call, ok := t.calls[p.CallID]; ok {
		name, _ = rawjson.Unquote(nil, call.Name)
		value = call.Value
		delete(t.calls, p.CallID)
	}
	text, media := []byte(`""`), []wire.Block{{Kind: wire.Text, Text: []byte(`"[From the tool's output]"`)}}
	for _, c := range p.Content {
		if c.Kind == wire.Text {
			text = joinLiterals(text, c.Text)
			continue
		}
		c.Edited = true // it is part of another message now
		media = append(media, c)
	}
	t.add(quotedf(calledBefore+"%s"+calledWith+"%s"+calledBehind, name, value), text)
	if len(media) > 1 {
		t.out = append(t.out, wire.Encode(session.OpenAIResponses, []wire.Message{{Role: wire.User, Blocks: media}})...)
	}
}

// add adds a message of the assistant, whose texts are string literals.
func (t *textWriter) add(literals ...[]byte) {
	blocks := make([][]byte, len(literals))
	for i, literal := range literals {
		blocks[i] = fmt.Appendf(nil, `{"type":"output_text","text":%s,"annotations":[]}`, literal)
	}
	t.out = append(t.out, fmt.Appendf(nil, `{"type":"message","role":"assistant","status":"completed","content":[%s]}`,
		bytes.Join(blocks, []byte{','})))
}

func quotedf(format string, args ...any) []byte {
	return rawjson.Quote(nil, fmt.Appendf(nil, format, args...))
}

// joinLiterals joins two string literals without decoding them.
func joinLiterals(a, b []byte) []byte { return append(a[:len(a)-1:len(a)-1], b[1:]...) }

// The parts of the first of the two texts of a call: [Called read_file with {"path":"a"}].
const (
	calledBefore = "[Called "
	calledWith   = " with "
	calledBehind = "]"
)

// withTools reverses withoutTools: messages that an earlier compaction made of calls and their outputs become calls
// and outputs again, so that they can be trimmed now.
func withTools(snap postgres.Snapshot) (postgres.Snapshot, error) {
	tail := make([]postgres.LogMessage, 0, len(snap.Tail))
	snap.ContextTokens = snap.SeparateTokens
	for _, m := range snap.Tail {
		for _, body := range withCall(m.Body, m.Seq) {
			found, err := wire.Inspect(session.OpenAIResponses, body)
			if err != nil {
				return snap, err
			}
			m.Seq = int64(len(tail) + 1)
			m.Body = body
			m.Tokens = int64(found.Tokens)
			snap.ContextTokens += m.Tokens
			tail = append(tail, m)
		}
	}
	snap.Tail, snap.LastSeq = tail, int64(len(tail))
	return snap, nil
}

// withCall returns the call and the output that withoutTools wrote as this message, or the message itself if it is
// another one.
func withCall(body []byte, seq int64) [][]byte {
	as := [][]byte{body}
	list := wire.Decode(session.OpenAIResponses, body)
	if len(list) != 1 || list[0].Role != wire.Assistant || len(list[0].Blocks) != 2 {
		return as
	}
	first, output := list[0].Blocks[0], list[0].Blocks[1]
	if first.Kind != wire.Text || output.Kind != wire.Text {
		return as
	}
	heading, _ := rawjson.Unquote(nil, first.Text)
	rest, begins := strings.CutPrefix(string(heading), calledBefore)
	name, value, with := strings.Cut(rest, calledWith)
	value, ends := strings.CutSuffix(value, calledBehind)
	if !begins || !with || !ends {
		return as
	}
	return [][]byte{
		fmt.Appendf(nil, `{"type":"function_call","call_id":"told_%d","name":%s,"arguments":%s}`, seq, quotedf("%s",
			name), quotedf("%s", value)),
		fmt.Appendf(nil, `{"type":"function_call_output","call_id":"told_%d","output":%s}`, seq, output.Text),
	}
}
