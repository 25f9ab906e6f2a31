package conformance

import (
	"cmp"
	"math"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/session"
)

func codelia(v vector) object {
	part := map[string]string{"processToolMessage": "toolOutputCache", "trimMessages": "toolOutputCache"}[v.Op]
	config := object{cmp.Or(part, "compaction"): v.Input["config"]}
	q, messages := ask(v, session.OpenAIChat, config), objects(v.Input["messages"])
	q.set("wording.summary", "{text}")
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
	q.window = cmp.Or(codeliaWindow(v, section(v.Input["llm"])["model"]), q.window)
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
	})
	for _, m := range objects(v.Output["messages"]) {
		if m["trimmed"] != true {
			delete(m, "output_ref") // a whole result needs none
		}
	}
	return object{"messages": list}
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

// codeliaDue asks for each reported usage whether a session is due. That a model is unknown is an error for both; its
// words are not compared.
func codeliaDue(q *question, v vector) object {
	results := []any{}
	record, _ := v.Output["results"].([]any)
	for i, usage := range v.Input["usages"].([]any) {
		const unknown = "unknown model"
		if section(record[i])["error"] != nil {
			record[i] = unknown
		}
		q.window = codeliaWindow(v, section(usage)["model"])
		if usage != nil && q.window == 0 {
			results = append(results, unknown)
			continue
		}
		ratio, size := cmp.Or(number(section(v.Input["config"])["thresholdRatio"]), 0.8), float64(max(q.window, 1))
		q.set("trigger", max((math.Floor(size*ratio)-0.5)/size, 0.1)) // the system's threshold is a whole number
		q.context = int64(number(section(usage)["total_tokens"]))
		results = append(results, q.compact().Decision.Due())
	}
	return object{"results": results}
}
