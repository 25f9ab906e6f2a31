package conformance

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/varve-dev/varve/internal/session"
)

// toolCompaction translates a message with calls and the results that answer them into a message of the AI SDK, where
// both are objects.
func toolCompaction(v vector) object {
	config, messages := section(v.Input["config"]), objects(v.Input["messages"])
	q := ask(v, session.AISDK, config)
	limits := q.resolve().Dedupe
	parts := map[string]object{} // of the calls, by id
	for _, m := range slices.Backward(messages) {
		for _, r := range objects(m["toolResults"]) {
			parts[text(r["id"])] = object{"state": "output-available", "output": r["result"]}
		}
	}
	for _, m := range messages {
		made := []object{}
		for _, c := range objects(m["toolCalls"]) {
			part := object{"state": "input-available", "type": "tool-" + text(c["toolName"]), "toolCallId": c["id"],
				"input": c["arguments"]}
			maps.Copy(part, parts[text(c["id"])])
			made = append(made, part)
		}
		if m["role"] != "tool" {
			made = append(made, object{"type": "text", "text": text(m["content"])})
			q.bodies = append(q.bodies, []byte(php(object{"role": m["role"], "parts": made})))
		}
	}
	for _, body := range q.compact().bodies {
		var m object
		decode(body, &m)
		for _, part := range objects(m["parts"]) {
			parts[text(part["toolCallId"])] = part
		}
	}
	for _, m := range messages {
		for _, c := range objects(m["toolCalls"]) {
			c["arguments"], _ = phpOmitted(section(c["arguments"]), section(parts[text(c["id"])]["input"]), limits.ArgumentBytes)
		}
		for _, r := range objects(m["toolResults"]) {
			result, note := phpOmitted(section(r["result"]), section(parts[text(r["id"])]["output"]), limits.MinBytes-1)
			r["result"], m["content"] = result, cmp.Or(note, text(m["content"]))
		}
	}
	return object{"messages": messages}
}

// phpOmitted translates what the product lists of omitted members, and names their content as the system does: by the
// hash of its JSON, not of its text. note is the product's line about a result.
func phpOmitted(given, now object, limit int) (members object, note string) {
	list := section(now["_omitted"])
	if list == nil {
		return now, ""
	}
	hash := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	fields := object{}
	for name, value := range list {
		if entry := section(value); entry != nil {
			if entry["sha256"] == hash(text(given[name])) {
				entry["sha256"] = hash(php(given[name]))
			}
			fields[name] = entry
		}
	}
	delete(now, "_omitted")
	now["_tool_compaction"] = object{"thresholdBytes": limit, "omittedFields": fields}
	return now, named(text(list["note"]), "")
}

// php returns a value as PHP writes it.
func php(value any) string {
	var b strings.Builder
	for _, r := range jsonText(value) {
		switch {
		case r == '/':
			b.WriteString(`\/`)
		case r > 0x7f:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
