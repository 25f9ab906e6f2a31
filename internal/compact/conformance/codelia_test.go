package conformance

import (
	"cmp"
	"math"
	"strings"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/session"
)

func codelia(v vector) (object, error) {
	config, messages := section(v.Input["config"]), objects(v.Input["messages"])
	q := ask("codelia", session.OpenAIChat, "tokens.tokenizer=bytes4 only_smaller=false")
	q.translate(config, "auto=auto enabled=enabled thresholdRatio=trigger retainLastTurns=summarise.keep_turns "+
		"maxMessageBytes=cap.max_bytes maxMessageBytes=cap.head_chars contextBudgetTokens=budget.tokens "+
		"summaryDirectives=summarise.directives retainDirectives=summarise.retain_directives")
	q.chat(messages, "tool_name")
	switch v.Op {
	case "shouldCompact":
		return codeliaDue(q, v.Input, v.Output)
	case "compact":
		return codeliaSummary(q, v.Input, messages)
	case "processToolMessage":
		q.translate(object{"off": false}, "off=budget.enabled off=summarise.enabled")
	case "trimMessages":
		q.translate(object{"off": false}, "off=cap.enabled off=summarise.enabled")
		q.window = max(codeliaWindow(v.Input, section(v.Input["llm"])["model"]), q.window)
	}
	q.set("target", 0.00001)
	q.context = always
	o, err := q.compact()
	if err != nil {
		return nil, err
	}
	list := q.back(&o, messages, "", func(m, now object, seq int64) {
		id := ""
		for _, r := range o.Plan.Results {
			if r.Seq == seq && v.Op == "processToolMessage" && v.Input["store"] == nil {
				id = r.CallID
				m["output_ref"] = object{"id": id, "byte_size": len(r.Stored), "line_count": r.Lines}
			}
		}
		m["content"], m["trimmed"] = named(now["content"], id), true
	})
	for _, m := range objects(v.Output["messages"]) {
		if m["trimmed"] != true {
			delete(m, "output_ref") // a whole result needs none
		}
	}
	return object{"messages": list}, nil
}

// codeliaWindow returns the window that the vector's registry has for a model, 0 for one that the product's does not
// find among the same models.
func codeliaWindow(in object, model any) int {
	listed := objects(in["registry"])
	known := []object{}
	for _, m := range listed {
		known = append(known, object{"id": m["id"], "provider": m["provider"], "context_tokens": 1000,
			"sources": []object{{"of": "window", "name": "the vector", "date": "2026-01-01"}}})
	}
	registry, err := (&models.Registry{}).Extend([]byte(jsonText(object{"models": known})))
	if err != nil {
		panic(err)
	}
	found, _ := registry.Find(text(model))
	for _, m := range listed {
		if m["id"] == found.ID {
			return int(cmp.Or(number(m["contextWindow"]), number(m["maxInputTokens"])))
		}
	}
	return 0
}

// codeliaDue asks for each reported usage whether a session is due. That a model is unknown is an error for both; its
// words are not compared.
func codeliaDue(q *question, in, record object) (object, error) {
	results := []any{}
	usages, _ := in["usages"].([]any)
	for i, usage := range usages {
		if section(record["results"].([]any)[i])["error"] != nil {
			record["results"].([]any)[i] = "unknown model"
		}
		q.window = codeliaWindow(in, section(usage)["model"])
		if usage != nil && q.window == 0 {
			results = append(results, "unknown model")
			continue
		}
		ratio, size := cmp.Or(number(section(in["config"])["thresholdRatio"]), 0.8), float64(max(q.window, 1))
		q.set("trigger", max((math.Floor(size*ratio)-0.5)/size, 0.1)) // the system's threshold is a whole number
		q.set("target", 0.00001)
		q.context = int64(number(section(usage)["total_tokens"]))
		o, err := q.compact()
		if err != nil {
			return nil, err
		}
		results = append(results, o.Decision.Due())
	}
	return object{"results": results}, nil
}

// codeliaSummary asks for a summary whatever the size is.
func codeliaSummary(q *question, in object, messages []object) (object, error) {
	q.translate(object{"off": false, "none": 0, "low": 0.00001, "all": 1, "few": 500}, "off=cap.enabled "+
		"off=budget.enabled none=summarise.over none=summarise.min_tokens none=protect.max_turn_ratio low=target "+
		"all=hard few=summarise.max_tokens")
	q.context = always
	if retain, ok := section(in["config"])["retainPrompt"]; ok {
		q.set("summarise.retain", retain != nil)
	}
	q.model(section(in["llm"])["responses"], func(r object) (string, bool) {
		if answer, ok := r["text"].(string); ok {
			return answer, true
		}
		return codeliaAnswer(objects(r["messages"])), r["messages"] != nil
	})
	o, err := q.compact()
	if err != nil {
		return nil, err
	}
	list := q.back(&o, messages, "user", func(_, _ object, _ int64) {})
	return object{"messages": list, "compacted": o.changed, "sameReference": !o.changed}, nil
}

// codeliaAnswer returns the texts of a model's answer.
func codeliaAnswer(messages []object) string {
	var texts []string
	for _, m := range messages {
		if m["role"] != "assistant" || m["content"] == nil {
			continue
		}
		whole := text(m["content"])
		for _, part := range objects(m["content"]) {
			whole += text(part["text"])
			if part["payload"] != nil {
				whole += jsonText(part["payload"])
			}
		}
		texts = append(texts, whole)
	}
	return strings.Join(texts, "\n")
}
