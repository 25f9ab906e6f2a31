package conformance

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// falaiSays returns what falai makes of a vector.
func falaiSays(v vector) object { return falaiWhole(v, false) }

// falaiWhole returns what it would make if the tokens of each message, and its own notice, were whole.
func falaiWhole(v vector, whole bool) object { return falaiEngine{whole: whole}.says(v) }

// says returns what the engine makes of a vector.
func (e falaiEngine) says(v vector) object {
	e.raw, e.config, e.answers = v.Raw, section(v.Input["config"]), objects(section(v.Input["llm"])["responses"])
	messages, wrong := objects(v.Input["messages"]), falaiRefuses(section(v.Input["config"]))
	switch v.Op {
	case "estimateTokens":
		return object{"estimatedTokens": e.tokens(messages)}
	case "applyToolResultBudget":
		return object{"history": e.budget(messages)}
	case "validateOptions":
		if wrong != "" {
			return object{"error": object{"name": "Error", "message": wrong}}
		}
		return object{"valid": true}
	}
	if wrong != "" {
		return nil // it throws
	}
	var rounds []object
	for range max(int(number(v.Input["rounds"])), 1) {
		e.acted = false
		messages = e.compact(messages)
		rounds = append(rounds, object{"history": append([]object{}, messages...), "sameReference": !e.acted})
	}
	if v.Input["rounds"] == nil {
		return rounds[0]
	}
	return object{"rounds": rounds}
}

// falaiRefuses returns what its constructor throws.
func falaiRefuses(config object) string {
	said := func(name string) string {
		value, isGiven := config[name]
		if !isGiven {
			return "undefined"
		}
		switch value := value.(type) {
		case nil:
			return "null"
		case string:
			return value
		}
		return jsonText(value)
	}
	threshold, isNumber := config["compactionThreshold"].(float64)
	if !isNumber || threshold < 0.5 || threshold > 0.95 {
		return "compactionThreshold must be between 0.5 and 0.95, got " + said("compactionThreshold")
	}
	if kept, isNumber := config["preserveRecentCount"].(float64); !isNumber || kept < 2 {
		return "preserveRecentCount must be >= 2, got " + said("preserveRecentCount")
	}
	if limit, isNumber := config["maxToolResultChars"].(float64); !isNumber || limit <= 0 {
		return "maxToolResultChars must be > 0, got " + said("maxToolResultChars")
	}
	return ""
}

// falaiEngine is a CompactionEngine with a model of scripted answers.
type falaiEngine struct {
	raw     string
	config  object
	answers []object
	whole   bool // the tokens of each message are, and the notice of a cut
	checked bool // also when its messages came: what was collapsed then stays so

	acted bool // the history was above the threshold

	was map[string]string // by id and content of a result that was changed: its content before
}

// content returns the text of a message's content: what is no text is JSON.
func (e *falaiEngine) content(m object) string {
	if s, ok := m["content"].(string); ok {
		return s
	}
	return scriptText(cmpOr(m["content"], ""), e.raw)
}

func (e *falaiEngine) tokens(messages []object) int {
	chars, sum := 0, 0
	for _, m := range messages {
		size := e.size(m, e.content(m))
		chars, sum = chars+size, sum+e.wholeTokens(m)
	}
	if e.whole {
		return sum
	}
	return (chars + 3) / 4
}

func (e *falaiEngine) size(m object, content string) int {
	return units(content) + units(text(m["name"])) + 4
}

// wholeTokens returns the tokens of a message. A change of its content saves whole ones, too.
func (e *falaiEngine) wholeTokens(m object) int {
	now := e.content(m)
	before, changed := e.was[text(m["tool_call_id"])+now]
	if !changed {
		return (e.size(m, now) + 3) / 4
	}
	return (e.size(m, before)+3)/4 - tokens4(before) + tokens4(now)
}

// changed notes what a result was before it was changed.
func (e *falaiEngine) changed(m, before object) {
	if e.was == nil {
		e.was = map[string]string{}
	}
	e.was[text(m["tool_call_id"])+text(m["content"])] = e.content(before)
}

func (e *falaiEngine) budget(messages []object) []object {
	limit := number(e.config["maxToolResultChars"])
	list := append([]object{}, messages...)
	for i, m := range list {
		s := e.content(m)
		if m["role"] != "tool" || float64(units(s)) <= limit {
			continue
		}
		list[i] = maps.Clone(m)
		list[i]["content"] = cut(s, 0, int(limit)) +
			fmt.Sprintf("\n\n[Truncated: %d chars total, showing first %s]", units(s), strconv.FormatFloat(limit, 'f', -1, 64))
		e.changed(list[i], m)
	}
	return list
}

// scriptSpace is JavaScript's white space.
var scriptSpace = regexp.MustCompile(`[\t-\r \x{00a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]+`)

func (e *falaiEngine) collapse(messages []object) []object {
	list := slices.Clone(messages)
	for i, m := range list {
		if m["role"] == "tool" {
			list[i] = maps.Clone(m)
			list[i]["content"] = strings.Trim(scriptSpace.ReplaceAllString(e.content(m), " "), " ")
			e.changed(list[i], m)
		}
	}
	return list
}

// compact returns the history after a check: each layer acts on what is not among the newest, until it is below the
// threshold.
func (e *falaiEngine) compact(history []object) []object {
	e.was = nil
	threshold := number(e.config["maxTokens"]) * number(e.config["compactionThreshold"])
	k := min(int(math.Trunc(number(e.config["preserveRecentCount"]))), len(history))
	below := func(list []object) bool { return float64(e.tokens(list)) < threshold }
	if below(history) {
		return history
	}
	e.acted = true
	old, newest := history[:len(history)-k], history[len(history)-k:]
	cutOff := e.budget(old)
	wasOver := false // with the messages of any moment, of which the newest were not cut yet
	for n := range history {
		n, k := n+1, min(k, n+1)
		wasOver = wasOver || e.checked && !below(slices.Concat(e.budget(history[:n-k]), history[n-k:n]))
	}
	if !wasOver && below(slices.Concat(cutOff, newest)) {
		return slices.Concat(cutOff, newest)
	}
	if e.whole { // what is cut is not collapsed
		for i, collapsed := range e.collapse(old) {
			if old[i]["role"] == "tool" && same(cutOff[i], old[i]) {
				cutOff[i] = collapsed
			}
		}
		old = cutOff
	} else {
		old = e.collapse(cutOff)
	}
	if below(slices.Concat(old, newest)) {
		return slices.Concat(old, newest)
	}
	answer := object{}
	if len(e.answers) > 0 {
		answer, e.answers = e.answers[0], e.answers[1:]
	}
	if summary, ok := answer["message"].(string); ok {
		first := object{"role": "system", "content": "[Conversation Summary]\n" + summary}
		return append([]object{first}, newest...)
	}
	for _, m := range slices.Backward(old) {
		candidate := append([]object{m}, newest...)
		if !below(candidate) {
			break
		}
		newest = candidate
	}
	return newest
}
