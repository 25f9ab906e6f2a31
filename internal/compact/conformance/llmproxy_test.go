package conformance

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/session"
)

func llmProxy(v vector) (object, error) {
	messages := objects(v.Input["messages"])
	for _, m := range messages {
		for _, call := range objects(m["tool_calls"]) {
			call["type"] = "function"
		}
		maps.DeleteFunc(m, func(_ string, value any) bool { return value == nil })
	}
	if v.Op == "extractIdentity" {
		return proxyIdentities(objects(v.Input["cases"]))
	}
	q := proxyQuestion(v)
	q.chat(messages, "name")
	o, err := q.compact()
	if err != nil {
		return nil, err
	}
	if v.Op == "should_compact" {
		return object{"result": o.Decision.Due()}, nil
	}
	if o.Decision.Verdict == compactor.Postponed && v.Op == "pipeline" {
		return object{"stage": "below_threshold_fast", "tokenEstimate": o.Decision.ContextTokens}, nil
	}
	saved := 0
	messages = q.back(&o, messages, "", func(m, now object, seq int64) {
		i := slices.IndexFunc(o.Plan.Results, func(r compact.Result) bool { return r.Seq == seq })
		size := len(o.Plan.Results[i].Stored)
		m["content"] = named(now["content"], "")
		saved += max(0, size-len(text(m["content"])))
		metadata := object{"_compacted": true, "_original_bytes": size}
		maps.Copy(metadata, section(m["metadata"]))
		m["metadata"] = metadata
	})
	applied := o.Plan.Results
	if !o.changed {
		applied = nil
	}
	stale := append([]string{}, o.Report().Stale.Resources...)
	slices.Sort(stale)
	return object{
		"messages": messages, "was_compacted": o.changed, "compacted_count": len(applied), "bytes_saved": saved,
		"tokens_saved_estimate": saved / 4, "stale_resources": stale,
	}, nil
}

// proxyQuestion translates the settings. Without an estimate the system has no threshold.
func proxyQuestion(v vector) *question {
	q := ask("llm-proxy", session.OpenAIChat, "tokens.tokenizer=runes4 target=0.00001")
	config := section(v.Input["config"])
	if v.Input["configBase"] != "default" {
		q.translate(object{"all": []string{}}, "all=dedupe.allow_operations all=dedupe.deny_operations")
	}
	q.translate(config, "min_tool_output_tokens_to_compact=dedupe.min_tokens redact_resource_identifiers=dedupe.redact "+
		"allowed_tool_categories=dedupe.allow_operations denied_tool_categories=dedupe.deny_operations")
	q.translate(v.Input, "tool_allowlist=dedupe.allow_tools tool_denylist=dedupe.deny_tools")
	q.set("dedupe.enabled", config["enabled"] == true)
	q.window = 1
	if v.Op == "pipeline" || v.Input["tokenEstimate"] != nil {
		threshold := cmp.Or(number(config["token_threshold"]), 100_000)
		limit := cmp.Or(number(config["max_tokens"]), 2*threshold)
		q.window, q.context = int(limit), int64(number(v.Input["tokenEstimate"]))
		q.set("trigger", min((threshold+0.5)/limit, 1)) // the system compacts above its threshold
		q.set("hard", 1)
	}
	return q
}

// proxyIdentities asks for each case what the first of two results of the same call is about.
func proxyIdentities(cases []object) (object, error) {
	identities := []any{}
	for _, c := range cases {
		q := ask("llm-proxy", session.OpenAIChat, "tokens.tokenizer=runes4 target=0.00001")
		q.translate(object{"all": []string{}}, "all=dedupe.allow_operations all=dedupe.deny_operations")
		arguments, isText := c["arguments"].(string)
		if !isText {
			arguments = jsonText(c["arguments"])
		}
		for _, id := range []string{"a", "b"} {
			call := object{"id": id, "function": object{"name": c["tool_name"], "arguments": arguments}}
			result := object{"role": "tool", "tool_call_id": id, "content": strings.Repeat("x", 2000)}
			q.chat([]object{{"role": "assistant", "tool_calls": []any{call}}, result}, "name")
		}
		o, err := q.compact()
		if err != nil {
			return nil, err
		}
		var identity any
		for _, name := range o.Report().Stale.Resources {
			keys := strings.Split(name, ":")
			identity = object{"tool_name": keys[0], "primary_key": keys[1], "secondary_keys": keys[2:], "str": name}
		}
		identities = append(identities, identity)
	}
	return object{"identities": identities}, nil
}
