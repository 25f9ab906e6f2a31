package conformance

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/compact/rule"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
)

var toolCompactionOperations = map[string]operation{"transform": transformTools}

// toolMessage has calls and results beside its content. What is not looked at keeps its bytes, and so its order of keys.
type toolMessage map[string]json.RawMessage

// toolUse is a call or a result.
type toolUse struct {
	message  *toolMessage
	list     string // toolCalls or toolResults
	at       int
	value    string // the field with the arguments or the result
	id, tool string
	content  json.RawMessage
	group    string
}

// toolTransform is tool-compaction over one history.
type toolTransform struct {
	fields         map[string][]string // that identify a call, by tool
	excluded       []string
	inputs, output int // larger fields are omitted
	placeholder    text.Template
	policy         policy.Policy
}

func transformTools(v vector) (any, error) {
	var in struct {
		Messages []toolMessage              `json:"messages"`
		Config   map[string]json.RawMessage `json:"config"`
	}
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	t, err := newToolTransform(in.Config)
	if err != nil {
		return nil, err
	}
	t.apply(in.Messages)
	return map[string]any{"messages": append([]toolMessage{}, in.Messages...)}, nil
}

// newToolTransform applies a configuration to the profile; a parameter of a wrong type is as good as none. The system
// names a result by its call's id where Varve has a ref.
func newToolTransform(config map[string]json.RawMessage) (*toolTransform, error) {
	policy, err := policy.Profile("tool-compaction")
	if err != nil {
		return nil, err
	}
	wording := strings.Replace(policy.Wording.Stub, "ref={ref}", "callId={ref}", 1)
	placeholder, err := text.Parse(wording, "ref", "tool", "resource", "bytes", "seq")
	t := &toolTransform{policy: policy, placeholder: placeholder, fields: map[string][]string{}}
	t.inputs, t.output = policy.Dedupe.ArgumentBytes, 4*policy.Dedupe.MinTokens
	readInteger(config["inputTrimBytes"], &t.inputs)
	readInteger(config["outputTrimBytes"], &t.output)
	t.excluded = readStrings(config["excludedTools"])
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(config["toolIdentifierFields"], &fields)
	for tool, names := range fields {
		t.fields[tool] = readStrings(names)
	}
	return t, err
}

func readInteger(raw json.RawMessage, value *int) {
	var number *int
	if json.Unmarshal(raw, &number) == nil && number != nil {
		*value = *number
	}
}

// readStrings returns the strings of a list.
func readStrings(raw json.RawMessage) []string {
	var elements []any
	_ = json.Unmarshal(raw, &elements) // what is no list has none
	var texts []string
	for _, element := range elements {
		if text, ok := element.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// apply omits the large fields of all calls and results of a group but the newest call and its result. A call and its
// result are one sequence, so a call that has no result yet makes the older results superfluous, too.
func (t *toolTransform) apply(messages []toolMessage) {
	uses := t.uses(messages)
	occurrences := make([]rule.Occurrence[string], len(uses))
	for i, use := range uses {
		occurrences[i] = rule.Occurrence[string]{Key: use.group, Counts: true}
	}
	superseded := rule.Superseded(occurrences, t.policy.Dedupe.KeepLast)
	newest := map[string]bool{}
	for i, use := range uses {
		newest[use.id] = newest[use.id] || superseded[i] < 0
	}
	for i, use := range slices.Backward(uses) {
		isCall := use.list == "toolCalls"
		if superseded[i] < 0 || isCall && newest[use.id] {
			continue
		}
		if isCall {
			t.omit(use, t.fields[use.tool], t.inputs)
		} else if t.omit(use, nil, t.output) {
			t.announce(use)
		}
	}
}

// uses returns the calls and results that belong to a group, oldest first.
func (t *toolTransform) uses(messages []toolMessage) []toolUse {
	groups := map[string]string{} // by the id of a call
	var uses []toolUse
	for i := range messages {
		for _, call := range messages[i].uses("toolCalls", "arguments") {
			if group, ok := t.group(call); ok {
				groups[call.id] = group
			}
		}
	}
	for i := range messages {
		for _, use := range slices.Concat(messages[i].uses("toolCalls", "arguments"), messages[i].uses("toolResults", "result")) {
			group, known := groups[use.id]
			if own, ok := t.group(use); ok && use.list == "toolCalls" {
				group = own
			}
			if use.group = group; known && !slices.Contains(t.excluded, use.tool) {
				uses = append(uses, use)
			}
		}
	}
	return uses
}

func (t *toolTransform) group(call toolUse) (string, bool) {
	return resource.Fields(call.tool, t.fields[call.tool], t.policy.Dedupe.ToolOnly, call.content)
}

// uses returns the calls or results in one list of a message.
func (m *toolMessage) uses(list, value string) []toolUse {
	var uses []toolUse
	for i, element := range m.elements(list) {
		use := toolUse{message: m, list: list, at: i, value: value, content: element[value]}
		_ = json.Unmarshal(element["id"], &use.id)
		_ = json.Unmarshal(element["toolName"], &use.tool)
		uses = append(uses, use)
	}
	return uses
}

func (m *toolMessage) elements(list string) []map[string]json.RawMessage {
	var elements []map[string]json.RawMessage
	_ = json.Unmarshal((*m)[list], &elements) // null, or missing: none
	return elements
}

// omit leaves out the large fields of a call or result, save those named and what a former run has said.
func (t *toolTransform) omit(use toolUse, keep []string, over int) bool {
	const meta = "_tool_compaction"
	rest, omitted := resource.Omit(nil, use.content, func(field string, value []byte) (encoded []byte, size int, large bool) {
		size, encoded, ok := phpValue(value)
		return encoded, size, ok && size > max(0, over) && field != meta && !slices.Contains(keep, field)
	})
	if len(omitted) == 0 {
		return false
	}
	type size struct {
		Bytes  int    `json:"bytes"`
		SHA256 string `json:"sha256"`
	}
	fields := map[string]size{}
	for _, o := range omitted {
		fields[o.Field] = size{o.Bytes, hex.EncodeToString(o.SHA256[:])}
	}
	object := map[string]json.RawMessage{}
	mustUnmarshal(rest, &object)
	object[meta] = mustMarshal(map[string]any{"thresholdBytes": over, "omittedFields": fields})
	elements := use.message.elements(use.list)
	elements[use.at][use.value] = mustMarshal(object)
	(*use.message)[use.list] = mustMarshal(elements)
	return true
}

// announce says in a tool's message that its result was compacted.
func (t *toolTransform) announce(use toolUse) {
	if string((*use.message)["role"]) != `"tool"` {
		return
	}
	said := t.placeholder.Append(nil, func(dst []byte, name string) []byte {
		return append(dst, map[string]string{"tool": use.tool, "ref": use.id}[name]...)
	})
	(*use.message)["content"] = mustMarshal(string(said))
}

func mustMarshal(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

func mustUnmarshal(raw []byte, value any) {
	if err := json.Unmarshal(raw, value); err != nil {
		panic(err)
	}
}
