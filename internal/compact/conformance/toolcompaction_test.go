package conformance

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// toolCompaction translates a message with calls and the results that answer them into a message of the AI SDK, where
// both are objects.
func toolCompaction(v vector) (object, error) {
	config := section(v.Input["config"])
	q := ask("tool-compaction", session.AISDK, "only_smaller=false target=0.00001")
	q.context = always
	q.set("dedupe.min_bytes", 1+phpLimit(config, "outputTrimBytes"))
	q.set("dedupe.argument_bytes", phpLimit(config, "inputTrimBytes"))
	if fields := section(config["toolIdentifierFields"]); fields != nil {
		q.set("dedupe.fields", fields)
	}
	if tools, ok := config["excludedTools"].([]any); ok {
		q.set("protect.tools", tools)
	}
	messages := objects(v.Input["messages"])
	parts := map[string]object{} // of the calls, by id
	var list []object
	for _, m := range messages {
		made := []object{}
		if m["content"] != nil && len(objects(m["toolResults"])) == 0 {
			made = append(made, object{"type": "text", "text": m["content"]})
		}
		for _, c := range objects(m["toolCalls"]) {
			part := object{"type": "tool-" + text(c["toolName"]), "toolCallId": c["id"], "state": "input-available", "input": c["arguments"]}
			parts[text(c["id"])] = part
			made = append(made, part)
		}
		for _, r := range objects(m["toolResults"]) {
			parts[text(r["id"])]["state"], parts[text(r["id"])]["output"] = "output-available", r["result"]
		}
		if m["role"] != "tool" {
			list = append(list, object{"role": m["role"], "parts": made})
		}
	}
	for _, m := range list {
		q.bodies = append(q.bodies, []byte(php(m)))
	}
	o, err := q.compact()
	if err != nil {
		return nil, err
	}
	for _, body := range o.bodies {
		for _, part := range objects(contentOf(body)["parts"]) {
			parts[text(part["toolCallId"])] = part
		}
	}
	for _, m := range messages {
		for _, c := range objects(m["toolCalls"]) {
			c["arguments"], _ = phpOmitted(section(c["arguments"]), section(parts[text(c["id"])]["input"]), phpLimit(config, "inputTrimBytes"))
		}
		for _, r := range objects(m["toolResults"]) {
			result, note := phpOmitted(section(r["result"]), section(parts[text(r["id"])]["output"]), phpLimit(config, "outputTrimBytes"))
			r["result"], m["content"] = result, cmp.Or(note, text(m["content"]))
		}
	}
	return object{"messages": messages}, nil
}

// phpLimit returns a limit of the settings; the system takes 100 for one of a wrong type.
func phpLimit(config object, name string) float64 {
	if limit, ok := config[name].(float64); ok {
		return limit
	}
	return 100
}

// phpOmitted translates what the product lists of omitted members, and names their content as the system does: by the
// hash of its JSON, not of its text. note is the product's line about a result.
func phpOmitted(given, now object, limit float64) (members object, note string) {
	list := section(now["_omitted"])
	if list == nil {
		return now, ""
	}
	fields := object{}
	for name, value := range list {
		entry := section(value)
		if entry == nil {
			continue
		}
		for _, content := range []string{text(given[name]), jsonText(given[name])} {
			if entry["sha256"] == sha(content) {
				entry["sha256"] = sha(php(given[name]))
			}
		}
		fields[name] = entry
	}
	delete(now, "_omitted")
	now["_tool_compaction"] = object{"thresholdBytes": limit, "omittedFields": fields}
	return now, named(text(list["note"]), "")
}

func sha(text string) string {
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
