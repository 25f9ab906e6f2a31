package conformance

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/session"
)

// recordedRequests returns the requests that a system's model received, as their messages are on the wire.
func recordedRequests(v vector) (all [][]object) {
	for _, request := range objects(cmp.Or(v.Output["llmRequests"], v.Output["llmCalls"])) {
		messages := objects(request["messages"])
		if prompt, ok := request["prompt"].(string); ok {
			messages = []object{{"role": "user", "content": prompt}}
		}
		if system := text(request["systemPrompt"]); system != "" {
			messages = append([]object{{"role": "system", "content": system}}, messages...)
		}
		all = append(all, onWire(messages))
	}
	return all
}

// onWire returns recorded messages as every provider takes them: without reasoning, names and calls that nothing
// answers, with contents as texts.
func onWire(messages []object) (sent []object) {
	answered := map[any]bool{}
	for _, m := range messages {
		answered[m["tool_call_id"]] = true
	}
	for _, m := range messages {
		calls := slices.DeleteFunc(slices.Clone(objects(m["tool_calls"])), func(c object) bool { return !answered[c["id"]] })
		content := cmp.Or(textOf(m["content"]), text(m["refusal"]))
		if m["role"] == "reasoning" || content == "" && len(calls) == 0 {
			continue
		}
		o := object{"role": m["role"]}
		if content != "" {
			o["content"] = content
		}
		if len(calls) > 0 {
			var list []any
			decode([]byte(jsonText(calls)), &list)
			o["tool_calls"] = list
		}
		if id := m["tool_call_id"]; id != nil {
			o["tool_call_id"] = id
		}
		sent = append(sent, o)
	}
	return sent
}

// textOf returns a content's texts.
func textOf(content any) string {
	all := text(content)
	for _, part := range objects(content) {
		all += text(part["text"])
	}
	return all
}

// wireMessages returns the messages of a request to Chat Completions.
func wireMessages(r fake.Request) []object {
	var body struct{ Messages []object }
	decode(r.Body, &body)
	return body.Messages
}

// asked returns a question for a vector's session, and after how many of its messages each round ends.
func asked(v vector) (q *question, ends []int) {
	parts := [][]object{objects(v.Input["messages"])}
	if listed, ok := v.Input["rounds"].([]any); ok {
		parts = nil
		for _, part := range listed {
			parts = append(parts, objects(part))
		}
	}
	switch v.System {
	case "falai":
		q = falaiQuestion(v, parts[0])
		q.set("target", 0.00001) // its windows are smaller than those of sessions
		q.set("summarise", object{"over": 0, "min_tokens": 0})
		for range int(number(v.Input["rounds"])) - 1 {
			parts = append(parts, nil)
		}
	case "cortex":
		q = cortexSummary(v, parts[0])
	default:
		q = ask(v, session.OpenAIChat, object{"compaction": v.Input["config"]})
		q.model(v, "text")
		for _, part := range parts {
			q.chat(part, "tool_name")
			ends = append(ends, len(q.bodies))
		}
		return q, ends
	}
	for range parts {
		ends = append(ends, len(q.bodies))
	}
	return q, ends
}

// cortexSummary returns a question about a summary of messages.
func cortexSummary(v vector, messages []object) *question {
	config := section(v.Input["config"])
	q := ask(v, session.Anthropic, config)
	q.set("summarise", object{"enabled": true, "over": 0, "min_tokens": 0, "prompt": text(config["customPrompt"])})
	q.set("protect.last_messages", config["preserveRecentTurns"])
	q.set("hard", 1)
	for _, m := range messages {
		for _, part := range objects(m["content"]) {
			if part["type"] == "tool_result" { // whose call has another id in the record
				part["tool_use_id"], part["content"] = "tu", part["text"]
			}
		}
		q.add(m)
	}
	q.model(v, "text")
	return q
}

// step returns what a scripted model does in a round. An empty answer is a refusal: it is not asked for again.
func (q *question) step(round int) fake.Step {
	if round >= len(q.replies) || q.replies[round].Text == "" {
		return fake.Step{Fault: fake.Refusal}
	}
	return fake.Step{Text: q.replies[round].Text}
}

