package conformance

import (
	"cmp"
	"fmt"
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

// events returns what a request says, part by part: its protocol does not show.
func events(r fake.Request) (all []string) {
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			role := m.Role
			if p.Kind == fake.Result {
				role = "tool"
			} else if p.Kind == fake.Call {
				p.Text = "" // arguments are an object or a text
			}
			all = append(all, strings.TrimSpace(fmt.Sprintln(role, p.Kind, p.Tool, p.ID, p.Text)))
		}
	}
	return append([]string{"system " + strings.ReplaceAll(r.System, "\n", "")}, all...)
}

// TestEveryProtocolAsksAndFailsAsTheSystems: over each protocol a style's model is asked the same, and cannot call a
// tool. If it fails, the messages stay, or with falai the oldest are dropped, with a notice.
func TestEveryProtocolAsksAndFailsAsTheSystems(t *testing.T) {
	t.Parallel()
	kinds := []llm.Kind{llm.OpenAI, llm.OpenAIResponses, llm.Anthropic}
	steps := map[string]fake.Step{"fails": {Fault: fake.Refusal}, "answers": {Text: "<retain>Port 5433.</retain><summary>It was read.</summary>"}}
	models := map[string]llm.Kind{}
	for _, kind := range kinds {
		for style := range asksLast {
			for step := range steps {
				models[style+"-"+string(kind)+"-"+step] = kind
			}
		}
	}
	p := start(t, models)
	for style, last := range asksLast {
		var chat []string
		for _, kind := range kinds {
			for name, step := range steps {
				id := style + "-" + string(kind) + "-" + name
				p.create(id, session.OpenAIChat, eager(style, id))
				if style == "codelia" {
					p.call("PATCH", "/v1/sessions/"+id+"/policy", object{"summarise": object{"directives": []string{"d1", "d2"}, "retain_directives": []string{"r1"}}})
				}
				p.tell(id, session.OpenAIChat)
				before := jsonText(p.view(id))
				p.answers(id, step)
				p.compact(id)
				r := p.requests(id)[0]
				got := events(r)
				if chat == nil {
					chat = got
				}
				if diff := gocmp.Diff(chat, got); diff != "" || !strings.HasSuffix(got[len(got)-1], last) && style == "codelia" || !strings.Contains(got[len(got)-1], last) {
					t.Errorf("%s (-chat +this):\n%s\n%s", id, diff, got[len(got)-1])
				}
				if offers := strings.Contains(string(r.Body), `"tools"`); offers && !strings.Contains(string(r.Body), `"tool_choice":{"type":"none"}`) {
					t.Errorf("%s: the model may call tools: %s", id, r.Body)
				}
				view := jsonText(p.view(id))
				wrong := map[string]bool{
					"answers":       !strings.Contains(view, "It was read."),
					"fails-codelia": view != before,
					"fails-falai":   !strings.Contains(view, "were left out"),
				}
				if wrong[name] || wrong[name+"-"+style] {
					t.Errorf("%s: the view is %s", id, view)
				}
			}
		}
	}
}

// asksLast is the end of what each style asks.
var asksLast = map[string]string{
	"falai": "context:\n\n[user]: Look.",
	"codelia": "Respond only with the XML-like tags below and nothing else:\n<retain>...</retain>\n<summary>...</summary>\n\n" +
		"Retain instructions:\nList concrete details that must be preserved verbatim. Include tool output refs, file paths, identifiers, commands, " +
		"TODOs, and any critical decisions.\n- r1\n\nSummary instructions:\nSummarize the conversation so it can be continued later. Focus on " +
		"decisions, results, constraints, and next steps. Keep it concise and factual.\n- d1\n- d2",
}
