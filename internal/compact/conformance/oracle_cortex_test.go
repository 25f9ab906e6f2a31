package conformance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
)

// cortexSays returns what Cortex makes of a vector.
func cortexSays(v vector) object {
	e := &cortexEngine{config: section(v.Input["config"]), persist: text(section(v.Input["persist"])["mode"])}
	switch v.Op {
	case "estimateTokens":
		return object{"tokens": tokens4(text(v.Input["text"]))}
	case "capToolResult":
		return object{"content": e.capped(text(v.Input["text"]))}
	case "applyBookend":
		head, tail := int(number(v.Input["headChars"])), int(number(v.Input["tailChars"]))
		path, all := text(v.Input["path"]), int(number(v.Input["originalTokens"]))
		if path != "" && head != tail {
			return nil // what ages has equal ends
		}
		return object{"content": bookended(text(v.Input["text"]), head, tail, all, path, text(v.Input["toolName"]))}
	case "computeAction":
		var actions []object
		if len(objects(v.Input["messages"])) != 1 {
			return nil // it is asked about one
		}
		for _, offset := range v.Input["offsets"].([]any) {
			action := e.action(objects(v.Input["messages"])[0], number(offset), number(v.Input["hotZone"]), number(v.Input["degradationSpan"]))
			actions = append(actions, object{"tokenOffset": offset, "action": action.recorded()})
		}
		return object{"actions": actions}
	case "trimState":
		actions := object{}
		for i, action := range e.actions(objects(v.Input["messages"]), number(v.Input["contextWindow"])) {
			actions[fmt.Sprint(i)] = action.recorded()
		}
		return object{"actions": actions}
	}
	if calls := objects(v.Input["calls"]); calls != nil {
		var results []object
		for _, call := range calls {
			one := maps.Clone(v.Input)
			maps.Copy(one, call)
			results = append(results, e.apply(one))
		}
		return object{"results": results}
	}
	return e.apply(v.Input)
}

// cut returns the UTF-16 units of a text from one place to another; of a half of a character, U+FFFD.
func cut(s string, from, to int) string {
	all := utf16.Encode([]rune(s))
	return string(utf16.Decode(all[max(from, 0):min(to, len(all))]))
}

// cortexEngine is a Cortex with its cache of actions.
type cortexEngine struct {
	config  object
	persist string
	saved   int
	cached  map[int]cortexDoes
	key     [2]int
}

func (e *cortexEngine) number(name string, preset float64) float64 {
	if n, ok := e.config[name].(float64); ok {
		return n
	}
	return preset
}

func (e *cortexEngine) capped(s string) string {
	limit, kept := e.number("maxResultTokens", 50_000), int(e.number("bookendMaxChars", 2000))
	if float64(tokens4(s)) <= limit || 2*kept >= units(s) {
		return s
	}
	return strings.Replace(bookended(s, kept, kept, tokens4(s), "", ""), "tokens trimmed]", "tokens trimmed at insertion]", 1)
}

// bookended returns head and tail of a text; path says where all of it is.
func bookended(s string, head, tail, all int, path, tool string) string {
	header, clause := "", ""
	if path != "" {
		header = fmt.Sprintf("[Result persisted: %s (%d chars, ~%d tokens) -- %s]\n\n", path, units(s), all, tool)
		clause = "; full content at " + path
	}
	if head+tail >= units(s) {
		return header + s
	}
	first, last := cut(s, 0, head), s
	if tail > 0 {
		last = cut(s, units(s)-tail, units(s))
	}
	return header + first + fmt.Sprintf("\n\n... [~%d tokens trimmed%s] ...\n\n", all-tokens4(first)-tokens4(last), clause) + last
}

// cortexDoes is what is done to a message.
type cortexDoes struct {
	kind, tool, preview string
	chars, tokens       int
}

func (d cortexDoes) recorded() object {
	switch d.kind {
	case "bookend":
		return object{"kind": d.kind, "headChars": d.chars, "tailChars": d.chars, "originalTokens": d.tokens}
	case "placeholder":
		return object{"kind": d.kind, "toolName": d.tool, "preview": d.preview}
	}
	return object{"kind": d.kind}
}

func isCortexResult(m object) bool {
	return m["role"] == "toolResult" || slices.ContainsFunc(objects(m["content"]), func(p object) bool { return p["type"] == "tool_result" })
}

// toolOf returns the tool of a message: its own, or that of its first part with one.
func toolOf(m object) string {
	if name, ok := m["toolName"].(string); ok {
		return name
	}
	for _, p := range objects(m["content"]) {
		if name, ok := p["name"].(string); ok && (p["type"] == "tool_result" || p["type"] == "tool_use") {
			return name
		}
	}
	return ""
}

