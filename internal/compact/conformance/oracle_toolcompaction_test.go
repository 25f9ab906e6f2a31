package conformance

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// toolCompactionSays returns what tool-compaction's document says of a vector: from the newest message to the oldest, the
// first of each group stays, and of the others all large fields are omitted. What the document leaves open (several
// results in a message, results without calls, an id twice) has no answer.
func toolCompactionSays(v vector) object {
	messages := objects(v.Input["messages"])
	calls := map[string]object{}
	for _, m := range messages {
		for _, c := range objects(m["toolCalls"]) {
			if calls[text(c["id"])] != nil || len(objects(m["toolCalls"])) > 1 {
				return nil
			}
			calls[text(c["id"])] = c
		}
	}
	group, kept := phpGroups{section(v.Input["config"]), map[string]bool{}}, map[string]bool{}
	for _, m := range slices.Backward(messages) {
		for _, r := range objects(m["toolResults"]) {
			call := calls[text(r["id"])]
			if call == nil || kept[text(r["id"])] || len(objects(m["toolResults"])) > 1 || m["role"] != "tool" {
				return nil
			}
			if group.excludes(call) || group.isNew(call) {
				kept[text(r["id"])] = true
				continue
			}
			if omitted := phpOmit(section(r["result"]), phpLimit(v, "outputTrimBytes"), nil); omitted != nil {
				r["result"] = omitted
				m["content"] = fmt.Sprintf("[tool_compaction] Tool result compacted for tool=%s, callId=%s. Large fields omitted.",
					r["toolName"], r["id"])
			}
		}
		for _, c := range objects(m["toolCalls"]) {
			if group.excludes(c) || kept[text(c["id"])] || group.isNew(c) {
				continue
			}
			if omitted := phpOmit(section(c["arguments"]), phpLimit(v, "inputTrimBytes"), group.fields(c)); omitted != nil {
				c["arguments"] = omitted
			}
		}
	}
	return object{"messages": messages}
}

// phpGroups are the groups of calls that were seen.
type phpGroups struct {
	config object
	seen   map[string]bool
}

func (g phpGroups) fields(call object) (names []any) {
	table, _ := g.config["toolIdentifierFields"].(object)
	names, _ = table[text(call["toolName"])].([]any)
	return names
}

func (g phpGroups) excludes(call object) bool {
	excluded, _ := g.config["excludedTools"].([]any)
	return slices.Contains(excluded, call["toolName"])
}

// isNew reports whether a call is the first of its group, from now on.
func (g phpGroups) isNew(call object) bool {
	key := []any{call["toolName"]}
	for _, field := range g.fields(call) {
		key = append(key, field, section(call["arguments"])[text(field)])
	}
	name := jsonText(key)
	defer func() { g.seen[name] = true }()
	return !g.seen[name]
}

func phpLimit(v vector, name string) int {
	limit, isNumber := section(v.Input["config"])[name].(float64)
	if !isNumber {
		return 100
	}
	return int(limit)
}

// phpOmit returns fields without the values that are larger than limit, nil if there is none.
func phpOmit(fields object, limit int, identifiers []any) object {
	omitted, list := maps.Clone(fields), object{}
	for name, value := range fields {
		size := phpSize(value)
		if size <= limit || size == 0 || slices.Contains(identifiers, any(name)) {
			continue
		}
		omitted[name] = "[omitted]"
		list[name] = object{"bytes": size, "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(php(value))))}
	}
	if len(list) == 0 {
		return nil
	}
	omitted["_tool_compaction"] = object{"thresholdBytes": limit, "omittedFields": list}
	return omitted
}

// phpSize returns the bytes of a value: of a text or a number as it is, of a list or an object as JSON.
func phpSize(value any) int {
	switch value := value.(type) {
	case nil:
		return 0
	case string:
		return len(value)
	case bool:
		return map[bool]int{true: 1}[value]
	case float64:
		return len(strconv.FormatFloat(value, 'g', 14, 64))
	}
	return len(php(value))
}
