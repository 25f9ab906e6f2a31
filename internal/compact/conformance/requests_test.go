package conformance

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
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

// round is what a round of a vector did: the messages of its first request, nil for none, and whether anything left the
// view.
type round struct {
	asked   []object
	changed bool
}

// ofRounds has a session compacted in the rounds of a vector by the model of the same name.
func (p *product) ofRounds(id string, q *question, ends []int) (all []round) {
	q.set("summarise.model", id)
	p.create(id, q.format, q.patch)
	begin := 0
	for n, end := range ends {
		p.answers(id, q.step(n))
		p.append(id, q.bodies[begin:end])
		begin = end
		before := jsonText(p.view(id))
		p.compact(id)
		done := round{changed: jsonText(p.view(id)) != before}
		if requests := p.requests(id); requests != nil {
			done.asked = wireMessages(requests[0])
		}
		all = append(all, done)
	}
	return all
}

// firstAsked returns what a vector's first round did. codelia's model is asked about all messages, whether they stay in
// the view or not, and Varve's only if some leave it: so none is kept.
func (p *product) firstAsked(v vector) []round {
	q, ends := asked(v)
	if v.System == "codelia" {
		q.set("summarise.keep_turns", 0)
	}
	return p.ofRounds(v.ID, q, ends[:1])
}

// asksAsWell returns the request of a round as Varve makes it of the recorded one. memory is the answer before.
func asksAsWell(v vector, recorded []object, memory string) []object {
	const noText = "\n[assistant]: " // of a message that has only calls
	lead := slices.IndexFunc(recorded, func(m object) bool { return m["role"] != "system" })
	switch {
	case recorded == nil:
	case v.System == "cortex" && lead == 0: // its own system prompt is in no record
		own := summary.DialogueOf(summary.Request{Style: summary.Cortex}, "").System
		return append([]object{{"role": "system", "content": own}}, recorded...)
	case v.System == "falai" && strings.HasSuffix(text(recorded[0]["content"]), noText): // the call stays with its result
		recorded[0]["content"] = strings.TrimSuffix(text(recorded[0]["content"]), noText)
	case v.System == "codelia": // which forgets what it knew
		for i, tag := range tags.FindAllStringSubmatch(memory, -1) {
			has := func(m object) bool { return m["content"] == tag[1] }
			if !slices.ContainsFunc(recorded, has) {
				recorded = slices.Insert(recorded, lead+i, object{"role": "user", "content": tag[1]})
			}
		}
	}
	return recorded
}

// tags are the parts of an answer of codelia's model.
var tags = regexp.MustCompile(`<(?:retain|summary)>(.*?)</(?:retain|summary)>`)

// wasAsked reports whether a vector shows what a system's model is asked, and of messages that Varve takes: there are
// some, and they are not codelia's own memory alone, which Varve does not know as such.
func wasAsked(v vector) bool {
	if len(recordedRequests(v)) == 0 && (v.System != "codelia" || v.Op != "compact") {
		return false
	}
	own := func(m any) bool { return strings.HasPrefix(textOf(section(m)["content"]), "[codelia.compaction.") }
	messages, listed := v.Input["messages"].([]any) // else there are rounds
	return !listed || slices.ContainsFunc(messages, func(m any) bool { return !own(m) })
}

// TestModelsAreAskedAsTheSystemsAsk compares what reaches a model from the product as it runs, in all rounds, with what
// the systems asked, word for word: the instruction, and the messages before it. Where nothing can leave the view,
// nobody is asked.
func TestModelsAreAskedAsTheSystemsAsk(t *testing.T) {
	t.Parallel()
	var list []vector
	models := map[string]llm.Kind{}
	for _, path := range vectorFiles() {
		var v vector
		decode(must(os.ReadFile(path)), &v)
		if wasAsked(v) {
			list = append(list, v)
			models[v.ID], models[v.ID+"-rounds"] = llm.OpenAI, llm.OpenAI // else the answer is kept
		}
	}
	p := start(t, models)
	compared := 0
	for _, v := range list {
		recorded := recordedRequests(v)
		check := func(name string, rounds []round) {
			q, _ := asked(v)
			memory := ""
			for n, is := range rounds {
				if is.asked == nil && !is.changed {
					continue
				}
				var want []object
				if n < len(recorded) {
					want = asksAsWell(v, slices.Clone(recorded[n]), memory)
				}
				if diff := gocmp.Diff(want, is.asked); diff != "" {
					t.Errorf("%s, %s, round %d (-recorded +ours):\n%s", v.ID, name, n, diff)
				}
				memory = q.step(n).Text
				compared++
			}
		}
		check("first", p.firstAsked(v))
		if q, ends := asked(v); len(ends) > 1 {
			check("all", p.ofRounds(v.ID+"-rounds", q, ends))
		}
	}
	t.Logf("%d requests of %d vectors are compared", compared, len(list))
	if compared < 40 {
		t.Errorf("%d requests are compared", compared)
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
