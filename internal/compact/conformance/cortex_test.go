package conformance

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
)

func cortex(v vector) (object, error) {
	switch v.Op {
	case "estimateTokens":
		q := ask("cortex", session.Anthropic, "tokens.tokenizer=chars4")
		q.add(object{"role": "user", "content": v.Input["text"]})
		o, err := q.compact()
		return object{"tokens": o.Decision.ContextTokens}, err
	case "computeAction":
		return cortexActions(v.Input, v.Output)
	case "capToolResult", "applyBookend":
		return cortexCut(v.Input)
	}
	q, messages := cortexQuestion(v.Input), objects(v.Input["messages"])
	q.window = int(number(v.Input["contextWindow"]))
	q.context = int64(number(v.Input["currentTokens"]) + math.Round(number(v.Input["usageRatio"])*float64(q.window)))
	q.cortex(messages)
	o, err := q.compact()
	if err != nil || v.Op == "micro" {
		return object{"messages": q.cortexBack(&o, v.Input), "sameReference": !o.changed}, err
	}
	actions := object{}
	for i, seq := range q.seqs {
		if action := cortexAction(&o, seq); action["kind"] != "full" {
			actions[fmt.Sprint(i)] = action
		}
	}
	return object{"actions": actions, "historyLength": len(messages)}, nil
}

// cortexQuestion translates the settings: those of the first layer; the other layers are off.
func cortexQuestion(in object) *question {
	q := ask("cortex", session.Anthropic, "tokens.tokenizer=chars4 only_smaller=false trigger=0.25 target=0.00001 "+
		"cap.enabled=false summarise.enabled=false truncate.enabled=false cache.ttl_seconds=0")
	if section(in["persist"])["mode"] != "ok" { // what is not saved is described without a way back
		profile, _ := q.resolve()
		q.set("wording.bookend_head", "")
		q.set("wording.placeholder", profile.Wording.PlaceholderAgain)
	} else {
		q.set("wording.placeholder", `[Tool result persisted -- {tool}: "{preview}" -- use Read on {ref} for full content]`)
	}
	if in["persist"] == nil {
		q.set("trim.extended_retention_multiplier", 1.5)
	}
	q.translate(section(in["config"]), "trimFloorRatio=trigger trimFloorRatio=trim.floor_ratio "+
		"hotZoneMinTokens=trim.hot_zone_min_tokens hotZoneRatio=trim.hot_zone_ratio "+
		"bookendMaxChars=trim.bookend_max_chars bookendMinChars=trim.bookend_min_chars "+
		"degradationSpanRatio=trim.degradation_span_ratio toolCategories=trim.categories "+
		"extendedRetentionMultiplier=trim.extended_retention_multiplier")
	return q
}

// cortex appends messages: one of the role toolResult is the user's, and a result without a call gets one before it.
func (q *question) cortex(messages []object) {
	names := map[string]string{} // of the calls without a result
	for i, m := range messages {
		content := m["content"]
		if parts := objects(content); parts != nil {
			for k, part := range parts {
				name := cmp.Or(text(part["name"]), text(m["toolName"]))
				if part["type"] == "tool_use" {
					names[text(part["id"])] = name
				}
				if part["type"] != "tool_result" && m["role"] != "toolResult" {
					continue
				}
				id := cmp.Or(text(part["tool_use_id"]), text(m["toolCallId"]), fmt.Sprint("call-", i, "-", k))
				for open, named := range names {
					if named == name {
						id = open
					}
				}
				if _, open := names[id]; !open {
					call := object{"type": "tool_use", "id": id, "name": name, "input": object{}}
					q.add(object{"role": "assistant", "content": []object{call}})
				}
				delete(names, id)
				parts[k] = object{"type": "tool_result", "tool_use_id": id, "content": part["text"]}
			}
			content = parts
		}
		role := strings.Replace(text(m["role"]), "toolResult", "user", 1)
		q.seqs = append(q.seqs, q.add(object{"role": role, "content": content}))
	}
}

// cortexBack translates the view back: the texts of results into the record's parts.
func (q *question) cortexBack(o *outcome, in object) []object {
	paths := 0
	return q.back(o, objects(in["messages"]), "user", func(m, now object, _ int64) {
		parts := objects(m["content"])
		for k, part := range objects(now["content"]) {
			if parts[k] = maps.Clone(parts[k]); part["type"] != "tool_result" {
				continue
			}
			path := ""
			if section(in["persist"])["mode"] == "ok" && strings.Contains(text(part["content"]), "persisted") {
				path = fmt.Sprintf("/persist/%s-%d.txt", cmp.Or(text(parts[k]["name"]), text(m["toolName"])), paths)
				paths++
			}
			parts[k]["text"] = named(part["content"], cmp.Or(text(in["path"]), path))
		}
		m["content"] = parts
	})
}

