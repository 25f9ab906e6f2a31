package importer

import (
	"errors"

	"github.com/varve-dev/varve/internal/session"
)

// Codex is the rollouts of OpenAI's Codex: JSON lines.
const Codex Source = "codex"

var codex = source{
	name:   Codex,
	title:  "Codex's rollouts",
	detect: func(s sample) bool { return codexRecord(s.object) || s.line && codexHeader(s.object) },
	likely: func(s sample) bool { return codexItem(s.object) },
	read:   readCodex,
}

var codexTypes = set("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")

func codexRecord(o object) bool { return o.has("payload") && codexTypes[o.text("type")] }

// codexHeader recognises the first line of rollouts from before records had a type, and the states between their items.
func codexHeader(o object) bool {
	return o.text("record_type") == "state" ||
		!o.has("type") && o.has("id") && o.has("timestamp") && (o.has("instructions") || o.has("git"))
}

// codexItem recognises a Responses item that is a whole line.
func codexItem(o object) bool {
	return !o.has("payload") && (o.text("type") == "message" && o.has("role") || signal(o) == session.OpenAIResponses)
}

// readCodex reads a rollout as Responses items, byte for byte: the payloads of its response_item records, behind the
// base instructions of its first session_meta.
//
//   - event_msg records show the interface what response_item records hold as well.
//   - A compaction does not cut the log: its replacement_history is not read.
//   - ghost_snapshot items are Codex's own and never go to the model.
func readCodex(f *File, id string, data []byte) error {
	begun := false
	f.add(id, session.OpenAIResponses, f.convert(f.entries(data), func(e entry) ([][]byte, error) {
		body, err := codexMessage(e, begun)
		if err != nil {
			return nil, err
		}
		begun = true
		return [][]byte{body}, nil
	}))
	return nil
}

func codexMessage(e entry, begun bool) ([]byte, error) {
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
		return e.object["payload"], nil
	case codexItem(e.object):
		return e.raw, nil
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
func codexPrompt(meta object) ([]byte, error) {
	prompt := parseObject(meta["base_instructions"])["text"]
	if !filled(prompt) {
		return nil, skipped("session_meta")
	}
	return item("system", prompt), nil
}
