package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// codeliaMessage is one message; members that the system only carries along stay as they are.
type codeliaMessage map[string]json.RawMessage

func (m codeliaMessage) set(name string, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	m[name] = raw
}

// text returns a member that is a text, or "".
func (m codeliaMessage) text(name string) string {
	value, _ := jsonText(m[name])
	return value
}

func (m codeliaMessage) absent(name string) bool {
	return len(m[name]) == 0 || string(m[name]) == "null"
}

// list returns a member that is a list of objects, or nil.
func (m codeliaMessage) list(name string) []codeliaMessage {
	var list []codeliaMessage
	if err := json.Unmarshal(m[name], &list); err != nil {
		return nil
	}
	return list
}

// only has the role and content, and of the other names those that hold something.
func (m codeliaMessage) only(names ...string) codeliaMessage {
	kept := codeliaMessage{}
	for _, name := range names {
		if name == "role" || name == "content" || m.text(name) != "" {
			kept[name] = m[name]
		}
	}
	return kept
}

// remembers reports whether the message holds what an earlier compaction retained or summarised.
func (m codeliaMessage) remembers() bool {
	content := m.text("content")
	return m.text("role") == "user" && (strings.HasPrefix(content, retainMark) || strings.HasPrefix(content, summaryMark))
}

// ref returns the ref under which the whole result was saved, or "".
func (m codeliaMessage) ref() string {
	var ref codeliaMessage
	if err := json.Unmarshal(m["output_ref"], &ref); err != nil {
		return ""
	}
	return ref.text("id")
}

// projection returns a result as one text.
func (m codeliaMessage) projection() string {
	if content, ok := jsonText(m["content"]); ok {
		return content
	}
	var b strings.Builder
	for _, part := range m.list("content") {
		switch part.text("type") {
		case "text":
			b.WriteString(part.text("text"))
		case "image_url":
			b.WriteString("[image]")
		case "document":
			b.WriteString("[document]")
		case "other":
			fmt.Fprintf(&b, "[other:%s/%s]", part.text("provider"), part.text("kind"))
		default:
			b.WriteString("[content]")
		}
	}
	return b.String()
}

func (m codeliaMessage) textOnly() bool {
	return !slices.ContainsFunc(m.list("content"), func(part codeliaMessage) bool { return part.text("type") != "text" })
}

func jsonText(raw json.RawMessage) (value string, ok bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	err := json.Unmarshal(raw, &value)
	return value, err == nil
}

func orText(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// orEmpty returns a list that is written as [], not as null.
func orEmpty[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}
