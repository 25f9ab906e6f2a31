package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// codeliaSays returns what codelia makes of a vector, in the version of its document.
func codeliaSays(v vector) object {
	messages, config := objects(v.Input["messages"]), section(v.Input["config"])
	switch v.Op {
	case "processToolMessage":
		list := []object{}
		if limit, isGiven := config["maxMessageBytes"].(float64); isGiven && limit < 1 {
			return nil
		}
		for _, m := range messages {
			list = append(list, codeliaFresh(config, m, v.Input["store"] == nil))
		}
		return object{"messages": list}
	case "trimMessages":
		return object{"messages": codeliaBudget(v, config, messages)}
	case "shouldCompact":
		results := []any{}
		for _, usage := range v.Input["usages"].([]any) {
			results = append(results, codeliaShould(v, config, usage))
		}
		return object{"results": results}
	}
	answers := objects(section(v.Input["llm"])["responses"])
	if rounds, ok := v.Input["rounds"].([]any); ok {
		var list, all []object
		for i, added := range rounds {
			var answer object
			list = append(slices.Clone(list), objects(added)...)
			if i < len(answers) {
				answer = answers[i]
			}
			list = codeliaCompact(config, list, answer)
			all = append(all, object{"messages": append([]object{}, list...)})
		}
		return object{"rounds": all}
	}
	var answer object
	if len(answers) > 0 {
		answer = answers[0]
	}
	if name := text(answer["errorName"]); slices.Contains([]string{"AbortError", "APIUserAbortError", "AbortSignal"}, name) {
		return object{"error": object{"name": name, "message": answer["error"]}}
	}
	list := codeliaCompact(config, messages, answer)
	changed := jsonText(list) != jsonText(messages)
	return object{"messages": append([]object{}, list...), "compacted": changed, "sameReference": !changed}
}

// codeliaText returns the text of a content; what is no text is named.
func codeliaText(content any) (all string) {
	if s, ok := content.(string); ok {
		return s
	}
	for _, part := range objects(content) {
		switch part["type"] {
		case "text":
			all += text(part["text"])
		case "image_url":
			all += "[image]"
		case "document":
			all += "[document]"
		case "other":
			all += fmt.Sprintf("[other:%s/%s]", part["provider"], part["kind"])
		default:
			all += "[content]"
		}
	}
	return all
}

var lineEnd = regexp.MustCompile(`\r?\n`)

// codeliaFresh returns an output as it enters the conversation: as many whole lines as are within the limit.
func codeliaFresh(config, m object, stored bool) object {
	if config["enabled"] == false {
		return m
	}
	whole := codeliaText(m["content"])
	m = maps.Clone(m)
	m["content"] = whole
	lines, notice := lineEnd.Split(whole, -1), "\n\n[tool output truncated]"
	if stored {
		m["output_ref"] = object{"id": m["tool_call_id"], "byte_size": len(whole), "line_count": len(lines)}
		notice = "\n\n[tool output truncated; ref=" + text(m["tool_call_id"]) + "]"
	}
	if m["tool_name"] == "tool_output_cache" || m["tool_name"] == "tool_output_cache_grep" {
		return m
	}
	size, limit := 0, 51200
	if given, ok := config["maxMessageBytes"].(float64); ok {
		limit = int(given)
	}
	for i, line := range lines {
		if size += len(line) + min(i, 1); size > limit {
			m["content"], m["trimmed"] = strings.Join(lines[:i], "\n")+notice, true
			return m
		}
	}
	m["content"] = strings.Join(lines, "\n")
	return m
}

// codeliaLimit returns the window that the registry has for a model, 0 for an unknown one.
func codeliaLimit(v vector, model any) float64 {
	for _, m := range objects(v.Input["registry"]) {
		if m["id"] == model {
			return cmp.Or(number(m["contextWindow"]), number(m["maxInputTokens"]))
		}
	}
	return 0
}

