package conformance

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// isManual: a window above 0, a share of at most 1, the name of a category and options that the manual has and the
// program does not use.
func isManual(v vector, want, got object) bool {
	config := section(v.Input["config"])
	for name, share := range config {
		if strings.HasSuffix(name, "Ratio") && (number(share) <= 0 || number(share) > 1) && got["refused"] != nil {
			return true
		}
	}
	for _, setting := range []string{"maxTokens", "maxToolResultChars"} {
		if size, set := config[setting]; set && v.System == "falai" && number(size) <= 0 && (got["error"] != nil || got["refused"] != nil) {
			return true
		}
	}
	if v.System != "llm-proxy" {
		return false
	}
	if kept, set := config["preserve_last_n_results"]; set && number(kept) < 1 && got["refused"] != nil {
		return true // the newest result always stays
	}
	denied, _ := config["denied_tool_categories"].([]any)
	if slices.Contains(denied, any("list_directory")) {
		return same(objects(v.Input["messages"]), messagesOf(got))
	}
	return isAsWith(v, got, "manual")
}

// proxyRules are what Varve does otherwise, by class.
var proxyRules = map[string]func(p *proxy){
	"manual": func(p *proxy) { p.manual = true }, "errors": func(p *proxy) { p.errors = true },
	"bookkeeping": func(p *proxy) { p.sound = true }, "plain": func(p *proxy) { p.secrets = true },
	"units": func(p *proxy) { p.paired = true }, "own": func(p *proxy) { p.stored = true },
}

// asWith returns the record of a system with some rules, nil if it has none.
func asWith(v vector, rules ...string) object {
	p := newProxy(v)
	for _, rule := range rules {
		proxyRules[rule](p)
	}
	as := p.says(vector{Op: v.Op, Input: normal(v.asked)})
	if as == nil {
		return nil
	}
	return normal(as)
}

// isAsWith reports whether an answer is the record with a rule, perhaps beside others, and is not without it.
func isAsWith(v vector, got object, rule string) bool {
	var others []string
	for name := range proxyRules {
		if name != rule {
			others = append(others, name)
		}
	}
	for set := range 1 << len(others) {
		var chosen []string
		for i, name := range others {
			if set&(1<<i) > 0 {
				chosen = append(chosen, name)
			}
		}
		with := asWith(v, append(slices.Clone(chosen), rule)...)
		if with != nil && !same(with, asWith(v, chosen...)) && (same(with, got) || isSmaller(v, with, got)) {
			return true
		}
	}
	return false
}

// isError: what an error would have superseded stays.
func isError(v vector, _, got object) bool { return isAsWith(v, got, "errors") }

// isPaired: a result is of its own call, and not of a later one with the same id.
func isPaired(v vector, _, got object) bool { return isAsWith(v, got, "units") }

// isStored: the size of a result in parts is what is stored of it.
func isStored(v vector, _, got object) bool { return isAsWith(v, got, "own") }

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
	return isAsWith(v, got, "plain")
}

var emptyName = regexp.MustCompile(`:(:|"})`)

// isBookkeeping: what fails inside, or metadata of a wrong type, does not end the compaction; the names of settings are
// not answered, and an empty name has no colon before it.
func isBookkeeping(v vector, want, got object) bool {
	if v.Op == "extractIdentity" {
		return emptyName.ReplaceAllString(jsonText(want), "$1") == jsonText(got)
	}
	if as := sameWithout(v); as != nil {
		as, got := unmarked(as), unmarked(got)
		if same(as, got) || isSmaller(vector{Input: unmarked(v.asked)}, as, got) {
			return true
		}
	}
	return v.Op == "diagnostics" && got["refused"] != nil || isAsWith(v, got, "bookkeeping")
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
