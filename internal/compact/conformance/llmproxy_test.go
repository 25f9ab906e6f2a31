package conformance

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
)

func llmProxy(v vector) object {
	switch v.Op {
	case "extractIdentity":
		return proxyIdentities(v)
	case "categorize":
		return object{"categories": proxyAbout(v, v.Input["tools"].([]any), func(q *question, tool any) {
			q.twice(object{"name": tool, "arguments": `{"path":"a"}`})
		}, func(a compact.Action) string { return cmp.Or(a.Category, "other") })}
	case "redact":
		return object{"texts": proxyAbout(v, v.Input["texts"].([]any), func(q *question, of any) {
			q.set("dedupe.redact", true)
			q.twice(object{"name": "s", "arguments": jsonText(object{"query": of})})
		}, func(a compact.Action) string { return strings.TrimPrefix(a.Resource, "s:") })}
	}
	messages := objects(v.Input["messages"])
	for _, m := range messages {
		for _, call := range objects(m["tool_calls"]) {
			call["type"] = "function"
		}
		maps.DeleteFunc(m, func(_ string, value any) bool { return value == nil })
	}
	q := proxyQuestion(v, messages)
	o := q.compact()
	switch {
	case v.Op == "should_compact":
		return object{"result": o.Decision.Due()}
	case v.Op == "pipeline" && o.Decision.ContextTokens < o.Decision.TriggerTokens-1: // due above it, skipped below it
		return object{"stage": "below_threshold_fast", "tokenEstimate": o.Decision.ContextTokens}
	case v.Op == "diagnostics":
		return nil
	}
	return proxyResult(q, o, messages)
}

// proxyQuestion translates the settings. Lists that the vector lacks are empty, or for the factory's those of the
// profile. Without an estimate the system has no threshold.
func proxyQuestion(v vector, messages []object) *question {
	config := object{"allowed_tool_categories": []string{}, "denied_tool_categories": []string{}}
	if v.Input["configBase"] == "default" {
		config = object{}
	}
	maps.Copy(config, section(v.Input["config"]))
	config["tool_allowlist"], config["tool_denylist"] = v.Input["tool_allowlist"], v.Input["tool_denylist"]
	if v.Op != "pipeline" && v.Input["tokenEstimate"] == nil {
		delete(config, "token_threshold")
	}
	q := ask(v, session.OpenAIChat, config)
	if config["max_tokens"] == nil {
		q.window = 150_000
	}
	if q.context = int64(len(messages)) * always; v.Op == "pipeline" || v.Input["tokenEstimate"] != nil {
		q.context = int64(number(v.Input["tokenEstimate"]))
	}
	q.chat(messages, "name")
	return q
}

func proxyResult(q *question, o *outcome, messages []object) object {
	applied, stale := o.Plan.Results, append([]string{}, o.Report().Stale.Resources...)
	if slices.Sort(stale); !o.changed {
		applied, stale = nil, []string{}
	}
	messages = q.back(o, messages, "", func(m, now object, seq int64) {
		i := slices.IndexFunc(applied, func(r compact.Result) bool { return r.Seq == seq })
		metadata := object{"_compacted": true, "_original_bytes": len(applied[i].Stored)}
		maps.Copy(metadata, section(m["metadata"]))
		delete(m, "reasoning_content") // a stub of the system has no member but those of every result
		m["content"], m["metadata"] = named(now["content"], ""), metadata
	})
	return object{
		"messages": messages, "was_compacted": o.changed, "compacted_count": len(applied), "stale_resources": stale,
	}
}

// proxyAbout asks about each of some values, and returns what told says of the older of two results of a call with it.
func proxyAbout(v vector, of []any, put func(*question, any), told func(compact.Action) string) []any {
	list := []any{}
	for _, value := range of {
		q := proxyQuestion(vector{System: v.System, Input: object{"config": object{"enabled": true}}}, nil)
		put(q, value)
		said := ""
		for _, a := range q.compact().Plan.Parts() {
			said = cmp.Or(said, told(a))
		}
		list = append(list, said)
	}
	return list
}

// twice appends a call with its result, two times.
func (q *question) twice(function object) {
	q.context = always
	for _, id := range []string{"a", "b"} {
		result := object{"role": "tool", "tool_call_id": id, "content": strings.Repeat("x", 2000)}
		q.chat([]object{{"role": "assistant", "tool_calls": []any{object{"id": id, "function": function}}}, result}, "name")
	}
}

// proxyIdentities asks for each case what the older of two results of the same call is about: the text of its identity.
func proxyIdentities(v vector) object {
	identities := []any{}
	for _, c := range objects(v.Input["cases"]) {
		q := proxyQuestion(vector{System: v.System, Input: object{"config": object{"enabled": true}}}, nil)
		arguments, IsText := c["arguments"].(string)
		if !IsText && c["arguments"] != nil {
			arguments = jsonText(c["arguments"])
		}
		q.twice(object{"name": c["tool_name"], "arguments": arguments})
		var identity any
		for _, name := range q.compact().Report().Stale.Resources {
			identity = object{"str": name}
		}
		identities = append(identities, identity)
	}
	for _, identity := range objects(v.Output["identities"]) {
		maps.DeleteFunc(identity, func(member string, _ any) bool { return member != "str" })
	}
	return object{"identities": identities}
}