// codeliaBudget replaces the oldest outputs while all together are above the budget.
func codeliaBudget(v vector, config object, messages []object) []object {
	budget, isGiven := config["contextBudgetTokens"].(float64)
	if window := codeliaLimit(v, section(v.Input["llm"])["model"]); !isGiven {
		budget = 60_000
		if window > 0 {
			budget = min(max(math.Floor(window*0.25), 20_000), 60_000)
		}
	}
	tokens := func(content any) float64 { return float64((len(codeliaText(content)) + 3) / 4) }
	total, list := 0.0, append([]object{}, messages...)
	for _, m := range messages {
		if m["role"] == "tool" {
			total += tokens(m["content"])
		}
	}
	for i, m := range list {
		if config["enabled"] == false || total <= budget {
			break
		}
		if m["role"] != "tool" {
			continue
		}
		line := "[tool output trimmed]"
		if ref := text(section(m["output_ref"])["id"]); ref != "" {
			line = "[tool output trimmed; ref=" + ref + "]"
		}
		total = max(0, total-tokens(m["content"])+tokens(line))
		list[i] = maps.Clone(m)
		list[i]["content"], list[i]["trimmed"] = line, true
	}
	return list
}

func codeliaShould(v vector, config object, usage any) any {
	if config["enabled"] == false || config["auto"] == false || usage == nil {
		return false
	}
	model := cmpOr(section(usage)["model"], section(v.Input["llm"])["model"])
	limit := codeliaLimit(v, model)
	if limit == 0 {
		return object{"error": fmt.Sprintf("Missing context limit for openai/%s in model registry", model)}
	}
	ratio, ok := config["thresholdRatio"].(float64)
	if !ok {
		ratio = 0.8
	}
	return number(section(usage)["total_tokens"]) >= math.Floor(limit*ratio)
}

var (
	codeliaRetain  = regexp.MustCompile(`(?is)<retain>(.*?)</retain>`)
	codeliaSummary = regexp.MustCompile(`(?is)<summary>(.*?)</summary>`)
	codeliaTag     = regexp.MustCompile(`(?i)</?summary>`)
)

// codeliaCompact returns a history after the answer of a model.
func codeliaCompact(config object, messages []object, answer object) []object {
	if config["enabled"] == false || answer == nil || answer["error"] != nil {
		return messages
	}
	said, retain, summary := strings.TrimSpace(codeliaAnswer(answer)), "", ""
	if found := codeliaRetain.FindStringSubmatch(said); found != nil && !isNull(config, "retainPrompt") {
		retain = strings.TrimSpace(found[1])
	}
	if found := codeliaSummary.FindStringSubmatch(said); found != nil {
		summary = strings.TrimSpace(found[1])
	} else {
		summary = strings.TrimSpace(codeliaTag.ReplaceAllString(codeliaRetain.ReplaceAllString(said, ""), ""))
	}
	if retain == "" && summary == "" {
		return messages
	}
	list := []object{}
	for _, m := range messages {
		if m["role"] == "system" {
			list = append(list, m)
		}
	}
	for _, content := range []string{retain, summary} {
		if content != "" {
			list = append(list, object{"role": "user", "content": content})
		}
	}
	for _, m := range codeliaTail(config, messages) {
		if m["role"] != "system" {
			list = append(list, m)
		}
	}
	return list
}

func isNull(config object, name string) bool {
	value, ok := config[name]
	return ok && value == nil
}

// codeliaTail returns the messages from the n-th newest of the user on, all if there are fewer.
func codeliaTail(config object, messages []object) []object {
	turns, ok := config["retainLastTurns"].(float64)
	if !ok {
		turns = 1
	}
	n := int(max(math.Floor(turns), 0))
	if n == 0 {
		return nil
	}
	for i, m := range slices.Backward(messages) {
		if m["role"] == "user" {
			if n--; n == 0 {
				return messages[i:]
			}
		}
	}
	return messages
}

// codeliaAnswer returns the text of a model's answer: of its messages in lines, with other parts as JSON.
func codeliaAnswer(answer object) string {
	if s, ok := answer["text"].(string); ok {
		return s
	}
	var lines []string
	for _, m := range objects(answer["messages"]) {
		line := text(m["content"])
		for _, part := range objects(m["content"]) {
			if line += text(part["text"]); part["type"] == "other" {
				line += jsonText(part["payload"])
			}
		}
		if m["role"] == "assistant" && line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
