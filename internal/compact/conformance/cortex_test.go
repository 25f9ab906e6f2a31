package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
)

// cortexInput is the input of a vector of cortex.
type cortexInput struct {
	Messages      []object
	Config        object
	ContextWindow int
	CurrentTokens *int64
	CacheCold     *bool
	UsageRatio    float64
	Persist       *struct{ Mode string }

	HotZone, DegradationSpan float64 // computeAction
	Offsets                  []json.Number

	Text, ToolName, Path string // applyBookend, capToolResult, estimateTokens
	HeadChars, TailChars int
}

func cortex(v vector) (object, error) {
	in := cortexInput{ContextWindow: 1000}
	v.input(&in)
	switch v.Op {
	case "estimateTokens":
		q := in.question()
		q.add(object{"role": "user", "content": in.Text})
		o, err := q.compact()
		return object{"tokens": o.Decision.ContextTokens}, err
	case "capToolResult", "applyBookend":
		return in.cut(v.Op)
	case "computeAction":
		return in.actions()
	}
	q := in.question()
	ids := in.add(q)
	if in.CurrentTokens == nil {
		tokens := int64(math.Round(in.UsageRatio * float64(in.ContextWindow)))
		in.CurrentTokens = &tokens
	}
	q.context = in.CurrentTokens
	if in.CacheCold != nil && !*in.CacheCold {
		q.set("cache.ttl_seconds", 300)
	}
	o, err := q.compact()
	if err != nil || v.Op == "micro" {
		return object{"messages": in.back(q, &o, ids), "sameReference": !o.changed()}, err
	}
	actions := object{}
	for i, seq := range q.seqs {
		if action := actionOf(&o, seq); action["kind"] != "full" {
			actions[fmt.Sprint(i)] = action
		}
	}
	return object{"actions": actions, "historyLength": len(in.Messages)}, nil
}

// question translates the settings: those of the first layer, the others being off.
func (in *cortexInput) question() *question {
	q := ask("cortex", session.Anthropic, in.ContextWindow)
	for path, value := range map[string]any{
		"tokens.tokenizer": "chars4", "only_smaller": false, "trigger": 0.25, "target": 0.001, "cache.ttl_seconds": 0,
		"cap.enabled": false, "summarise.enabled": false, "truncate.enabled": false,
	} {
		q.set(path, value)
	}
	if in.Persist == nil {
		q.set("trim.extended_retention_multiplier", 1.5)
	}
	q.settings(in.Config, "trimFloorRatio trim.floor_ratio trigger", "hotZoneMinTokens trim.hot_zone_min_tokens",
		"hotZoneRatio trim.hot_zone_ratio", "bookendMaxChars trim.bookend_max_chars",
		"bookendMinChars trim.bookend_min_chars", "degradationSpanRatio trim.degradation_span_ratio",
		"extendedRetentionMultiplier trim.extended_retention_multiplier", "toolCategories trim.categories",
		"maxResultTokens cap.max_tokens")
	return q
}

// add translates the messages: a message of the role toolResult is one of the user, and a result without a call gets
// one. It returns the ids of the results in the order of their parts.
func (in *cortexInput) add(q *question) (ids [][]string) {
	type call struct{ id, name string }
	var open []call
	for i, m := range in.Messages {
		parts, isList := m["content"].([]any)
		list, results := []any{}, []string{}
		for k, p := range parts {
			part := p.(object)
			name, _ := cmpOr(part["name"], m["toolName"]).(string)
			id, _ := cmpOr(part["tool_use_id"], m["toolCallId"], fmt.Sprintf("call-%d-%d", i, k)).(string)
			switch {
			case part["type"] == "tool_use":
				open = append(open, call{part["id"].(string), name})
			case part["type"] == "tool_result" || m["role"] == "toolResult" && part["type"] == "text":
				found := len(open) - 1
				for found >= 0 && open[found].id != id && open[found].name != name {
					found--
				}
				if found < 0 {
					q.add(object{"role": "assistant", "content": []object{
						{"type": "tool_use", "id": id, "name": name, "input": object{}},
					}})
				} else {
					id = open[found].id
					open = append(open[:found], open[found+1:]...)
				}
				results = append(results, id)
				part = object{"type": "tool_result", "tool_use_id": id, "content": part["text"]}
			}
			list = append(list, part)
		}
		role := m["role"]
		if role == "toolResult" {
			role = "user"
		}
		content := m["content"]
		if isList {
			content = list
		}
		q.seqs = append(q.seqs, q.add(object{"role": role, "content": content}))
		ids = append(ids, results)
	}
	return ids
}

