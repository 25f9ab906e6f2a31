package conformance

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/session"
)

func codelia(v vector) object {
	if rounds, ok := v.Input["rounds"].([]any); ok {
		return codeliaRounds(v, rounds)
	}
	part := map[string]string{"processToolMessage": "toolOutputCache", "trimMessages": "toolOutputCache"}[v.Op]
	config := object{cmp.Or(part, "compaction"): v.Input["config"]}
	q, messages := ask(v, session.OpenAIChat, config), objects(v.Input["messages"])
	q.reworded("summary", "[Messages {first} to {last}, in full: get_messages {ref}]\n", "")
	q.chat(messages, "tool_name")
	switch v.Op {
	case "shouldCompact":
		return codeliaDue(q, v)
	case "compact":
		q.model(v, "text")
		o := q.compact()
		list := q.back(o, messages, "user", func(_, _ object, _ int64) {})
		return object{"messages": list, "compacted": o.changed, "sameReference": !o.changed}
	}
	q.window = cmp.Or(codeliaWindow(v, section(v.Input["llm"])["model"]), session.DefaultWindowTokens)
	if v.Op == "trimMessages" { // a ref of the system's is the id of the call, and not every message has one
		ref := ""
		if slices.ContainsFunc(messages, func(m object) bool { return m["output_ref"] != nil }) {
			ref = "; ref={call_id}"
		}
		q.reworded("clear", "; read_result ref={ref}", "")
		q.reworded("placeholder", "; read_result ref={ref}", ref)
	}
	o := q.compact()
	list := q.back(o, messages, "", func(m, now object, seq int64) {
		id := ""
		for _, r := range o.Plan.Results {
			if r.Seq == seq && v.Op == "processToolMessage" && v.Input["store"] == nil {
				id = r.CallID
				m["output_ref"] = object{"id": id, "byte_size": len(r.Stored), "line_count": r.Lines}
			}
		}
		m["content"], m["trimmed"] = named(now["content"], id), true
		if own := "; ref=" + plainName(text(m["tool_call_id"])); v.Op == "trimMessages" && m["output_ref"] == nil {
			m["content"] = strings.Replace(text(m["content"]), own, "", 1)
		} else if v.Op == "trimMessages" {
			m["content"] = strings.Replace(text(m["content"]), own, "; ref="+text(section(m["output_ref"])["id"]), 1)
		}
	})
	for i, m := range objects(v.Output["messages"]) {
		if v.Op == "processToolMessage" && (m["trimmed"] != true || messages[i]["trimmed"] == true) {
			delete(m, "output_ref") // a whole result needs none
		}
	}
	return object{"messages": list}
}

// codeliaRounds asks for each round about what the one before left and the messages that came since.
func codeliaRounds(v vector, rounds []any) object {
	var list []object
	answers, replies := []object{}, objects(section(v.Input["llm"])["responses"])
	for i, added := range rounds {
		one := v
		one.Input = maps.Clone(v.Input)
		delete(one.Input, "rounds")
		one.Input["messages"] = append(slices.Clone(list), objects(added)...)
		one.Input["llm"] = object{"responses": replies[min(i, len(replies)):]}
		answers = append(answers, codelia(one))
		list = objects(answers[i]["messages"])
	}
	for _, recorded := range objects(v.Output["rounds"]) {
		maps.DeleteFunc(recorded, func(member string, _ any) bool { return member != "messages" })
	}
	for _, answer := range answers {
		maps.DeleteFunc(answer, func(member string, _ any) bool { return member != "messages" })
	}
	return object{"rounds": answers}
}

// codeliaWindow returns the window that the vector's registry has for a model, 0 for one that the product's does not
// find among the same models.
func codeliaWindow(v vector, model any) int {
	listed, known := objects(v.Input["registry"]), []object{}
	for _, m := range listed {
		known = append(known, object{"id": m["id"], "provider": m["provider"], "context_tokens": 1000,
			"sources": []object{{"of": "window", "name": "the vector", "date": "2026-01-01"}}})
	}
	registry := must((&models.Registry{}).Extend([]byte(jsonText(object{"models": known}))))
	found, _ := registry.Find(text(model))
	for _, m := range listed {
		if m["id"] == found.ID {
			return int(cmp.Or(number(m["contextWindow"]), number(m["maxInputTokens"])))
		}
	}
	return 0
}

// unknownModel is the answer of both for a model that the registry does not have.
const unknownModel = "unknown model"

// codeliaDue asks for each reported usage whether a session is due. That a model is unknown is an error for both; its
// words are not compared.
func codeliaDue(q *question, v vector) object {
	results := []any{}
	record, _ := v.Output["results"].([]any)
	for i, usage := range v.Input["usages"].([]any) {
		if section(record[i])["error"] != nil {
			record[i] = unknownModel
		}
		q.window = codeliaWindow(v, section(usage)["model"])
		if usage != nil && q.window == 0 {
			results = append(results, unknownModel)
			continue
		}
		ratio, size := cmp.Or(number(section(v.Input["config"])["thresholdRatio"]), 0.8), float64(max(q.window, 1))
		q.set("trigger", max((math.Floor(size*ratio)-0.5)/size, 0.1)) // the system's threshold is a whole number
		q.context = int64(number(section(usage)["total_tokens"]))
		results = append(results, q.resolve().Summarise.Enabled && q.compact().Decision.Due())
	}
	return object{"results": results}
}