// ofRounds has a session compacted in the rounds of a vector by the model of the same name, and returns the messages of
// the first request of each.
func (p *product) ofRounds(id string, q *question, ends []int) (all [][]object) {
	q.set("summarise.model", id)
	p.create(id, q.format, q.patch)
	begin := 0
	for round, end := range ends {
		p.answers(id, q.step(round))
		p.append(id, q.bodies[begin:end])
		begin = end
		p.compact(id)
		var messages []object
		if requests := p.requests(id); requests != nil {
			messages = wireMessages(requests[0])
		}
		all = append(all, messages)
	}
	return all
}

// firstAsked returns the request of a vector's first round. codelia's model is asked about all messages, whether they
// stay in the view or not, and Varve's only if some leave it: so none is kept.
func (p *product) firstAsked(v vector) []object {
	q, ends := asked(v)
	if v.System == "codelia" {
		q.set("summarise.keep_turns", 0)
	}
	return p.ofRounds(v.ID, q, ends[:1])[0]
}

// askedOtherwise are the vectors whose first request differs: why, and what it is.
var askedOtherwise = map[string]struct {
	reason string
	want   func(recorded []object) []object
}{
	"falai-031-at-threshold": {"nothing can leave", func([]object) []object { return nil }},
	"falai-039-auto-orphan": {"a call stays with its result", func(recorded []object) []object {
		recorded[0]["content"] = strings.TrimSuffix(text(recorded[0]["content"]), "\n[assistant]: ")
		return recorded
	}},
	"cortex-067-summarize": {"its own system prompt is in no record", func(recorded []object) []object {
		own := summary.DialogueOf(summary.Request{Style: summary.Cortex}, "").System
		return append([]object{{"role": "system", "content": own}}, recorded...)
	}},
}

// roundsAsked are the requests of the rounds of vectors that have several: of the recorded ones those that there are,
// each with the summary before it where the system forgets that. A round in which nothing can leave has none.
var roundsAsked = map[string][]struct {
	none   bool
	memory []string
}{
	"codelia-073-head-compact-unclosed":          {{none: true}, {}},
	"codelia-097-head-compact-repeat":            {{none: true}, {}, {memory: []string{"keep-b", "sum-b"}}},
	"codelia-100-seed-compact-twice-no-new-turn": {{none: true}, {none: true}},
	"codelia-101-head-compact-twice-no-new-turn": {{none: true}, {none: true}},
	"falai-053-rounds-nonidempotent":             {{}, {none: true}, {none: true}},
}

// wantRounds returns the requests that the rounds of a vector should have.
func wantRounds(v vector) [][]object {
	all := recordedRequests(v)
	for round, is := range roundsAsked[v.ID] {
		lead := slices.IndexFunc(all[round], func(m object) bool { return m["role"] != "system" })
		for i, text := range is.memory {
			all[round] = slices.Insert(all[round], lead+i, object{"role": "user", "content": text})
		}
		if is.none {
			all[round] = nil
		}
	}
	return all
}

// TestModelsAreAskedAsTheSystemsAsk compares what reaches a model from the product as it runs, in all rounds, with what
// the systems asked, word for word: the instruction, and the messages before it.
func TestModelsAreAskedAsTheSystemsAsk(t *testing.T) {
	t.Parallel()
	var list []vector
	models := map[string]llm.Kind{}
	for _, path := range vectorFiles() {
		var v vector
		decode(must(os.ReadFile(path)), &v)
		asks := v.System == "codelia" && v.Op == "compact" && !strings.Contains(v.ID, "memory-only") // which codelia's head does not send
		if v.ID != "falai-049-empty-zero" && (asks || len(recordedRequests(v)) > 0) {
			list = append(list, v)
			models[v.ID], models[v.ID+"-rounds"] = llm.OpenAI, llm.OpenAI // else the answer is kept
		}
	}
	if len(list) < 40 {
		t.Errorf("%d vectors have requests", len(list))
	}
	p := start(t, models)
	for _, v := range list {
		var want []object
		if recorded := recordedRequests(v); len(recorded) > 0 {
			want = recorded[0]
		}
		if is, ok := askedOtherwise[v.ID]; ok {
			want = is.want(want)
		}
		if diff := gocmp.Diff(want, p.firstAsked(v)); diff != "" {
			t.Errorf("%s (-recorded +ours):\n%s", v.ID, diff)
		}
		if roundsAsked[v.ID] == nil {
			continue
		}
		q, ends := asked(v)
		if diff := gocmp.Diff(wantRounds(v), p.ofRounds(v.ID+"-rounds", q, ends)); diff != "" {
			t.Errorf("%s, all rounds (-recorded +ours):\n%s", v.ID, diff)
		}
	}
}
