package conformance

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/policy/foreign"
	"github.com/varve-dev/varve/internal/session"
)

func falai(v vector) object {
	if v.Op == "validateOptions" {
		_, err := foreign.Translate(v.System, []byte(jsonText(v.Input["config"])))
		var refused *session.InvalidError
		if errors.As(err, &refused) {
			return object{"error": object{"name": "Error", "message": refused.Problems[0].Detail}}
		}
		return object{"valid": true}
	}
	var rounds []object
	messages := objects(v.Input["messages"])
	if v.Op == "checkAndCompact" { // a result is a text
		asTexts(v, messages)
		asTexts(v, objects(v.Output["history"]))
		for _, round := range objects(v.Output["rounds"]) {
			asTexts(v, objects(round["history"]))
		}
	}
	for range max(int(number(v.Input["rounds"])), 1) {
		q := falaiQuestion(v, messages)
		o := q.compact()
		if v.Op == "estimateTokens" {
			return object{"estimatedTokens": o.Decision.ContextTokens - int64(o.added)}
		}
		messages = q.back(o, messages, "system", func(m, now object, _ int64) { m["content"] = now["content"] })
		rounds = append(rounds, object{"history": messages, "sameReference": !o.changed})
	}
	switch {
	case v.Op == "applyToolResultBudget":
		return object{"history": messages}
	case v.Input["rounds"] == nil:
		return rounds[0]
	}
	for _, round := range objects(v.Output["rounds"]) {
		maps.DeleteFunc(round, func(member string, _ any) bool { return rounds[0][member] == nil })
	}
	return object{"rounds": rounds}
}

func falaiQuestion(v vector, messages []object) *question {
	config := maps.Clone(section(v.Input["config"]))
	keep, threshold := math.Trunc(number(config["preserveRecentCount"])), number(config["compactionThreshold"])
	if v.Op != "checkAndCompact" { // whose settings are not complete
		keep, threshold = 2, 0.5
	}
	q := ask(v, session.OpenAIChat, object{"preserveRecentCount": keep, "compactionThreshold": threshold,
		"maxToolResultChars": cmp.Or(config["maxToolResultChars"], any(1.0)), "maxTokens": cmp.Or(config["maxTokens"], any(1.0))})
	q.reworded("cap", "; read_result {ref}", "")
	q.reworded("summary", "; in full: get_messages {ref}", "")
	q.set("wording.truncated", strings.Repeat("-", 60)) // the system has no notice: a shorter one leaves more room
	q.model(v, "message")
	sent := make([]object, len(messages))
	for i, m := range messages {
		sent[i] = maps.Clone(m)
	}
	asTexts(v, sent)
	q.chat(sent, "name")
	if v.Op != "applyToolResultBudget" { // at the threshold it acts
		acts := max(int(math.Ceil(threshold*number(config["maxTokens"]))), 1)
		q.context = 0
		q.set("target", 0.00001)
		q.set("target_tokens", acts-1)
		q.set("trigger_tokens", acts)
	}
	if n := len(q.seqs) - int(keep); v.Op == "checkAndCompact" && n >= 0 && n < len(q.seqs) { // with the calls that were added
		kept := len(q.bodies) - int(q.seqs[n]) + 1
		q.set("protect.last_messages", kept)
		q.set("summarise.keep_messages", kept)
	}
	return q
}

// asTexts writes the contents of results that are no texts as JavaScript does.
func asTexts(v vector, messages []object) {
	for _, m := range messages {
		if _, isText := m["content"].(string); !isText && m["role"] == "tool" {
			m["content"] = scriptText(cmp.Or(m["content"], any("")), v.Raw)
		}
	}
}

// scriptText returns a value as JavaScript writes it that was read from raw: integers among the names of an object come
// first, the others in the order in which raw has them.
func scriptText(value any, raw string) string {
	o, isObject := value.(object)
	if !isObject {
		return jsonText(value)
	}
	number := func(name string) int {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
			return n
		}
		return math.MaxInt
	}
	names := slices.Sorted(maps.Keys(o))
	slices.SortStableFunc(names, func(a, b string) int {
		at := func(name string) int { return strings.Index(raw, jsonText(name)+":") }
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(at(a), at(b)))
	})
	for i, name := range names {
		names[i] = jsonText(name) + ":" + scriptText(o[name], raw)
	}
	return "{" + strings.Join(names, ",") + "}"
}
