package conformance

import (
	"maps"
	"math"

	"github.com/varve-dev/varve/internal/session"
)

func falai(v vector) (object, error) {
	messages := objects(v.Input["messages"])
	q := falaiQuestion(v.Input, messages)
	if v.Op == "validateOptions" {
		if _, err := q.resolve(); err != nil {
			return object{"error": object{"name": "Error", "message": err.Error()}}, nil
		}
		return object{"valid": true}, nil
	}
	var rounds []object
	for range max(int(number(v.Input["rounds"])), 1) {
		o, err := q.compact()
		if err != nil {
			return nil, err
		}
		if v.Op == "estimateTokens" {
			return object{"estimatedTokens": o.Decision.ContextTokens}, nil
		}
		messages = q.back(&o, messages, "system", func(m, now object, _ int64) { m["content"] = now["content"] })
		rounds = append(rounds, object{"history": messages, "sameReference": !o.changed, "strategy": strategy(&o)})
		q = falaiQuestion(v.Input, messages)
	}
	switch {
	case v.Op == "applyToolResultBudget":
		return object{"history": messages}, nil
	case len(rounds) == 1:
		return rounds[0], nil
	}
	for _, round := range objects(v.Output["rounds"]) {
		maps.DeleteFunc(round, func(member string, _ any) bool { return rounds[0][member] == nil })
	}
	return object{"rounds": rounds}, nil
}

// strategy returns the system's name of the last stage that acted.
func strategy(o *outcome) string {
	name := "none"
	for _, stage := range o.Plan.Stages {
		if stage.Actions > 0 && o.changed {
			name = map[string]string{
				"cap": "tool_result_budget", "whitespace": "micro_compact", "summarise": "auto_compact",
				"truncate": "auto_compact",
			}[stage.Stage]
		}
	}
	return name
}

func falaiQuestion(in object, messages []object) *question {
	q := ask("falai", session.OpenAIChat, "tokens.tokenizer=json-chars4 only_smaller=false hard=1 protect.system=false")
	config := section(in["config"])
	q.translate(config, "compactionThreshold=trigger maxToolResultChars=cap.max_chars maxToolResultChars=cap.head_chars")
	if in["op"] == "applyToolResultBudget" {
		q.translate(object{"off": false, "none": 0, "low": 0.001}, "off=whitespace.enabled off=summarise.enabled "+
			"off=truncate.enabled none=protect.last_messages low=target")
		q.window = 1
	}
	if keep, ok := config["preserveRecentCount"]; ok {
		q.translate(object{"n": math.Trunc(number(keep))}, "n=protect.last_messages n=summarise.keep_messages")
	}
	if size := number(config["maxTokens"]); size > 0 {
		q.window = int(size)
		q.set("target", (math.Ceil(number(config["compactionThreshold"])*size)-1)/size) // at the threshold it acts
	}
	q.model(section(in["llm"])["responses"], func(r object) (string, bool) { s, ok := r["message"].(string); return s, ok })
	q.chat(messages, "name")
	return q
}
