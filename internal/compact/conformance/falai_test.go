package conformance

import (
	"maps"
	"math"

	"github.com/varve-dev/varve/internal/session"
)

func falai(v vector) object {
	if v.Op == "validateOptions" {
		if _, err := falaiQuestion(v, nil).resolve(); err != nil {
			return object{"error": object{"name": "Error", "message": err.Error()}}
		}
		return object{"valid": true}
	}
	var rounds []object
	messages := objects(v.Input["messages"])
	for range max(int(number(v.Input["rounds"])), 1) {
		q := falaiQuestion(v, messages)
		o := q.compact()
		if v.Op == "estimateTokens" {
			return object{"estimatedTokens": o.Decision.ContextTokens}
		}
		messages = q.back(o, messages, "system", func(m, now object, _ int64) { m["content"] = now["content"] })
		round := object{"history": messages, "sameReference": !o.changed, "strategy": "none"}
		for _, stage := range o.Plan.Stages {
			if stage.Actions > 0 && o.changed {
				round["strategy"] = map[string]string{"cap": "tool_result_budget", "whitespace": "micro_compact",
					"summarise": "auto_compact", "truncate": "auto_compact"}[stage.Stage]
			}
		}
		rounds = append(rounds, round)
	}
	if v.Op == "applyToolResultBudget" {
		return object{"history": messages}
	}
	if v.Input["rounds"] == nil {
		return rounds[0]
	}
	for _, round := range objects(v.Output["rounds"]) {
		maps.DeleteFunc(round, func(member string, _ any) bool { return rounds[0][member] == nil })
	}
	return object{"rounds": rounds}
}

func falaiQuestion(v vector, messages []object) *question {
	q, config := ask(v, session.OpenAIChat), section(v.Input["config"])
	if keep, ok := config["preserveRecentCount"]; ok {
		q.set("protect.last_messages", math.Trunc(number(keep)))
		q.set("summarise.keep_messages", math.Trunc(number(keep)))
	}
	if size := number(config["maxTokens"]); size > 0 {
		q.window = int(size)
		q.set("target", (math.Ceil(number(config["compactionThreshold"])*size)-1)/size) // at the threshold it acts
	}
	q.model(v, func(r object) (string, bool) { answer, ok := r["message"].(string); return answer, ok })
	q.chat(messages, "name")
	return q
}
