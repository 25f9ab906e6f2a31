package conformance

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/session"
)

// told is a conversation in each format: standing orders, a picture and other files, reasoning, a call with its result.
var told = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"system","content":"Be brief."}`,
		`{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAAN"}},{"type":"input_audio","input_audio":{"data":"UklGRiQAAAAA","format":"wav"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0xLjQK","filename":"a.pdf"}}]}`,
		`{"role":"assistant","content":"I read it.","tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}]}`,
		`{"role":"tool","tool_call_id":"c1","content":"The port is 5433."}`,
		`{"role":"system","content":"Answer in French."}`,
		`{"role":"assistant","content":"It is 5433."}`,
	},
	session.OpenAIResponses: {
		`{"type":"message","role":"developer","content":"Be brief."}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgoAAAAN"},{"type":"input_file","file_data":"data:application/pdf;base64,JVBERi0xLjQK","filename":"a.pdf"}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"A thought."}]}`,
		`{"type":"function_call","call_id":"c1","name":"Read","arguments":"{\"path\":\"a\"}"}`,
		`{"type":"function_call_output","call_id":"c1","output":"The port is 5433."}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is 5433."}]}`,
	},
	session.Anthropic: {
		`{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAAN"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQK"}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"A thought.","signature":"c2ln"},{"type":"text","text":"I read it."},{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"The port is 5433."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAAN"}}]}]}`,
		`{"role":"assistant","content":"It is 5433."}`,
	},
	session.Gemini: {
		`{"role":"user","parts":[{"text":"Look."},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAAN"}},{"inlineData":{"mimeType":"audio/wav","data":"UklGRiQAAAAA"}}]}`,
		`{"role":"model","parts":[{"text":"A thought.","thought":true},{"text":"I read it."},{"functionCall":{"id":"c1","name":"Read","args":{"path":"a"}}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"Read","response":{"output":"The port is 5433."}}}]}`,
		`{"role":"model","parts":[{"text":"It is 5433."}]}`,
	},
	session.AISDK: {
		`{"id":"1","role":"system","parts":[{"type":"text","text":"Be brief."}]}`,
		`{"id":"2","role":"user","parts":[{"type":"text","text":"Look."},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgoAAAAN"},{"type":"file","mediaType":"application/pdf","url":"data:application/pdf;base64,JVBERi0xLjQK"}]}`,
		`{"id":"3","role":"assistant","parts":[{"type":"reasoning","text":"A thought."},{"type":"text","text":"I read it."},{"type":"tool-Read","toolCallId":"c1","state":"output-available","input":{"path":"a"},"output":"The port is 5433."},{"type":"text","text":"It is 5433."}]}`,
	},
}

// say returns a message of the user's.
func say(format session.Format, text string) []byte {
	switch format {
	case session.Gemini:
		return []byte(jsonText(object{"role": "user", "parts": []object{{"text": text}}}))
	case session.AISDK:
		return []byte(jsonText(object{"id": text, "role": "user", "parts": []object{{"type": "text", "text": text}}}))
	case session.OpenAIResponses:
		return []byte(jsonText(object{"type": "message", "role": "user", "content": text}))
	}
	return []byte(jsonText(object{"role": "user", "content": text}))
}

// falaiAsks is what falai's model is asked of these conversations, without the instruction and with sizes as N.
var falaiAsks = map[session.Format]string{
	session.OpenAIChat: "[user]: Look.[image image/png, N bytes][file, N bytes][file application/pdf, N bytes]\n[assistant]: I read it.\n" +
		"[tool]: The port is 5433.\n[system]: Answer in French.\n[assistant]: It is 5433.",
	session.OpenAIResponses: "[user]: Look.[image image/png, N bytes][file application/pdf, N bytes]\n[assistant]: \"\"\n" +
		"[tool]: The port is 5433.\n[assistant]: It is 5433.",
	session.Anthropic: "[user]: Look.[image image/png, N bytes][file application/pdf, N bytes]\n[assistant]: I read it.\n" +
		"[tool]: The port is 5433.\n[content that is no text, N bytes]\n[assistant]: It is 5433.",
	session.Gemini: "[user]: Look.[image image/png, N bytes][file audio/wav, N bytes]\n[assistant]: I read it.\n" +
		"[tool]: The port is 5433.\n[assistant]: It is 5433.",
	session.AISDK: "[user]: Look.[image image/png, N bytes][file application/pdf, N bytes]\n[assistant]: I read it.\n" +
		"[tool]: The port is 5433.\n[assistant]: It is 5433.",
}

var sizes = regexp.MustCompile(`\d+ bytes`)

// eager returns a system's profile that has a model summarise all but the newest message of any session.
func eager(profile, model string) []byte {
	return []byte(jsonText(object{
		"profile": profile, "target": 0.03, "hard": 1, "trigger": 0.9, "only_smaller": false,
		"protect":   object{"last_messages": 0},
		"summarise": object{"model": model, "over": 0, "min_tokens": 0, "keep_turns": 0, "keep_messages": 1, "max_tokens": 500},
	}))
}