func cmpOr(values ...any) any {
	for _, value := range values {
		if value != nil {
			return value
		}
	}
	return nil
}

// back translates the view back: the text of each part of the record that is a result is that of the product's.
func (in *cortexInput) back(q *question, o *outcome, ids [][]string) []object {
	persisted := 0
	return q.messages(o, in.Messages, "user", func(i int, m, body object) {
		list := []any{}
		for k, p := range m["content"].([]any) {
			part := maps.Clone(p.(object))
			now := body["content"].([]any)[k].(object)
			if text, ok := now["content"].(string); ok {
				path := ""
				name, _ := cmpOr(part["name"], m["toolName"]).(string)
				if in.Persist != nil && in.Persist.Mode == "ok" && strings.Contains(text, "persisted") {
					path = fmt.Sprintf("/persist/%s-%d.txt", name, persisted)
					persisted++
				}
				part["text"] = named(text, path)
			}
			list = append(list, part)
		}
		m["content"] = list
	})
}

// actionOf returns what was done to the result of message seq, as the system describes it.
func actionOf(o *outcome, seq int64) object {
	for _, a := range o.Plan.Actions {
		if a.Seq != seq || !o.changed() {
			continue
		}
		var distance, chars int
		switch a.Kind {
		case compact.Bookend:
			fmt.Sscanf(a.Reason, "%d tokens came after it: %d characters", &distance, &chars)
			return object{"kind": "bookend", "headChars": chars, "tailChars": chars, "originalTokens": a.TokensBefore}
		case compact.Blank:
			return object{"kind": "clear"}
		}
		_, text, _ := bytes.Cut(o.bodies[seq], []byte(`: \"`))
		preview, _, _ := bytes.Cut(text, []byte(`\" -- `))
		return object{"kind": "placeholder", "toolName": a.Tool, "preview": string(preview)}
	}
	return object{"kind": "full"}
}

// actions asks for each distance, a text of that many tokens being the newest message. A fraction of a token that the
// distance has is taken from the zone.
func (in *cortexInput) actions() (object, error) {
	list := []object{}
	for _, offset := range in.Offsets {
		distance, _ := offset.Float64()
		whole := math.Floor(distance)
		q := in.question()
		q.set("trigger", 0.002)
		q.set("trim.floor_ratio", 0)
		q.set("trim.hot_zone_min_tokens", 0)
		q.set("trim.hot_zone_ratio", (in.HotZone-(distance-whole))/1000)
		q.set("trim.degradation_span_ratio", in.DegradationSpan/1000)
		in.add(q)
		q.add(object{"role": "assistant", "content": strings.Repeat("p", int(4*whole))})
		o, err := q.compact()
		if err != nil {
			return nil, err
		}
		list = append(list, object{"tokenOffset": offset, "action": actionOf(&o, q.seqs[0])})
	}
	return object{"actions": list}, nil
}

// cut asks for one result: of the cap at insertion, of a persisted bookend, or of a bookend whose head and tail differ,
// which only the cap has, with the words of a bookend.
func (in *cortexInput) cut(op string) (object, error) {
	q := in.question()
	q.set("trigger", 0.002)
	in.Messages = []object{{"role": "toolResult", "toolName": cmpOr(in.ToolName, "Read"), "content": []any{
		object{"type": "text", "text": in.Text},
	}}}
	switch {
	case op == "capToolResult":
		q.set("cap.enabled", true)
		q.settings(in.Config, "bookendMaxChars cap.head_chars cap.tail_chars")
	case in.Path != "":
		in.Persist = &struct{ Mode string }{"ok"}
		q.set("trim.hot_zone_min_tokens", 0)
		q.set("trim.hot_zone_ratio", 0)
		q.settings(object{"n": in.HeadChars}, "n trim.bookend_max_chars trim.bookend_min_chars")
	default:
		profile, err := q.resolve()
		if err != nil {
			return nil, err
		}
		q.settings(object{"head": in.HeadChars, "tail": in.TailChars, "max": in.HeadChars + in.TailChars,
			"words": profile.Wording.Bookend, "on": true},
			"head cap.head_chars", "tail cap.tail_chars", "max cap.max_chars", "words wording.cap", "on cap.enabled")
	}
	ids := in.add(q)
	o, err := q.compact()
	if err != nil {
		return nil, err
	}
	part := in.back(q, &o, ids)[0]["content"].([]any)[0].(object)
	return object{"content": strings.Replace(part["text"].(string), "/persist/"+in.ToolName+"-0.txt", in.Path, 1)}, nil
}
