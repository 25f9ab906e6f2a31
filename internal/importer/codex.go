package importer

import (
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/session"
)

// A rollout is read as Responses items, byte for byte: the payloads of its response_item records, after the base
// instructions of its first session_meta.
//
//   - event_msg records show the interface what response_item records hold as well.
//   - A compaction does not cut the log: its replacement_history is not read.
//   - thread_rolled_back takes the last turns out of the conversation (num_turns).
//   - ghost_snapshot items are Codex's own and never go to the model.
var codex = source{
	name:   Codex,
	title:  "Codex's rollouts",
	detect: func(s sample) bool { return s.object.fits(codexRecord) || s.line && codexHeader(s.object) },
	likely: func(s sample) bool { return codexItem(s.object) },
	into:   OpenAIResponses,
	open:   func(*draft) record { return (&codexLog{}).record },
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

// codexLog is a rollout being read.
type codexLog struct{ ended bool } // whether the branch that is read has ended

// record reads a record of the branch.
func (c *codexLog) record(d *draft, e entry) error {
	kind := e.text("payload.type")
	switch {
	case c.ended && e.text("type") == "response_item":
		return anotherBranch
	case e.text("type") != "event_msg" || kind != "thread_rolled_back":
		return codexMessage(d, e)
	case c.ended:
	case d.file.isWanted(d.line):
		c.ended = true
	default:
		d.undone(codexTurns(d.slots, e.at("payload.num_turns")))
	}
	return skipped("event_msg " + kind)
}

// codexTurns returns the items of the last turns, which begin with what the user wrote.
func codexTurns(slots []*slot, count []byte) []*slot {
	turns, _ := strconv.Atoi(string(count))
	for i, s := range slices.Backward(slots) {
		o := parseObject(s.body())
		if o.text("role") != "user" || codexContext.MatchString(o.text("content.0.text")) {
			continue
		}
		if turns--; turns <= 0 {
			return slots[i:]
		}
	}
	return nil
}

// codexContext matches what Codex writes in the user's name.
var codexContext = regexp.MustCompile(`^(# AGENTS\.md instructions|<(environment_context|user_instructions|skill|` +
	`turn_aborted|subagent_notification|user_shell_command)>)`)

// codexMessage adds the item of a record. What resumes or forks a session repeats the base instructions, so they count
// only in front of everything else.
func codexMessage(d *draft, e entry) error {
	payload := parseObject(e.object["payload"])
	kind := e.text("type")
	prompt := nonEmpty(payload.at("base_instructions.text"))
	switch {
	case kind == "session_meta" && len(d.slots) == 0 && prompt != nil:
		d.add(item("system", prompt))
	case kind == "response_item" && payload == nil:
		return errors.New("a response_item without a payload")
	case kind == "response_item" && payload.text("type") == "ghost_snapshot":
		return skipped("response_item ghost_snapshot")
	case kind == "response_item":
		d.add(e.object["payload"])
	case codexItem(e.object):
		d.add(e.raw)
	case kind == "event_msg":
		return skipped(kind + " " + payload.text("type"))
	case kind != "":
		return skipped(kind)
	case codexHeader(e.object):
		return skipped("header or state")
	default:
		return errNoType
	}
	return nil
}