func (e *cortexEngine) category(tool string) string {
	if own := text(section(e.config["toolCategories"])[tool]); own != "" {
		return own
	}
	return map[string]string{"Read": "rereadable", "Glob": "rereadable", "Grep": "rereadable", "WebFetch": "non-reproducible",
		"Bash": "non-reproducible", "SubAgent": "ephemeral", "TaskOutput": "ephemeral"}[tool]
}

// action returns what is done to a message that has that number of tokens after it.
func (e *cortexEngine) action(m object, offset, zone, span float64) cortexDoes {
	category, lowest := e.category(toolOf(m)), e.number("bookendMinChars", 256)
	if category == "non-reproducible" {
		zone *= e.number("extendedRetentionMultiplier", map[bool]float64{true: 1, false: 1.5}[e.persist != ""])
	}
	if offset < zone {
		return cortexDoes{kind: "full"}
	}
	t := 1.0
	if span > 0 {
		t = min((offset-zone)/span, 1)
	}
	switch highest := e.number("bookendMaxChars", 2000); {
	case t < 1:
		chars := max(lowest, math.Floor(highest*(1-t)+lowest*t+0.5))
		return cortexDoes{kind: "bookend", chars: int(chars), tokens: tokens4(textOf(m["content"]))}
	case category == "ephemeral":
		return cortexDoes{kind: "clear"}
	}
	tool := toolOf(m)
	if tool == "" {
		tool = "unknown"
	}
	preview := strings.TrimSpace(strings.ReplaceAll(cut(textOf(m["content"]), 0, 80), "\n", " "))
	return cortexDoes{kind: "placeholder", tool: tool, preview: preview}
}

func (e *cortexEngine) actions(messages []object, window float64) map[int]cortexDoes {
	zone := max(e.number("hotZoneMinTokens", 16_000), window*e.number("hotZoneRatio", 0.05))
	span := window * e.number("degradationSpanRatio", 0.4)
	actions, offset := map[int]cortexDoes{}, 0
	for i, m := range slices.Backward(messages) {
		if does := e.action(m, float64(offset), zone, span); isCortexResult(m) && does.kind != "full" {
			actions[i] = does
		}
		offset += tokens4(textOf(m["content"]))
	}
	return actions
}

// apply returns the messages after one call.
func (e *cortexEngine) apply(input object) object {
	messages, window, used := objects(input["messages"]), number(input["contextWindow"]), number(input["currentTokens"])
	whole := object{"messages": append([]object{}, messages...), "sameReference": true}
	if input["resetCache"] == true {
		e.cached = nil
	}
	if window <= 0 || len(messages) == 0 || used/window < e.number("trimFloorRatio", 0.25) {
		return whole
	}
	if key := [2]int{len(messages), int(used / window * 10)}; e.cached == nil || key != e.key {
		e.cached, e.key = e.actions(messages, window), key
	}
	if len(e.cached) == 0 {
		return whole
	}
	list := slices.Clone(messages)
	for i := range e.cached {
		list[i] = maps.Clone(list[i])
	}
	for i := range list { // in order: what is saved has a number
		if does, ok := e.cached[i]; ok {
			list[i]["content"] = e.content(list[i], does)
		}
	}
	return object{"messages": list, "sameReference": false}
}

// content returns a message's content after an action: each part by itself, whatever the action was decided by.
func (e *cortexEngine) content(m object, does cortexDoes) any {
	parts := slices.Clone(objects(m["content"]))
	if len(parts) == 0 {
		return does.of(text(m["content"]), "", "")
	}
	for k, part := range parts {
		s, isText := part["text"].(string)
		legacy := part["type"] == "tool_result"
		if !isText || !legacy && (part["type"] != "text" || e.persist != "" && m["role"] != "toolResult" || !isCortexResult(m)) {
			continue
		}
		tool, isNamed := part["name"].(string)
		if !isNamed {
			tool = text(m["toolName"])
		}
		path := ""
		if category := e.category(tool); e.persist == "ok" && (category == "non-reproducible" || category == "computational") {
			path = fmt.Sprintf("/persist/%s-%d.txt", tool, e.saved)
			e.saved++
		}
		parts[k] = maps.Clone(part)
		parts[k]["text"] = does.of(s, path, tool)
	}
	return parts
}

// of returns the text in place of a text, which is saved at path.
func (d cortexDoes) of(s, path, tool string) string {
	switch {
	case d.kind == "bookend":
		return bookended(s, d.chars, d.chars, d.tokens, path, tool)
	case d.kind == "placeholder" && path != "":
		return `[Tool result persisted -- ` + tool + `: "` + d.preview + `" -- use Read on ` + path + ` for full content]`
	case d.kind == "placeholder":
		return `[Tool result trimmed -- ` + d.tool + `: "` + d.preview + `" -- see assistant response below for findings]`
	case path != "":
		return `[Tool result persisted -- ` + tool + ` -- use Read on ` + path + ` for full content]`
	}
	return "[Tool result cleared]"
}