// cortexAction returns what was done to the result of message seq, as the system describes it.
func cortexAction(o *outcome, seq int64) object {
	for _, a := range o.Plan.Actions {
		if a.Seq != seq || !o.changed {
			continue
		}
		switch a.Kind {
		case compact.Bookend:
			var distance, chars int
			fmt.Sscanf(a.Reason, "%d tokens came after it: %d characters", &distance, &chars)
			return object{"kind": "bookend", "headChars": chars, "tailChars": chars, "originalTokens": a.TokensBefore}
		case compact.Blank:
			return object{"kind": "clear"}
		}
		_, preview, _ := bytes.Cut(o.bodies[seq], []byte(`: \"`))
		preview, _, _ = bytes.Cut(preview, []byte(`\" -- `))
		return object{"kind": "placeholder", "toolName": a.Tool, "preview": string(preview)}
	}
	return object{"kind": "full"}
}

// cortexActions asks for each distance, with a newest message of that many tokens. A fraction of a token, which no
// message has, is taken from the zone.
func cortexActions(in, record object) (object, error) {
	content := in["messages"].([]any)[0].(object)["content"]
	for _, entry := range objects(record["actions"]) {
		action := section(entry["action"])
		kept := int(number(action["headChars"]) + number(action["tailChars"]))
		if kept >= len(text(objects(content)[0]["text"])) && action["kind"] == "bookend" {
			entry["action"] = object{"kind": "full"} // such a bookend is the whole text
		}
	}
	list := []object{}
	offsets, _ := in["offsets"].([]any)
	for _, offset := range offsets {
		whole, fraction := math.Modf(number(offset))
		q := cortexQuestion(in)
		q.translate(object{
			"none": 0, "zone": (number(in["hotZone"]) - fraction) / 1000, "span": number(in["degradationSpan"]) / 1000,
		}, "none=trim.floor_ratio none=trim.hot_zone_min_tokens zone=trim.hot_zone_ratio "+
			"span=trim.degradation_span_ratio")
		q.context = always
		q.cortex(objects(in["messages"]))
		q.add(object{"role": "assistant", "content": strings.Repeat("p", int(4*whole))})
		o, err := q.compact()
		if err != nil {
			return nil, err
		}
		list = append(list, object{"tokenOffset": offset, "action": cortexAction(&o, q.seqs[0])})
	}
	return object{"actions": list}, nil
}

// cortexCut asks for one result: of the cap at insertion, or of a bookend. Only a cap can have a head and a tail that
// differ: it gets the words of a bookend.
func cortexCut(in object) (object, error) {
	part := object{"type": "text", "text": in["text"]}
	in["messages"] = []any{object{"role": "toolResult", "toolName": cmp.Or(text(in["toolName"]), "Read"), "content": []any{part}}}
	if in["path"] != nil {
		in["persist"] = object{"mode": "ok"}
	}
	q := cortexQuestion(in)
	head, tail := number(in["headChars"]), number(in["tailChars"])
	switch {
	case in["path"] != nil:
		q.translate(object{"none": 0, "head": head}, "none=trim.floor_ratio none=trim.hot_zone_min_tokens "+
			"none=trim.hot_zone_ratio head=trim.bookend_max_chars head=trim.bookend_min_chars")
	case in["op"] == "capToolResult":
		config := section(in["config"])
		q.translate(object{"on": true, "head": config["bookendMaxChars"], "max": config["maxResultTokens"], "zero": 0,
			"off": false}, "on=cap.enabled off=trim.enabled head=cap.head_chars head=cap.tail_chars max=cap.max_tokens")
	default:
		profile, _ := ask("cortex", session.Anthropic, "").resolve()
		q.translate(object{"on": true, "head": head, "tail": tail, "max": head + tail, "words": profile.Wording.Bookend,
			"off": false}, "off=trim.enabled on=cap.enabled head=cap.head_chars tail=cap.tail_chars max=cap.max_chars words=wording.cap")
	}
	q.context = always
	q.cortex(objects(in["messages"]))
	o, err := q.compact()
	if err != nil {
		return nil, err
	}
	return object{"content": objects(q.cortexBack(&o, in)[0]["content"])[0]["text"]}, nil
}
