package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// phpInput is the input of a vector of tool-compaction.
type phpInput struct {
	Messages []struct {
		Role        string    `json:"role"`
		Content     any       `json:"content"`
		ToolCalls   []phpCall `json:"toolCalls"`
		ToolResults []phpCall `json:"toolResults"`
	}
	Config object
}

// phpCall is a call or a result.
type phpCall struct {
	ID        string `json:"id"`
	ToolName  string `json:"toolName"`
	Arguments object `json:"arguments,omitempty"`
	Result    object `json:"result,omitempty"`
}

// toolCompaction asks twice, for a message of the system has its result twice: as the text of its content, which a
// format with texts carries, and as an object, which a format with objects carries.
func toolCompaction(v vector) (object, error) {
	var in phpInput
	v.input(&in)
	texts, err := in.question(session.OpenAIChat).compact()
	if err != nil {
		return nil, err
	}
	objects, err := in.question(session.Gemini).compact()
	if err != nil {
		return nil, err
	}
	list := []object{}
	for i, m := range in.Messages {
		var text, whole object
		decode(texts.bodies[int64(i+1)], &text)
		decode(objects.bodies[int64(i+1)], &whole)
		calls, results := []object{}, []object{}
		parts, _ := whole["parts"].([]any)
		for _, p := range parts {
			part := p.(object)
			if call, ok := part["functionCall"].(object); ok {
				given := m.ToolCalls[len(calls)]
				calls = append(calls, object{"id": call["id"], "toolName": call["name"],
					"arguments": in.omitted(given.Arguments, call["args"], "inputTrimBytes")})
			}
			if result, ok := part["functionResponse"].(object); ok {
				given := m.ToolResults[len(results)]
				results = append(results, object{"id": result["id"], "toolName": result["name"],
					"result": in.omitted(given.Result, result["response"], "outputTrimBytes")})
			}
		}
		content := m.Content
		if now, ok := text["content"].(string); ok {
			content = now
		}
		list = append(list, object{
			"role": m.Role, "content": content, "toolCalls": calls, "toolResults": results,
		})
	}
	return object{"messages": list}, nil
}

// phpDefaults are the settings that the system takes for settings of a wrong type.
func (in *phpInput) question(format session.Format) *question {
	q := ask("tool-compaction", format, 100_000)
	q.set("only_smaller", false)
	q.set("trigger", 0.00002)
	q.set("target", 0.00001)
	q.set("dedupe.min_bytes", in.limit("outputTrimBytes")+1)
	q.set("dedupe.argument_bytes", in.limit("inputTrimBytes"))
	if fields, ok := in.Config["toolIdentifierFields"].(object); ok {
		q.set("dedupe.fields", fields)
	}
	if tools, ok := in.Config["excludedTools"].([]any); ok {
		q.set("protect.tools", tools)
	}
	for _, m := range in.Messages {
		if format == session.OpenAIChat {
			in.addText(q, m.Role, m.Content, m.ToolCalls, m.ToolResults)
			continue
		}
		role, parts := map[string]string{"assistant": "model"}[m.Role], []object{}
		if text, ok := m.Content.(string); ok && len(m.ToolResults) == 0 {
			parts = append(parts, object{"text": text})
		}
		for _, c := range m.ToolCalls {
			parts = append(parts, object{"functionCall": object{"id": c.ID, "name": c.ToolName, "args": cmpOr(c.Arguments)}})
		}
		for _, r := range m.ToolResults {
			parts = append(parts, object{"functionResponse": object{"id": r.ID, "name": r.ToolName, "response": r.Result}})
		}
		if role == "" {
			role = "user"
		}
		q.seqs = append(q.seqs, q.add(object{"role": role, "parts": parts}))
	}
	return q
}

func (in *phpInput) addText(q *question, role string, content any, calls, results []phpCall) {
	m := object{"role": role, "content": content}
	var made []object
	for _, c := range calls {
		made = append(made, toolCall(c.ID, c.ToolName, jsonText(c.Arguments)))
	}
	if made != nil {
		m["tool_calls"] = made
	}
	if len(results) > 0 {
		m["tool_call_id"] = results[0].ID
	}
	q.seqs = append(q.seqs, q.add(m))
}

// limit returns a threshold; the system's own stands for one of a wrong type.
func (in *phpInput) limit(name string) int64 {
	var n int64 = 100
	if number, ok := in.Config[name].(interface{ Int64() (int64, error) }); ok {
		n, _ = number.Int64()
	}
	return n
}

// omitted translates what the product lists of omitted members, and names their content as the system does: by the hash
// of its JSON, not of its text.
func (in *phpInput) omitted(given object, now any, limit string) any {
	members, ok := now.(object)
	list, found := members["_omitted"].(object)
	if !ok || !found {
		return now
	}
	fields := object{}
	for name, o := range list {
		if entry, ok := o.(object); ok {
			if text, ok := given[name].(string); ok && entry["sha256"] == hash(text) {
				entry["sha256"] = hash(php(given[name]))
			}
			fields[name] = entry
		}
	}
	members = maps.Clone(members)
	delete(members, "_omitted")
	members["_tool_compaction"] = object{"thresholdBytes": in.limit(limit), "omittedFields": fields}
	return members
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// php returns a value as PHP writes it.
func php(value any) string {
	var b strings.Builder
	for _, r := range jsonText(value) {
		switch {
		case r == '/':
			b.WriteString(`\/`)
		case r > '~':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
