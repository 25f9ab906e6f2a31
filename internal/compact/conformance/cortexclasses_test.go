package conformance

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

var (
	trimmedTokens = regexp.MustCompile(`~(-?\d+) tokens trimmed`)
	savedTokens   = regexp.MustCompile(`chars, ~\d+ tokens\)`)
	previewed     = regexp.MustCompile(`(?s)^\[Tool result (trimmed|persisted) -- ([^":]*)(: ".*")? -- (.*)\]$`)
	persistPath   = regexp.MustCompile(`/persist/([\w-]+)-\d+\.txt`)
)

// isOwn: a record that decides by message, or by place, has at each part what that part's own figures make of it.
func isOwn(v vector, want, got object) bool {
	switch {
	case v.Op == "applyBookend":
		all := tokens4(text(v.Input["text"]))
		own := all - int(number(v.Input["originalTokens"]))
		was := savedTokens.ReplaceAllString(text(want["content"]), "chars, ~"+strconv.Itoa(all)+" tokens)")
		return own != 0 && alike(v, got["content"], moreTrimmed(was, own))
	case v.Input["calls"] != nil:
		return isReplay(v, want, got)
	case v.Op != "micro":
		return false
	}
	given, list := objects(v.Input["messages"]), messagesOf(want)
	for i, m := range list {
		list[i] = ownParts(v, given[i], m)
	}
	want["messages"] = list
	return alike(v, normal(want), got)
}

// moreTrimmed returns a bookend that says that more tokens were trimmed.
func moreTrimmed(s string, more int) string {
	return trimmedTokens.ReplaceAllStringFunc(s, func(found string) string {
		n, _ := strconv.Atoi(trimmedTokens.FindStringSubmatch(found)[1])
		return "~" + strconv.Itoa(n+more) + " tokens trimmed"
	})
}

// ownParts returns a message of a record with each of its parts as it would be alone.
func ownParts(v vector, given, m object) object {
	parts, before := slices.Clone(objects(m["content"])), objects(given["content"])
	if parts == nil || same(given, m) {
		return m
	}
	all := textOf(given["content"])
	for k, part := range parts {
		own := text(before[k]["text"])
		if part["text"] == nil || given["role"] != "toolResult" && part["type"] != "tool_result" {
			parts[k] = before[k]
			continue
		}
		parts[k] = maps.Clone(part)
		name := text(part["name"])
		if name == "" {
			name = text(m["toolName"])
		}
		parts[k]["text"] = ownText(v, text(part["text"]), own, name, all)
	}
	m = maps.Clone(m)
	m["content"] = parts
	return m
}

func ownText(v vector, now, own, name, all string) string {
	category := text(section(section(v.Input["config"])["toolCategories"])[name])
	ephemeral := category == "ephemeral" || category == "" && (name == "SubAgent" || name == "TaskOutput")
	line := previewed.FindStringSubmatch(now)
	switch {
	case line != nil && ephemeral:
		return "[Tool result cleared]"
	case line != nil:
		return "[Tool result " + line[1] + " -- " + name + `: "` + previewOf(own) + `" -- ` + line[4] + "]"
	case now == "[Tool result cleared]" && !ephemeral:
		return "[Tool result trimmed -- " + name + `: "` + previewOf(own) + `" -- see assistant response below for findings]`
	}
	now = savedTokens.ReplaceAllString(now, "chars, ~"+strconv.Itoa(tokens4(own))+" tokens)")
	return moreTrimmed(now, tokens4(own)-tokens4(all))
}

func previewOf(s string) string {
	all := utf16.Encode([]rune(s))
	first := strings.ReplaceAll(string(utf16.Decode(all[:min(80, len(all))])), "\ufffd", "")
	return strings.TrimSpace(strings.ReplaceAll(first, "\n", " "))
}

// isReplay: where the system acts by the places of an earlier call, each call is as the first.
func isReplay(v vector, want, got object) bool {
	v.Input = normal(v.asked)
	for _, call := range objects(v.Input["calls"]) {
		call["resetCache"] = true
	}
	afresh := normal(cortexSays(v))
	plain := normal(plainOf(afresh))
	v.Half = v.Half || strings.Contains(jsonText(afresh), "\ufffd")
	return !same(want, afresh) && (alike(v, restricted(afresh, got), got) || alike(v, restricted(plain, got), got))
}

// restricted returns of the results of several calls the members that others have.
func restricted(all, others object) object {
	for i, one := range objects(all["results"]) {
		maps.DeleteFunc(one, func(member string, _ any) bool { return objects(others["results"])[i][member] == nil })
	}
	return all
}

// isSaved: what the system forgets to save, or saves again, has the name under which it is saved once.
func isSaved(v vector, want, got object) bool {
	if section(v.Input["persist"])["mode"] != "ok" {
		return false
	}
	if v.Input["calls"] != nil {
		once := func(o object) (all any) {
			decode([]byte(persistPath.ReplaceAllString(jsonText(o), "/persist/$1-0.txt")), &all)
			return all
		}
		return !same(want, got) && alike(v, once(want), once(got))
	}
	paths, list, e := 0, messagesOf(want), cortexEngine{config: section(v.Input["config"]), persist: "ok"}
	acts := e.actions(objects(v.Input["messages"]), number(v.Input["contextWindow"]))
	for i, m := range list {
		whole, isText := objects(v.Input["messages"])[i]["content"].(string)
		category := e.category(toolOf(m))
		if does := acts[i]; isText && m["role"] == "toolResult" && does.kind != "" && whole != "" &&
			(category == "non-reproducible" || category == "computational") {
			list[i] = maps.Clone(m)
			list[i]["content"] = savedAs(text(m["content"]), whole, toolOf(m), "/persist/"+toolOf(m)+"-"+strconv.Itoa(paths)+".txt")
			paths++
		}
	}
	want["messages"] = list
	return paths > 0 && alike(v, normal(want), got)
}

// savedAs returns the text in place of a result as it is if the result is saved.
func savedAs(now, whole, tool, path string) string {
	if line := previewed.FindStringSubmatch(now); line != nil {
		return "[Tool result persisted -- " + line[2] + line[3] + " -- use Read on " + path + " for full content]"
	}
	header := fmt.Sprintf("[Result persisted: %s (%d chars, ~%d tokens) -- %s]\n\n", path, units(whole), tokens4(whole), tool)
	return header + strings.Replace(now, " tokens trimmed] ...", " tokens trimmed; full content at "+path+"] ...", 1)
}
