package conformance

import (
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// isOneMessage: the two messages of the system, one after the other, are one text; messages of the system are where they
// were, or in that text.
func isOneMessage(v vector, want, got object) bool {
	if v.Op != "compact" || messagesOf(got) == nil && got["rounds"] == nil {
		return false
	}
	rounds, recorded := objects(got["rounds"]), objects(want["rounds"])
	if rounds == nil {
		rounds, recorded = []object{got}, []object{want}
	}
	said := ""
	for i, round := range rounds {
		said += jsonText(messagesOf(round)) // a message that had no room is not told of again
		if !isJoined(messagesOf(recorded[i]), messagesOf(round), said) {
			return false
		}
	}
	return true
}

func isJoined(recorded, list []object, said string) bool {
	var others, rest []object
	for _, m := range recorded {
		if others = append(others, m); m["role"] == "system" {
			if others = others[:len(others)-1]; !strings.Contains(said, strings.Trim(jsonText(m["content"]), `"`)) &&
				!strings.Contains(said, "[Pinned, too, but there was no room: m") {
				return false
			}
		}
	}
	for _, m := range list {
		if m["role"] != "system" {
			rest = append(rest, m)
		}
	}
	for i := range others {
		if i+1 < len(others) && len(others) == len(rest)+1 && others[i]["role"] == "user" && others[i+1]["role"] == "user" {
			one := object{"role": "user", "content": text(others[i]["content"]) + "\n\n" + text(others[i+1]["content"])}
			if slices.EqualFunc(slices.Concat(others[:i], []object{one}, others[i+2:]), rest, isWithin) {
				return true
			}
		}
	}
	return slices.EqualFunc(others, rest, isWithin)
}

// isWithin reports whether a message is another one, or a memory of the user's that begins or ends that.
func isWithin(a, b object) bool {
	part, all := text(a["content"]), text(b["content"])
	part = summaryTag.ReplaceAllString(part, "&lt;$1")
	within := part != "" && (strings.HasPrefix(all, part) || strings.HasSuffix(all, part))
	return same(a, b) || a["role"] == "user" && b["role"] == "user" && within
}

// isUntouched: what the system rewrites although nothing is cut stays as it was sent, as does what has pictures, and line
// ends stay. A last line that is empty is none.
func isUntouched(v vector, want, got object) bool {
	given, now, recorded := objects(v.Input["messages"]), messagesOf(got), messagesOf(want)
	if v.Op != "processToolMessage" || len(now) != len(given) {
		return false
	}
	unix := func(m object) string { return strings.ReplaceAll(jsonText(m), `\r\n`, `\n`) }
	for i, m := range now {
		before, isText := given[i]["content"].(string)
		whole := (recorded[i]["trimmed"] != true || !isText) && same(m["content"], given[i]["content"])
		if ref := section(recorded[i]["output_ref"]); ref != nil && strings.HasSuffix(before, "\n") {
			ref["line_count"] = number(ref["line_count"]) - 1
		}
		limit := messageBytes(v)
		if !whole && unix(m) != unix(recorded[i]) && !isCutByLines(before, text(m["content"]), limit) {
			return false
		}
	}
	return true
}

// messageBytes returns codelia's limit of an output.
func messageBytes(v vector) int {
	if limit, ok := section(v.Input["config"])["maxMessageBytes"].(float64); ok {
		return int(limit)
	}
	return 51_200
}

// isCutByLines reports whether a text is as many whole lines of another, with their ends, as are within a limit, and a
// notice.
func isCutByLines(whole, now string, limit int) bool {
	kept, _, cut := strings.Cut(now, "\n\n[tool output truncated")
	rest, isHead := strings.CutPrefix(whole, kept)
	line, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(rest, "\r"), "\n"), "\n")
	return cut && isHead && len(kept) <= limit && len(kept)+len(line)+1 > limit && strings.Contains(whole, "\r\n")
}

// isStoredOutput: an output in parts has the size that is stored of it.
func isStoredOutput(v vector, want, got object) bool {
	if v.Op != "processToolMessage" {
		return false
	}
	for i, m := range objects(want["messages"]) {
		parts, isList := objects(v.Input["messages"])[i]["content"].([]any)
		if ref := section(m["output_ref"]); ref != nil && isList {
			ref["byte_size"], ref["line_count"] = len(jsonText(parts)), 1
		}
	}
	return same(want, got)
}

var dated = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)

// isModel: a name that the registry has without its date and provider is no unknown model.
func isModel(v vector, want, got object) bool {
	if model := section(v.Input["llm"])["model"]; v.Op == "trimMessages" {
		known, asked := v, normal(v.asked)
		listed, _ := asked["registry"].([]any)
		spec := object{"id": model, "contextWindow": float64(session.DefaultWindowTokens)}
		known.Input = object{"llm": v.Input["llm"], "registry": append(listed, spec)}
		list := codeliaBudget(known, section(asked["config"]), objects(asked["messages"]))
		return codeliaLimit(v, model) == 0 && same(object{"messages": list}, got)
	}
	if v.Op != "shouldCompact" {
		return false
	}
	was, now := want["results"].([]any), got["results"].([]any)
	for i, usage := range objects(v.Input["usages"]) {
		if same(was[i], now[i]) {
			continue
		}
		name := dated.ReplaceAllString(text(usage["model"]), "")
		_, bare, _ := strings.Cut(name, "/")
		known := func(m object) bool { return m["id"] == name || m["id"] == bare }
		if section(was[i])["error"] == nil && was[i] != unknownModel || !slices.ContainsFunc(objects(v.Input["registry"]), known) {
			return false
		}
	}
	return true
}

// isOpen: a call that nothing has answered yet stays, with its turn and what is after it.
func isOpen(v vector, want, got object) bool {
	given, answered := objects(v.Input["messages"]), map[string]bool{}
	for _, m := range given {
		answered[text(m["tool_call_id"])] = true
	}
	isCall := func(c object) bool { return !answered[text(c["id"])] }
	open := func(m object) bool { return slices.ContainsFunc(objects(m["tool_calls"]), isCall) }
	if v.Op != "compact" || !slices.ContainsFunc(given, open) {
		return false
	}
	if same(given, messagesOf(got)) { // all else that a summary would replace is of the system
		left := func(m object) bool {
			return !open(m) && !slices.ContainsFunc(messagesOf(want), func(w object) bool { return same(w, m) })
		}
		return !slices.ContainsFunc(given, left)
	}
	given = slices.DeleteFunc(slices.Clone(given), func(m object) bool { return m["role"] == "system" })
	was, list := messagesOf(want), messagesOf(got)
	for at := range was {
		more := len(list) - len(was)
		if more < 1 || !same(list[:at+1], was[:at+1]) || !same(list[at+1+more:], append([]object{}, was[at+1:]...)) {
			continue
		}
		between := list[at+1 : at+1+more]
		from := len(given) - (len(list) - at - 1)
		call := slices.IndexFunc(between, open)
		spoke := func(m object) bool { return m["role"] == "user" }
		if from >= 0 && same(given[from:from+more], between) && call >= 0 && !slices.ContainsFunc(between[min(1, call):call], spoke) {
			return true
		}
	}
	return false
}