// tell tells a session its conversation.
func (p *product) tell(id string, format session.Format) {
	var bodies [][]byte
	for _, m := range told[format] {
		bodies = append(bodies, []byte(m))
	}
	p.append(id, append(bodies, say(format, "Go on.")))
}

// promptOf returns the only message of a request to Chat Completions, without falai's instruction.
func promptOf(r fake.Request) string {
	_, prompt, _ := strings.Cut(text(wireMessages(r)[0]["content"]), "context:\n\n")
	return sizes.ReplaceAllString(prompt, "N bytes")
}

// TestEveryFormatReachesFalaisModel: what is no text is described, a result is no word of the user's, and reasoning is
// left out. If the model fails the oldest messages are dropped, with a notice, and are in the next request all the same.
func TestEveryFormatReachesFalaisModel(t *testing.T) {
	t.Parallel()
	models := map[string]llm.Kind{}
	for format := range told {
		models[string(format)] = llm.OpenAI
	}
	p := start(t, models)
	for format, want := range falaiAsks {
		id := string(format)
		p.create(id, format, eager("falai", id))
		p.tell(id, format)
		p.answers(id, fake.Step{Fault: fake.Refusal})
		p.compact(id)
		if got := promptOf(p.requests(id)[0]); got != want {
			t.Errorf("%s: the model is asked\n%s\nwant\n%s", format, got, want)
		}
		if view := jsonText(p.view(id)); !strings.Contains(view, "were left out") {
			t.Errorf("%s: after the failure the view is %s", format, view)
		}
		p.append(id, [][]byte{say(format, "Go on again.")})
		p.answers(id, fake.Step{Text: "The port is 5433."})
		p.compact(id)
		got := promptOf(p.requests(id)[0])
		for _, text := range []string{"Look.", "I read it.", "The port is 5433.", "It is 5433.", "[user]: Go on."} {
			if format == session.OpenAIResponses && text == "I read it." {
				continue
			}
			if strings.Count(got, text) != 1 {
				t.Errorf("%s: after the failure the model is asked\n%s\nwithout, or twice, %q", format, got, text)
			}
		}
		if view := jsonText(p.view(id)); strings.Contains(view, "left out") || !strings.Contains(view, `\nThe port is 5433."`) {
			t.Errorf("%s: after the answer the view is %s", format, view)
		}
	}
}

// TestSummariesOfSummariesEndInTheLog: an earlier summary is fed on, three times. Then the log is summarised, of which
// the request has every message once, and the generations begin anew. Messages of the system stay, word for word.
func TestSummariesOfSummariesEndInTheLog(t *testing.T) {
	t.Parallel()
	const french = "Answer in French."
	models := map[string]llm.Kind{}
	for format := range told {
		models[string(format)] = llm.OpenAI
	}
	p := start(t, models)
	for format := range told {
		if testing.Short() && format != session.OpenAIChat && format != session.Anthropic {
			continue
		}
		id := string(format)
		p.create(id, format, eager("codelia", id))
		p.tell(id, format)
		for n := range 6 {
			p.answers(id, fake.Step{Text: fmt.Sprintf("<retain>Fact %c.</retain><summary>State %c.</summary>", 'A'+n, 'A'+n)})
			p.compact(id)
			sent := jsonText(wireMessages(p.requests(id)[0]))
			for k := range n {
				later := fmt.Sprintf("Step %c.", 'a'+k)
				if want := k >= n-2 || n == 3; strings.Count(sent, later) > 1 || strings.Contains(sent, later) != want {
					t.Errorf("%s, compaction %d: is %q in the request once: want %t\n%s", format, n, later, want, sent)
				}
			}
			before := fmt.Sprintf("State %c.", 'A'+n-1)
			if fromLog := n == 0 || n == 3; strings.Contains(sent, before) == fromLog || strings.Contains(sent, "Look.") != fromLog {
				t.Errorf("%s, compaction %d: made of the log: want %t\n%s", format, n, fromLog, sent)
			}
			summaries := objects(p.call("GET", "/v1/sessions/"+id+"/summaries", nil)["summaries"])
			if got := summaries[0]["generation"]; got != float64(n%3+1) {
				t.Errorf("%s, compaction %d: generation %v", format, n, got)
			}
			view := jsonText(p.view(id))
			if strings.Contains(told[format][0], "Be brief") != strings.Contains(view, "Be brief") || !strings.Contains(view, fmt.Sprintf("State %c.", 'A'+n)) {
				t.Errorf("%s, compaction %d: the view is %s", format, n, view)
			}
			if want := strings.Count(jsonText(told[format]), french); strings.Count(view, french) != want {
				t.Errorf("%s, compaction %d: the system's later message is not in it %d times: %s", format, n, want, view)
			}
			p.append(id, [][]byte{say(format, fmt.Sprintf("Step %c.", 'a'+n))})
		}
	}
}
