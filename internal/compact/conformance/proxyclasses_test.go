package conformance

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
	return isAsWith(v, want, got, func(p *proxy) { p.manual = true }) ||
		isAsWith(v, want, got, func(p *proxy) { p.manual, p.errors = true, true })
}

// isAsWith reports whether an answer is the record of a system with a change.
func isAsWith(v vector, want, got object, change func(p *proxy)) bool {
	p := newProxy(v)
	change(p)
	as := p.says(vector{Op: v.Op, Input: normal(v.asked)})
	return as != nil && !same(want, normal(as)) && (same(normal(as), got) || isSmaller(v, normal(as), got))
}

// isError: what an error would have superseded stays.
func isError(v vector, want, got object) bool {
	return isAsWith(v, want, got, func(p *proxy) { p.errors = true })
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

var (
	stubbed   = regexp.MustCompile(`^\[COMPACTED\] Previous output for (.*) \((\d+) bytes\) was removed`)
	emptyName = regexp.MustCompile(`:(:|"})`)
)

// isBookkeeping: what fails inside, or metadata of a wrong type, does not end the compaction; the names of settings are
// not answered, and an empty name has no colon before it.
func isBookkeeping(v vector, want, got object) bool {
	if v.Op == "extractIdentity" {
		return emptyName.ReplaceAllString(jsonText(want), "$1") == jsonText(got)
	}
	given := objects(v.Input["messages"])
	if as := sameWithout(v); as != nil {
		as, got := unmarked(as), unmarked(got)
		if same(as, got) || isSmaller(vector{Input: unmarked(v.asked)}, as, got) {
			return true
		}
	}
	fails := v.Input["forceError"] != nil || slices.ContainsFunc(given, func(m object) bool {
		_, list := section(m["metadata"])["tool_args"].([]any)
		return list || slices.ContainsFunc(objects(m["tool_calls"]), func(c object) bool { return c["id"] == "" })
	})
	return v.Op == "diagnostics" && got["refused"] != nil || fails && areStubs(given, messagesOf(got))
}

// withRef is the clause that the product adds to a stub.
const withRef = len(" In full: read_result r1000.0-0000.")

// isSmaller: where the stub has no fewer bytes than the result, or no fewer characters, the result stays.
func isSmaller(v vector, want, got object) bool {
	given, now, kept := objects(v.Input["messages"]), messagesOf(got), 0
	for i, m := range messagesOf(want) {
		switch {
		case len(now) <= i:
			return false
		case same(m, now[i]):
		case same(now[i], given[i]) && (len(text(m["content"]))+withRef >= len(text(given[i]["content"])) ||
			len(text(m["content"]))+withRef >= utf8.RuneCountInString(text(given[i]["content"]))):
			kept++
		default:
			return false
		}
	}
	return kept > 0
}

// sameWithout returns what the system makes of a vector without its marks of what was compacted, nil if there are none.
func sameWithout(v vector) object {
	v.Input = normal(v.asked)
	marked := false
	for _, m := range objects(v.Input["messages"]) {
		if section(m["metadata"])["_compacted"] != nil {
			delete(m, "metadata")
			marked = true
		}
	}
	if !marked {
		return nil
	}
	return normal(llmProxySays(v))
}

// unmarked returns an answer, or an input, without the metadata of its messages and members that are null.
func unmarked(o object) object {
	o = normal(o)
	for _, m := range messagesOf(o) {
		maps.DeleteFunc(m, func(name string, value any) bool { return name == "metadata" || value == nil })
	}
	return o
}

// isWholeCount: the tokens of each message are whole, and their sum is compared with the threshold.
func isWholeCount(v vector, want, got object) bool {
	sum, input := 0, normal(v.asked)
	for _, m := range objects(input["messages"]) {
		sum += len([]rune(text(m["content"]))) / 4
	}
	if got["stage"] != nil {
		return got["tokenEstimate"] == float64(sum) && float64(sum) < newProxy(v).number("token_threshold", 100_000)
	}
	input["tokenEstimate"] = float64(sum)
	as := llmProxySays(vector{Op: "compact", Input: input})
	return v.Op == "pipeline" && !same(want, normal(as)) && same(normal(as), got)
}
