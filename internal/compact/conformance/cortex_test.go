package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
)

func cortex(v vector) object {
	q, messages := cortexQuestion(v), objects(v.Input["messages"])
	switch v.Op {
	case "estimateTokens":
		q.add(object{"role": "user", "content": v.Input["text"]})
		q.context = 0
		return object{"tokens": q.compact().Decision.ContextTokens}
	case "computeAction":
		return cortexActions(v)
	case "capToolResult", "applyBookend":
		part := object{"type": "text", "text": v.Input["text"]}
		name := cmp.Or(text(v.Input["toolName"]), "Read")
		messages = []object{{"role": "toolResult", "toolName": name, "content": []object{part}}}
		list := q.cortexBack(q.cortex(messages).compact(), messages, v)
		return object{"content": objects(list[0]["content"])[0]["text"]}
	}
	if calls := objects(v.Input["calls"]); calls != nil {
		return cortexCalls(v, calls)
	}
	q.window = int(number(v.Input["contextWindow"]))
	q.context = int64(math.Ceil(number(v.Input["currentTokens"])) + math.Round(number(v.Input["usageRatio"])*float64(q.window)))
	q.beside = v.Op == "micro"
	o := q.cortex(messages).compact()
	if v.Op == "micro" {
		return object{"messages": q.cortexBack(o, messages, v), "sameReference": !o.changed}
	}
	actions := object{}
	for i, action := range section(v.Output["actions"]) { // a bookend that is the whole text is none
		n, err := strconv.Atoi(i)
		if kept := number(section(action)["headChars"]) * 2; err == nil && kept > 0 && int(kept) >= units(textOf(messages[n]["content"])) {
			delete(section(v.Output["actions"]), i)
		}
	}
	for i, seq := range q.seqs {
		if action := cortexAction(o, seq); action["kind"] != "full" {
			actions[fmt.Sprint(i)] = action
		}
	}
	return object{"actions": actions}
}

// cortexCalls asks for each of several calls, whose messages are those of the vector unless the call has its own.
func cortexCalls(v vector, calls []object) object {
	results := []object{}
	for _, call := range calls {
		one := v
		one.Input = maps.Clone(v.Input)
		delete(one.Input, "calls")
		maps.Copy(one.Input, call)
		results = append(results, cortex(one))
	}
	for _, recorded := range objects(v.Output["results"]) {
		maps.DeleteFunc(recorded, func(member string, _ any) bool { return results[0][member] == nil })
	}
	return object{"results": results}
}

// cortexQuestion translates what the settings do not say. What is not saved is described without a way back. Bookends
// whose head and tail differ are a cap's, with the words of a bookend.
func cortexQuestion(v vector) *question {
	q := ask(v, session.Anthropic, section(v.Input["config"]))
	words := q.resolve().Wording
	q.reworded("placeholder", "full content: read_result {ref}", "use Read on {ref} for full content")
	if section(v.Input["persist"])["mode"] != "ok" && v.Input["path"] == nil {
		q.set("wording.bookend_head", "")
		q.set("wording.placeholder", words.PlaceholderAgain)
	}
	if v.Input["persist"] == nil && section(v.Input["config"])["extendedRetentionMultiplier"] == nil {
		q.set("trim.extended_retention_multiplier", 1.5)
	}
	if floor := section(v.Input["config"])["trimFloorRatio"]; floor != nil && v.Op != "trimState" { // which is asked after the gate
		q.set("trigger", max(number(floor), 0.00002))
	}
	if head, tail := number(v.Input["headChars"]), number(v.Input["tailChars"]); v.Input["path"] != nil {
		q.set("trim", object{"bookend_max_chars": head, "bookend_min_chars": head})
	} else if v.Op == "applyBookend" {
		q.set("cap", object{"enabled": true, "max_chars": head + tail, "head_chars": head, "tail_chars": tail})
		q.set("trim.enabled", false)
		q.set("wording.cap", words.Bookend)
	}
	return q
}

