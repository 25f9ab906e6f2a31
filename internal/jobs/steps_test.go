package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// step is a text of the assistant, a call and its result.
type step struct {
	n      int
	result string // a string literal
}

// steps returns that many steps whose results have 1,000 to 8,000 tokens.
func steps(many int) (list []step) {
	for n := range many {
		var text strings.Builder
		for line := 0; text.Len() < 4*1000*(1+n*5%8); line++ {
			fmt.Fprintf(&text, "func file%d_line%d(ctx context.Context) error { return store.Append(ctx, %d) }\n", n, line, n*line)
		}
		list = append(list, step{n, string(rawjson.Quote(nil, []byte(text.String())))})
	}
	return list
}

const (
	stepText = `I read file %[1]d, for its tests fail.`
	stepPath = `{"path":"internal/app/file%[1]d.go"}`
)

// stepForms has the messages of a step in the formats that have some for each: of the assistant, and of its tool.
var stepForms = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"assistant","content":"` + stepText + `","tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"internal/app/file%[1]d.go\"}"}}]}`,
		`{"role":"tool","tool_call_id":"c%[1]d","content":%[2]s}`,
	},
	session.OpenAIResponses: {
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + stepText + `","annotations":[]}]}`,
		`{"type":"function_call","call_id":"c%[1]d","name":"Read","arguments":"{\"path\":\"internal/app/file%[1]d.go\"}"}`,
		`{"type":"function_call_output","call_id":"c%[1]d","output":%[2]s}`,
	},
	session.Anthropic: {
		`{"role":"assistant","content":[{"type":"text","text":"` + stepText + `"},{"type":"tool_use","id":"c%[1]d","name":"Read","input":` + stepPath + `}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%[1]d","content":%[2]s}]}`,
	},
	session.Gemini: {
		`{"role":"model","parts":[{"text":"` + stepText + `"},{"functionCall":{"id":"c%[1]d","name":"Read","args":` + stepPath + `}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"c%[1]d","name":"Read","response":{"output":%[2]s}}}]}`,
	},
}

// written returns steps as messages of a format. An AI SDK message has twelve of them.
func written(f session.Format, list []step) (bodies []string) {
	if f == session.AISDK {
		return uiMessages(list, 12)
	}
	for _, s := range list {
		for _, form := range stepForms[f] {
			body := fmt.Sprintf(form+"%[2]s", s.n, s.result)
			bodies = append(bodies, strings.TrimSuffix(body, s.result))
		}
	}
	return bodies
}

func uiMessages(list []step, inOne int) (bodies []string) {
	const form = `{"type":"step-start"},{"type":"text","text":"` + stepText + `"},` +
		`{"type":"tool-Read","toolCallId":"c%[1]d","state":"output-available","input":` + stepPath + `,"output":%[2]s}`
	for len(list) > 0 {
		n := min(inOne, len(list))
		parts := make([]string, n)
		for i, s := range list[:n] {
			parts[i] = fmt.Sprintf(form, s.n, s.result)
		}
		bodies = append(bodies, fmt.Sprintf(`{"id":"msg_%d","role":"assistant","parts":[%s]}`, list[0].n, strings.Join(parts, ",")))
		list = list[n:]
	}
	return bodies
}

// said returns a message of the user or the assistant that is a text.
func said(f session.Format, role, text string) string {
	switch f {
	case session.Gemini:
		return fmt.Sprintf(`{"role":%q,"parts":[{"text":%q}]}`, strings.Replace(role, "assistant", "model", 1), text)
	case session.AISDK:
		return fmt.Sprintf(`{"id":"%s_%x","role":%q,"parts":[{"type":"text","text":%[2]q}]}`, role, text, role)
	}
	return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text)
}

// checkView wants the stored view to be valid as it is, and to have the tokens that the session counts.
func (w *world) checkView(at session.Address, found session.Session) {
	w.Helper()
	view, bodies := w.read(at)
	if found.Checkpoint == 0 || len(view.Tail) > 0 {
		w.Errorf("%s has checkpoint %d and a tail of %d bytes", at.ID, found.Checkpoint, len(view.Tail))
	}
	if violations := wiretest.Validate(view.Format, bodies, wire.Options{Model: "gemini-2.5-pro"}); len(violations) > 0 {
		w.Errorf("the view of %s breaks its provider's rules: %v", at.ID, violations)
	}
	tokens := int64(0)
	for _, body := range bodies {
		m, err := wire.Inspect(view.Format, body)
		if err != nil {
			w.Fatal(err)
		}
		tokens += int64(m.Tokens)
	}
	if tokens != found.ContextTokens {
		w.Errorf("the view of %s has %d tokens, context_tokens is %d", at.ID, tokens, found.ContextTokens)
	}
}

// An answer of OpenAI's Responses may continue after a text of the assistant, so a message of the AI SDK that ends with
// one stays in the tail, with all its steps, until another role speaks.
func TestAMessageOfSeveralStepsIsCoveredAsAWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.appendAs(session.OpenAIResponses, at, []byte(said(session.OpenAIResponses, "user", "Find out why the tests fail.")))
	w.appendAs(session.AISDK, at, []byte(uiMessages(steps(3), 3)[0]))
	last := strings.TrimSuffix(uiMessages(steps(2), 2)[0], "]}") + `,{"type":"step-start"},{"type":"text","text":"They read one file."}]}`
	w.appendAs(session.AISDK, at, []byte(last))
	if p := w.propose(at, compactor.Request{Cause: compactor.CausePreview}); p.FailedOpen != nil || p.Made.Through != 2 {
		t.Fatalf("through message %d, failed %v", p.Made.Through, p.FailedOpen)
	}
	w.work(jobs.Config{})
	w.appendAs(session.OpenAIResponses, at, []byte(said(session.OpenAIResponses, "user", "Thanks.")))
	w.compactNow(at)
	found, err := w.store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	w.checkResults(at, found)
	w.checkView(at, found)
}

// To be divided costs a message a few tokens for each step.
func TestMessagesAreNotDividedForLessThanThatCosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const small = `"package app"`
	for name, c := range map[string]struct {
		oldest  string
		changes bool
	}{
		"a large result can leave": {steps(4)[3].result, true},
		"a small result can leave": {`"` + strings.Repeat("package app, ", 40) + `"`, false},
	} {
		at := w.session(name)
		w.appendAs(session.AISDK, at, []byte(said(session.AISDK, "user", "Find out why the tests fail.")))
		list := []step{{0, c.oldest}}
		for n := range 240 {
			list = append(list, step{n + 1, small})
		}
		for _, body := range uiMessages(list, 12) {
			w.appendAs(session.AISDK, at, []byte(body))
		}
		w.set(at, func(p *policy.Policy) {
			p.Summarise.Enabled, p.Truncate.Enabled, p.Whitespace.Enabled = false, false, false
			p.Dedupe.Enabled = false
			p.Target, p.Trim.MinTokens = 0.1, 1
		})
		p := w.propose(at, compactor.Request{Cause: compactor.CausePreview})
		if p.Changed != c.changes || !p.Plan.Changed() || p.Changed != (p.Saved() > 0) {
			t.Errorf("%s: the view is changed (%t) to save %d tokens, the plan is %t", name, p.Changed, p.Saved(), p.Plan.Changed())
		}
	}
}
