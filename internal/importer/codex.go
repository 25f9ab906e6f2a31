package importer

import (
	"errors"

	"github.com/varve-dev/varve/internal/session"
)

// A rollout is read as Responses items, byte for byte: the payloads of its response_item records, after the base
// instructions of its first session_meta.
//
//   - event_msg records show the interface what response_item records hold as well.
//   - A compaction does not cut the log: its replacement_history is not read.
//   - ghost_snapshot items are Codex's own and never go to the model.
var codex = source{
	name:   Codex,
	title:  "Codex's rollouts",
	detect: func(s sample) bool { return s.object.fits(codexRecord) || s.line && codexHeader(s.object) },
	likely: func(s sample) bool { return codexItem(s.object) },
	into:   OpenAIResponses,
	open: func(d *draft) reader {
		return func(e entry) ([][]byte, error) { return codexMessage(e, len(d.slots) > 0) }
	},
}

// codexRecord is the pattern of a record that has a type.
const codexRecord = "payload type=session_meta|response_item|event_msg|turn_context|compacted|world_state"

// codexHeader recognises the first line of rollouts from before records had a type, and the states between their items.
func codexHeader(o object) bool {
	return o.fits("record_type=state") || o.fits("!type id timestamp instructions|git")
}

// codexItem recognises a Responses item that is a whole line.
func codexItem(o object) bool {
	return !o.has("payload") && (o.text("type") == "message" && o.has("role") || signal(o) == session.OpenAIResponses)
}

// codexMessage returns the item of a record; begun is whether another one came before.
func codexMessage(e entry, begun bool) ([][]byte, error) {
	payload := parseObject(e.object["payload"])
	kind := e.text("type")
	switch {
	case kind == "session_meta" && !begun:
		return codexPrompt(payload)
	case kind == "response_item" && payload == nil:
		return nil, errors.New("a response_item without a payload")
	case kind == "response_item" && payload.text("type") == "ghost_snapshot":
		return nil, skipped("response_item ghost_snapshot")
	case kind == "response_item":
		return [][]byte{e.object["payload"]}, nil
	case codexItem(e.object):
		return [][]byte{e.raw}, nil
	case kind == "event_msg":
		return nil, skipped(kind + " " + payload.text("type"))
	case kind != "":
		return nil, skipped(kind)
	case codexHeader(e.object):
		return nil, skipped("header or state")
	}
	return nil, errNoType
}

// codexPrompt makes a system message of the base instructions. What resumes or forks a session repeats them, so they
// count only in front of everything else.
func codexPrompt(meta object) ([][]byte, error) {
	prompt := nonEmpty(parseObject(meta["base_instructions"])["text"])
	if prompt == nil {
		return nil, skipped("session_meta")
	}
	return [][]byte{item("system", prompt)}, nil
}
