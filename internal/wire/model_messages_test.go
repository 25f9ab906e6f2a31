package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// modelMessages are what convertToModelMessages of the package ai returns.
var modelMessages = []string{
	`{"role":"system","content":"be brief"}`,
	`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","image":"iVBORw0KGgo=","mediaType":"image/png"},{"type":"file","data":"https://a.b/c.pdf","mediaType":"application/pdf","filename":"c.pdf"}]}`,
	`{"role":"assistant","content":[{"type":"reasoning","text":"hm","providerOptions":{"anthropic":{"signature":"SIG"}}},{"type":"text","text":"I look"},{"type":"tool-call","toolCallId":"c1","toolName":"read","input":{"path":"a"},"providerOptions":{"google":{"thoughtSignature":"GSIG"}}},{"type":"tool-call","toolCallId":"c2","toolName":"list","input":{}}]}`,
	`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"read","output":{"type":"json","value":{"lines":3}}},{"type":"tool-result","toolCallId":"c2","toolName":"list","output":{"type":"error-text","value":"no such folder"}}]}`,
	`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"s1","toolName":"web_search","input":{"q":"x"},"providerExecuted":true},{"type":"tool-result","toolCallId":"s1","toolName":"web_search","output":{"type":"json","value":[{"url":"https://d.e"}]}},{"type":"text","text":"found"}]}`,
	`{"role":"user","content":"remove it"}`,
	`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c3","toolName":"rm","input":{"path":"a"}},{"type":"tool-approval-request","approvalId":"ap1","toolCallId":"c3"}]}`,
	`{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"ap1","approved":false,"reason":"too risky"}]}`,
	`{"role":"user","content":"then not"}`,
}

func TestModelMessagesAreReadInEveryFormat(t *testing.T) {
	t.Parallel()
	view := storedOf(session.AISDK, modelMessages)
	for target, wanted := range map[session.Format][]string{
		session.AISDK: {
			`"parts":[{"type":"text","text":"look"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="},{"type":"file","mediaType":"application/pdf","url":"https://a.b/c.pdf","filename":"c.pdf"}]`,
			`{"type":"reasoning","text":"hm","providerMetadata":{"anthropic":{"signature":"SIG"}}}`,
			`"type":"tool-read","toolCallId":"c1","input":{"path":"a"},"state":"output-available","output":{"lines":3},"callProviderMetadata":{"google":{"thoughtSignature":"GSIG"}}`,
			`"type":"tool-list","toolCallId":"c2","input":{},"state":"output-error","errorText":"no such folder"`,
			`"type":"tool-web_search","toolCallId":"s1","input":{"q":"x"},"state":"output-available","output":[{"url":"https://d.e"}],"providerExecuted":true`,
			`the user denied the call`,
		},
		session.Anthropic: {
			`{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}}`, `"tool_use_id":"c1"`, `"is_error":true`, `the user denied the call`,
			`{"type":"thinking","thinking":"hm","signature":"SIG"}`,
		},
		session.OpenAIChat:      {`"tool_call_id":"c1","content":"{\"lines\":3}"`, `"name":"read","arguments":"{\"path\":\"a\"}"`, `[Error] no such folder`, `the user denied the call`},
		session.OpenAIResponses: {`"call_id":"c1","output":"{\"lines\":3}"`, `"name":"read"`, `the user denied the call`},
		session.Gemini:          {`"functionCall":{"id":"c1","name":"read","args":{"path":"a"}},"thoughtSignature":"GSIG"`, `the user denied the call`},
	} {
		made := wiretest.Render(target, view, wire.Options{})
		text := string(bytes.Join(made.Bodies, []byte("\n")))
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s:\n%s", target, want, text)
			}
		}
		for _, v := range wiretest.Validate(target, made.Bodies, wire.Options{}) {
			t.Errorf("%s: message %d breaks %s: %s\n%s", target, v.Message, v.Rule, v.Detail, made.Bodies[v.Message])
		}
		if strings.Contains(text, "lost") || strings.Contains(text, "not in this conversation") || strings.Contains(text, `"call"`) {
			t.Errorf("%s: a call or its result is not known:\n%s", target, text)
		}
		if err := same(made.Bodies, wiretest.Render(target, stored(target, made.Bodies), wire.Options{})); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// TestACallThatWaitsForApprovalStaysSo has the last call of a session, which the user has not been heard about, or has
// approved.
func TestACallThatWaitsForApprovalStaysSo(t *testing.T) {
	t.Parallel()
	asked := modelMessages[:7]
	approved := append(asked[:7:7], `{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"ap1","approved":true}]}`)
	for want, bodies := range map[string][]string{
		`"state":"approval-requested","approval":{"id":"ap1"}`:                 asked,
		`"state":"approval-responded","approval":{"id":"ap1","approved":true}`: approved,
	} {
		made := wiretest.Render(session.AISDK, storedOf(session.AISDK, bodies), wire.Options{})
		if last := string(made.Bodies[len(made.Bodies)-1]); !strings.Contains(last, want) {
			t.Errorf("lacks %s: %s", want, last)
		}
		for _, v := range wiretest.Validate(session.AISDK, made.Bodies, wire.Options{}) {
			t.Errorf("%v", v)
		}
	}
}

// TestAUIMessageThatWaitsForApprovalIsNotLost has each state of a call without a result, and what is said of it where
// the conversation went on.
func TestAUIMessageThatWaitsForApprovalIsNotLost(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		`"state":"approval-requested","approval":{"id":"a"}`:                  "waits for the user's approval",
		`"state":"approval-responded","approval":{"id":"a","approved":true}`:  "the user approved the call",
		`"state":"approval-responded","approval":{"id":"a","approved":false}`: "the user denied the call",
		`"state":"input-available"`:                                           "lost",
	} {
		bodies := []string{`{"id":"1","role":"user","parts":[{"type":"text","text":"u"}]}`,
			`{"id":"2","role":"assistant","parts":[{"type":"tool-rm","toolCallId":"c","input":{},` + state + `}]}`,
			`{"id":"3","role":"user","parts":[{"type":"text","text":"and?"}]}`}
		for _, target := range session.Formats() {
			made := wiretest.Render(target, storedOf(session.AISDK, bodies), wire.Options{})
			if text := string(bytes.Join(made.Bodies, nil)); !strings.Contains(text, want) {
				t.Errorf("%s, %s: lacks %q: %s", state, target, want, text)
			}
		}
	}
}

// TestASecondResultSaysWhatItIs has a result of a call that has one.
func TestASecondResultSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for from, bodies := range called {
		call, result := strings.Replace(bodies[1], `"C"`, `"c"`, 1), strings.Replace(bodies[2], `"R"`, `"c"`, 1)
		for _, target := range session.Formats() {
			made := wiretest.Render(target, storedOf(from, []string{bodies[0], call, result, bodies[0], result}), wire.Options{})
			text := string(bytes.Join(made.Bodies, nil))
			if !strings.Contains(text, "Another result of a tool call that has one: c") || strings.Contains(text, "not in this conversation") {
				t.Errorf("%s in %s: %s", from, target, text)
			}
		}
	}
}
