package tools

// object is a JSON object of a schema. Its members are encoded in the order of their names.
type object map[string]any

// InputSchema returns the JSON Schema of a tool's arguments.
func (d *Definition) InputSchema() any { return d.inputSchema(true) }

func (d *Definition) inputSchema(closed bool) object {
	properties, required := object{}, []string{}
	for i := range d.Arguments {
		a := &d.Arguments[i]
		properties[a.Name] = a.schema()
		if a.Required {
			required = append(required, a.Name)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	if closed {
		schema["additionalProperties"] = false
	}
	return schema
}

func (a *Argument) schema() object {
	schema := object{"type": string(a.Kind), "description": a.Description}
	if a.Kind == integer {
		schema["minimum"] = a.Min
		if a.Max < maxNumber {
			schema["maximum"] = a.Max
		}
	}
	return schema
}

// OutputSchema returns the JSON Schema of a tool's structured answer.
func (d *Definition) OutputSchema() any { return d.output }

func a(kind, description string) object { return object{"type": kind, "description": description} }

func orNull(kind, description string) object {
	return object{"type": []string{kind, "null"}, "description": description}
}

func list(of object) object { return object{"type": "array", "items": of} }

// answer returns the schema of an answer, all of whose members are there but those that are optional.
func answer(required []string, properties object) object {
	return object{"type": "object", "properties": properties, "required": required}
}

var readOutput = answer([]string{"ref", "content", "total_bytes", "sha256", "next"}, object{
	"ref":         a("string", "what was read"),
	"content":     a("string", "the piece"),
	"encoding":    object{"type": "string", "enum": []string{"utf-8", "base64"}},
	"first_line":  a("integer", "of the piece, from 1"),
	"last_line":   a("integer", "of the piece"),
	"char_offset": a("integer", "characters of the first line before the piece"),
	"byte_offset": a("integer", "of the piece, if it was read by bytes"),
	"bytes":       a("integer", "of the piece"),
	"total_lines": a("integer", "of all of it"),
	"total_bytes": a("integer", "of all of it"),
	"sha256":      a("string", "of all of it"),
	"text":        a("boolean", "the text of messages or of JSON blocks was read, not their bytes"),
	"images":      a("integer", "how many images come with the piece"),
	"pointer":     a("string", "to the JSON value that was read"),
	"value_type":  a("string", "of that value"),
	"next":        nextSchema,
})

// nextSchema is the call that reads on.
var nextSchema = object{"type": []string{"object", "null"}, "description": "the arguments that read on, null at the end"}

var grepOutput = answer([]string{"groups", "matches", "truncated", "next_cursor"}, object{
	"groups": list(object{"type": "object", "properties": object{
		"ref": a("string", ""), "line": a("integer", "the first"), "content": a("string", "lines with their numbers"),
		"matches": list(object{"type": "object", "properties": object{
			"line": a("integer", ""), "char_offset": a("integer", "")}}),
	}}),
	"matches":       a("integer", "in this answer"),
	"results":       a("integer", "that were looked at"),
	"scanned_bytes": a("integer", ""),
	"total_bytes":   a("integer", "of the result, if it was one"),
	"total_lines":   a("integer", ""),
	"sha256":        a("string", ""),
	"truncated":     a("boolean", "there may be more"),
	"stopped_by":    a("string", "max_matches, max_bytes or budget"),
	"next_cursor":   orNull("string", "goes on from here"),
	"note":          a("string", ""),
})

var searchOutput = answer([]string{"hits", "truncated", "next_cursor"}, object{
	"hits": list(object{"type": "object", "properties": object{
		"ref": a("string", "to read"), "line": a("integer", "to read from"), "char_offset": a("integer", ""),
		"seq": a("integer", "of the message"), "role": a("string", ""), "part": a("integer", ""), "kind": a("string", ""),
		"tool": a("string", ""), "words": list(a("string", "")), "score": a("number", ""), "snippet": a("string", ""),
		"read_back": a("string", "its path in the HTTP API"),
	}}),
	"words":         list(a("string", "")),
	"first_seq":     a("integer", "of the messages that were searched"),
	"last_seq":      a("integer", ""),
	"scanned_bytes": a("integer", ""),
	"truncated":     a("boolean", "older messages are not searched yet"),
	"stopped_by":    a("string", ""),
	"next_cursor":   orNull("string", "goes on from here"),
	"note":          a("string", ""),
})

var listOutput = answer([]string{"results", "next_cursor"}, object{
	"results": list(object{"type": "object", "properties": object{
		"ref": a("string", ""), "seq": a("integer", "of the message"), "tool": a("string", ""), "category": a("string", ""),
		"media_type": a("string", ""), "bytes": a("integer", ""), "lines": a("integer", ""), "tokens": a("integer", "about"),
		"sha256": a("string", ""),
	}}),
	"next_cursor": orNull("string", "goes on from here"),
})

var contextOutput = answer([]string{"content", "messages", "tokens", "total_messages"}, object{
	"content":        a("string", "the messages as text"),
	"messages":       a("integer", "in the content"),
	"tokens":         a("integer", "of these messages"),
	"total_messages": a("integer", "of the session's log"),
	"window_tokens":  a("integer", "of the model"),
	"compacted_to":   a("integer", "seq of the last message that the newest checkpoint covers"),
	"omitted":        a("integer", "messages that had no room"),
})

var compactionOutput = answer([]string{"run", "state"}, object{
	"run":    a("string", "id of the compaction"),
	"state":  a("string", "queued, running or how it ended"),
	"reason": a("string", ""),
})