// cortex appends messages: one of the role toolResult is the user's. The records have results without calls, and calls
// of other ids, so that every result gets a call before it, and the record's own are empty texts meanwhile.
func (q *question) cortex(messages []object) *question {
	for i, m := range messages {
		content := m["content"]
		if whole, ok := content.(string); ok && m["role"] == "toolResult" {
			content = []object{{"type": "text", "text": whole}}
		}
		if parts := slices.Clone(objects(content)); parts != nil {
			for k, part := range parts {
				id, name := fmt.Sprint("call-", i, "-", k), cmp.Or(text(part["name"]), text(m["toolName"]))
				switch {
				case part["type"] == "tool_use":
					parts[k] = object{"type": "text", "text": ""}
				case part["type"] == "tool_result" || m["role"] == "toolResult":
					call := object{"type": "tool_use", "id": id, "name": name, "input": object{}}
					q.add(object{"role": "assistant", "content": []object{call}})
					parts[k] = object{"type": "tool_result", "tool_use_id": id, "content": part["text"]}
				}
			}
			content = parts
		}
		role := strings.Replace(text(m["role"]), "toolResult", "user", 1)
		q.seqs = append(q.seqs, q.add(object{"role": role, "content": content}))
	}
	return q
}

// cortexBack translates the view back: the texts of results into the record's parts.
func (q *question) cortexBack(o *outcome, messages []object, v vector) []object {
	paths := 0
	return q.back(o, messages, "user", func(m, now object, _ int64) {
		parts := slices.Clone(objects(m["content"]))
		for k, part := range objects(now["content"]) {
			if part["type"] != "tool_result" || part["content"] == nil {
				continue
			}
			path, tool := text(v.Input["path"]), text(m["toolName"])
			if parts != nil {
				tool = cmp.Or(text(parts[k]["name"]), tool)
			}
			if section(v.Input["persist"])["mode"] == "ok" && strings.Contains(text(part["content"]), "persisted") {
				path = fmt.Sprintf("/persist/%s-%d.txt", tool, paths)
				paths++
			}
			if parts == nil {
				m["content"] = named(part["content"], path)
				return
			}
			parts[k] = maps.Clone(parts[k])
			parts[k]["text"] = named(part["content"], path)
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
			must(fmt.Sscanf(a.Reason, "%d tokens came after it: %d characters", &distance, &chars))
			return object{"kind": "bookend", "headChars": chars, "tailChars": chars, "originalTokens": a.TokensBefore}
		case compact.Blank:
			return object{"kind": "clear"}
		}
		var m object
		decode(o.bodies[seq], &m)
		line := previewed.FindStringSubmatch(text(objects(m["content"])[0]["content"]))
		return object{"kind": "placeholder", "toolName": line[2], "preview": strings.TrimSuffix(strings.TrimPrefix(line[3], `: "`), `"`)}
	}
	return object{"kind": "full"}
}

// cortexActions asks for each distance, with a newest message of that many tokens. A fraction of a token, which no
// message has, is taken from the zone. A bookend that is the whole text is none.
func cortexActions(v vector) object {
	list, messages := []object{}, objects(v.Input["messages"])
	for _, entry := range objects(v.Output["actions"]) {
		action := section(entry["action"])
		kept := int(number(action["headChars"]) + number(action["tailChars"]))
		if kept >= units(text(objects(messages[0]["content"])[0]["text"])) {
			entry["action"] = object{"kind": "full"}
		}
		whole, fraction := math.Modf(number(entry["tokenOffset"]))
		q := cortexQuestion(v).cortex(messages)
		q.set("trim.hot_zone_ratio", (number(v.Input["hotZone"])-fraction)/1000)
		q.set("trim.degradation_span_ratio", number(v.Input["degradationSpan"])/1000)
		q.add(object{"role": "assistant", "content": strings.Repeat("p", int(4*whole))})
		list = append(list, object{"tokenOffset": entry["tokenOffset"], "action": cortexAction(q.compact(), q.seqs[0])})
	}
	return object{"actions": list}
}
