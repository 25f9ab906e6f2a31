package conformance

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// isManual: a window above 0, the name of a category and options that the manual has and the program does not use.
func isManual(v vector, want, got object) bool {
	config := section(v.Input["config"])
	for _, setting := range []string{"maxTokens", "maxToolResultChars"} {
		if size, set := config[setting]; set && v.System == "falai" && number(size) <= 0 && (got["error"] != nil || got["refused"] != nil) {
			return true
		}
	}
	if v.System != "llm-proxy" {
		return false
	}
	denied, _ := config["denied_tool_categories"].([]any)
	if slices.Contains(denied, any("list_directory")) {
		return same(objects(v.Input["messages"]), messagesOf(got))
	}
	return isOptions(config, objects(v.Input["messages"]), messagesOf(want), messagesOf(got))
}

var stubbed = regexp.MustCompile(`^\[COMPACTED\] Previous output for (.*) \((\d+) bytes\) was removed`)

// isOptions: stubs have the text of the template, and the newest results of a resource stay.
func isOptions(config object, given, recorded, now []object) bool {
	template, keep := text(config["stub_template"]), int(max(number(config["preserve_last_n_results"]), 1))
	if template == "" && keep == 1 || len(now) != len(recorded) {
		return false
	}
	left := map[string]int{} // results of a resource that stay longer
	for i, m := range slices.Backward(recorded) {
		stub := stubbed.FindStringSubmatch(text(m["content"]))
		if stub == nil {
			if !same(m, now[i]) {
				return false
			}
			continue
		}
		if left[stub[1]]++; left[stub[1]] < keep {
			if !same(now[i], given[i]) {
				return false
			}
			continue
		}
		want := maps.Clone(m)
		if template != "" {
			want["content"] = strings.NewReplacer("{resource}", stub[1], "{size}", stub[2]).Replace(template)
		}
		if !same(want, now[i]) {
			return false
		}
	}
	return true
}

var key = regexp.MustCompile(`\b(sk[-_]|ak-)[\w-]{16,}`)

// isSecret: the report hides what the stub hides, and a text of another kind of secret is hidden, too.
func isSecret(v vector, want, got object) bool {
	if v.Op == "redact" {
		given, now, was := v.Input["texts"].([]any), got["texts"].([]any), want["texts"].([]any)
		for i := range now {
			if now[i] != was[i] && (text(now[i]) == text(given[i]) || !strings.Contains(text(now[i]), "***")) {
				return false
			}
		}
		return true
	}
	names, _ := want["stale_resources"].([]any)
	if section(v.Input["config"])["redact_resource_identifiers"] != true || len(names) == 0 {
		return false
	}
	for i, name := range names {
		names[i] = key.ReplaceAllString(text(name), "***")
	}
	return same(normal(want), got)
}

// areStubs reports whether some messages were compacted as the system does it: each is as it was sent, or the stub of
// its own size.
func areStubs(given, now []object) bool {
	stubs := 0
	for i, m := range now {
		stub := stubbed.FindStringSubmatch(text(m["content"]))
		if stub != nil && stub[2] == strconv.Itoa(len(text(given[i]["content"]))) {
			stubs++
		} else if !same(m, given[i]) {
			return false
		}
	}
	return stubs > 0 && len(now) == len(given)
}

// isBookkeeping: what fails inside, or metadata of a wrong type, does not end the compaction; the names of settings are
// not answered, and an empty name has no colon before it.
func isBookkeeping(v vector, want, got object) bool {
	if v.Op == "extractIdentity" {
		return strings.ReplaceAll(jsonText(want), `:"}`, `"}`) == jsonText(got)
	}
	given := objects(v.Input["messages"])
	fails := v.Input["forceError"] != nil || slices.ContainsFunc(given, func(m object) bool {
		_, list := section(m["metadata"])["tool_args"].([]any)
		return list
	})
	return v.Op == "diagnostics" && got["refused"] != nil || fails && areStubs(given, messagesOf(got))
}

// withRef is the clause that the product adds to a stub.
const withRef = len(" In full: read_result r1000.0-0000.")

// isSmaller: where the stub is no shorter than the result, the result stays.
func isSmaller(v vector, want, got object) bool {
	given, now, kept := objects(v.Input["messages"]), messagesOf(got), 0
	for i, m := range messagesOf(want) {
		switch {
		case len(now) <= i:
			return false
		case same(m, now[i]):
		case same(now[i], given[i]) && len(text(m["content"]))+withRef >= len(text(given[i]["content"])):
			kept++
		default:
			return false
		}
	}
	return kept > 0
}
