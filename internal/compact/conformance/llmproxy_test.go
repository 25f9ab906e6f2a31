package conformance

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/session"
)

// proxyInput is the input of a vector of llm-proxy.
type proxyInput struct {
	Messages      []object
	Config        object
	ConfigBase    string
	TokenEstimate *int64
	ToolAllowlist []string `json:"tool_allowlist"`
	ToolDenylist  []string `json:"tool_denylist"`
}

func llmProxy(v vector) (object, error) {
	var in proxyInput
	v.input(&in)
	q := in.question()
	if v.Op == "pipeline" {
		q.threshold(in.Config)
	}
	o, err := q.compact()
	if err != nil {
		return nil, err
	}
	switch v.Op {
	case "should_compact":
		return object{"result": o.Decision.Due()}, nil
	case "pipeline":
		if o.Decision.Verdict == compactor.Postponed {
			return object{"stage": "below_threshold_fast", "tokenEstimate": o.Decision.ContextTokens}, nil
		}
	}
	answer := in.answer(q, &o)
	if v.Op == "pipeline" {
		answer["stage"], answer["tokenEstimate"] = "compacted", o.Decision.ContextTokens
		answer["overflowWarning"] = o.Report().OverflowRisk != nil
	}
	return answer, nil
}

func (in *proxyInput) question() *question {
	q := ask("llm-proxy", session.OpenAIChat, 1000)
	q.set("tokens.tokenizer", "runes4")
	q.set("only_smaller", false)
	q.set("trigger", 0.002)
	q.set("target", 0.001)
	q.set("dedupe.enabled", in.Config["enabled"] == true)
	if in.ConfigBase != "default" {
		q.set("dedupe.allow_operations", []string{})
		q.set("dedupe.deny_operations", []string{})
	}
	q.settings(in.Config, "min_tool_output_tokens_to_compact dedupe.min_tokens",
		"redact_resource_identifiers dedupe.redact", "allowed_tool_categories dedupe.allow_operations",
		"denied_tool_categories dedupe.deny_operations")
	q.set("dedupe.allow_tools", append([]string{}, in.ToolAllowlist...))
	q.set("dedupe.deny_tools", append([]string{}, in.ToolDenylist...))
	if in.TokenEstimate != nil {
		q.context = in.TokenEstimate
		q.threshold(in.Config)
	}
	for _, m := range in.Messages {
		q.chat(m, "name")
	}
	return q
}

// threshold sets the trigger: the system compacts above its threshold.
func (q *question) threshold(config object) {
	threshold, limit := 100_000.0, 150_000.0
	if n, ok := config["token_threshold"].(json.Number); ok {
		threshold, _ = n.Float64()
	}
	if n, ok := config["max_tokens"].(json.Number); ok {
		limit, _ = n.Float64()
	}
	q.window = int(limit)
	q.set("trigger_tokens", threshold+1)
}

func (in *proxyInput) answer(q *question, o *outcome) object {
	applied := map[int64]*compact.Result{}
	saved := 0
	for i := range o.Plan.Results {
		applied[o.Plan.Results[i].Seq] = &o.Plan.Results[i]
	}
	messages := q.messages(o, in.Messages, "", func(i int, m, body object) {
		text, stored := body["content"].(string), applied[q.seqs[i]].Stored
		saved += max(0, len(stored)-len(text))
		metadata, _ := m["metadata"].(object)
		if metadata = maps.Clone(metadata); metadata == nil {
			metadata = object{}
		}
		metadata["_compacted"], metadata["_original_bytes"] = true, len(stored)
		m["content"], m["metadata"] = named(text, ""), metadata
	})
	for i := range messages {
		maps.DeleteFunc(messages[i], func(_ string, value any) bool { return value == nil })
	}
	stale := slices.Clone(o.Report().Stale.Resources)
	slices.Sort(stale)
	count := len(o.Plan.Results)
	return object{
		"messages": messages, "sameReference": !o.changed() && len(messages) > 0, "was_compacted": o.changed(),
		"compacted_count": count, "bytes_saved": saved, "tokens_saved_estimate": saved / 4, "stale_resources": stale,
	}
}
