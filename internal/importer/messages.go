package importer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// roles are those of the formats' messages.
var roles = set("system", "developer", "user", "assistant", "tool", "function", "model")

// isMessage reports whether an object is a message of a format, or an item of the Responses API.
func isMessage(o object) bool {
	if !roles[o.text("role")] {
		return responsesItems[o.text("type")]
	}
	_, content := o["content"] // it may be null
	return content || o.first("parts", "tool_calls", "function_call", "refusal", "audio") != nil
}

// page returns the elements of a list as OpenAI's API answers it, in the order in which they were written, and any
// other value as it is. The items of a conversation come newest first unless the reader asked for another order
// (openai-openapi, GET /conversations/{id}/items), stored chat messages oldest first.
func page(data []byte) (inOrder []byte, reversed, more bool) {
	if !bytes.Contains(data, []byte(`"list"`)) || !json.Valid(data) {
		return data, false, false
	}
	o := parseObject(data)
	if o.text("object") != "list" || parseArray(o["data"]) == nil {
		return data, false, false
	}
	elements := parseArray(o["data"])
	if !newestFirst(elements) {
		return o["data"], false, o.is("has_more")
	}
	slices.Reverse(elements)
	return list(elements), true, o.is("has_more")
}

// newestFirst reports whether the elements of a list are in the opposite order of their conversation. It goes by the
// first of these that tells: a call and its result, the times in OpenAI's ids, who speaks first.
func newestFirst(elements [][]byte) bool {
	answered := map[string]bool{}
	var all []object
	for _, raw := range elements {
		o := parseObject(raw)
		id := o.text("call_id")
		switch {
		case id == "":
		case strings.HasSuffix(o.text("type"), "_output"):
			answered[id] = true
		default:
			return answered[id]
		}
		all = append(all, o)
	}
	if len(all) < 2 {
		return false
	}
	first, last := all[0], all[len(all)-1]
	if a, b := written(first.text("id")), written(last.text("id")); a != 0 && b != 0 && a != b {
		return a > b
	}
	return asks(last) && !asks(first)
}

func asks(o object) bool { return o.text("role") != "" && o.text("role") != "assistant" }

// written returns the Unix time that many of OpenAI's ids begin with in hexadecimal, 0 if an id has none.
func written(id string) int64 {
	_, digits, _ := strings.Cut(id, "_")
	if len(digits) < 32 {
		return 0
	}
	const begin, end = 1_690_000_000, 2_000_000_000 // no more: other ids begin with any digits
	at, err := strconv.ParseInt(digits[:8], 16, 64)
	if err != nil || at < begin || at > end {
		return 0
	}
	return at
}
