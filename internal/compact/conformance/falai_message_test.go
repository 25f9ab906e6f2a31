package conformance

import (
	"encoding/json"
	"maps"

	"github.com/varve-dev/varve/internal/compact/text"
)

// estimateFalai returns a quarter of the characters of all messages together, rounded up.
func estimateFalai(history []falaiMessage) int { return (sumOf(chars(history)) + 3) / 4 }

// chars returns the characters of each message that the estimate counts: content, name, and four for the role.
func chars(history []falaiMessage) []int {
	sizes := make([]int, len(history))
	for i, m := range history {
		sizes[i] = text.Len(contentText(m["content"])) + 4
		if name := m["name"]; len(name) > 0 && name[0] == '"' {
			sizes[i] += len(javaScriptUnits(name))
		}
	}
	return sizes
}

func (m falaiMessage) role() string { return string(contentText(m["role"])) }

func (m falaiMessage) with(content []byte) falaiMessage {
	changed := maps.Clone(m)
	changed["content"] = jsonOf(string(content))
	return changed
}

// contentText returns a content as text: a string as it is, anything else as JSON; nothing is an empty string in JSON.
func contentText(content json.RawMessage) []byte {
	switch {
	case absent(content):
		return []byte(`""`)
	case content[0] == '"':
		var plain string
		mustDecode(content, &plain)
		return []byte(plain)
	}
	return appendJavaScript(nil, content)
}

func absent(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

func jsonOf(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

func sumOf(sizes []int) int {
	total := 0
	for _, size := range sizes {
		total += size
	}
	return total
}

func count(flags []bool) int {
	n := 0
	for _, flag := range flags {
		if flag {
			n++
		}
	}
	return n
}
