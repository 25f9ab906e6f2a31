package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestContentThatIsNeitherTextNorArrayIsShownAsText renders what programs that hand a tool's object through leave
// behind.
func TestContentThatIsNeitherTextNorArrayIsShownAsText(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		format session.Format
		log    []string
	}{
		{"the user's content is an object", session.OpenAIChat, []string{`{"role":"user","content":{"o":"kept"}}`}},
		{"the user's content is a number", session.OpenAIResponses, []string{`{"role":"user","content":[{"type":"input_text","text":"kept"}]}`, `{"role":"user","content":42}`}},
		{"a result is an object", session.Anthropic, []string{`{"role":"user","content":"go"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":{"o":"kept"}}]}`}},
		{"an item's output is an object", session.OpenAIResponses, []string{`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c1","output":{"o":"kept"}}`}},
		{"an item's output is null", session.OpenAIResponses, []string{`{"type":"function_call","call_id":"c1","name":"kept","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c1","output":null}`}},
		{"a result of no call is an object", session.OpenAIResponses, []string{`{"type":"function_call_output","call_id":"c1","output":{"o":"kept"}}`}},
		{"a result of no call is an object, in Chat Completions", session.OpenAIChat, []string{`{"role":"user","content":"go"}`, `{"role":"tool","tool_call_id":"c1","content":{"o":"kept"}}`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			view := storedOf(c.format, c.log)
			validator := wire.NewFastValidator(c.format)
			for i := range view {
				shape := wire.ShapeOfBody(c.format, view[i].Body)
				validator.Add(&shape)
			}
			if validator.Valid("") {
				t.Error("the view is served as it is stored")
			}
			for _, target := range session.Formats() {
				made := bytes.Join(wiretest.Render(target, view, wire.Options{}).Bodies, []byte("\n"))
				if !bytes.Contains(made, []byte("kept")) {
					t.Errorf("%s: what was said is gone:\n%s", target, made)
				}
				for _, refused := range []string{`"content":{`, `"content":4`, `"output":{"o"`, `"output":null`, `[{"o"`} {
					if bytes.Contains(made, []byte(refused)) && target == c.format {
						t.Errorf("%s: %s is refused:\n%s", target, refused, made)
					}
				}
			}
		})
	}
}

// TestNamesOfToolsFromOtherFormatsAreCutForTheResponsesAPI renders calls of providers that take longer names.
func TestNamesOfToolsFromOtherFormatsAreCutForTheResponsesAPI(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 140)
	for format, call := range map[session.Format]string{
		session.OpenAIChat: `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"` + long + `","arguments":"{}"}}]}`,
		session.Anthropic:  `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"` + long + `","input":{}}]}`,
		session.Gemini:     `{"role":"model","parts":[{"functionCall":{"name":"` + long + `","args":{}}}]}`,
		session.AISDK:      `{"id":"m1","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"` + long + `","toolCallId":"c1","state":"output-available","input":{},"output":"x"}]}`,
	} {
		made := wiretest.Render(session.OpenAIResponses, storedOf(format, []string{call}), wire.Options{})
		if found := wiretest.Validate(session.OpenAIResponses, made.Bodies, wire.Options{}); len(found) > 0 {
			t.Errorf("%s: %s: %s", format, found[0].Rule, found[0].Detail)
		}
	}
}

// TestTheNameOfAnImageIsShownToAnthropic keeps what its block has no member for.
func TestTheNameOfAnImageIsShownToAnthropic(t *testing.T) {
	t.Parallel()
	view := storedOf(session.AISDK, []string{`{"id":"m1","role":"user","parts":[{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo=","filename":"a plan.png"}]}`})
	made := bytes.Join(wiretest.Render(session.Anthropic, view, wire.Options{}).Bodies, nil)
	if want := `{"type":"text","text":"[image a plan.png]"},{"type":"image"`; !bytes.Contains(made, []byte(want)) {
		t.Errorf("%s, without %s", made, want)
	}
}

func storedOf(f session.Format, log []string) []wire.Stored {
	view := make([]wire.Stored, len(log))
	for i := range log {
		view[i] = wire.Stored{Format: f, Body: []byte(log[i]), Seq: int64(i + 1)}
	}
	return view
}

// TestBlankTextsOfAResultAreLeftOutForAnthropic says a result of another format without the block that says nothing.
func TestBlankTextsOfAResultAreLeftOutForAnthropic(t *testing.T) {
	t.Parallel()
	view := storedOf(session.OpenAIResponses, []string{`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":" \n"},{"type":"input_text","text":"said"}]}`})
	made := bytes.Join(wiretest.Render(session.Anthropic, view, wire.Options{}).Bodies, nil)
	if want := `"content":[{"type":"text","text":"said"}]`; !bytes.Contains(made, []byte(want)) {
		t.Errorf("%s, without %s", made, want)
	}
}

// TestAnOutputOfAnotherFormThanItsCallIsNotServedAsItIs has a custom tool's call answered as a function's, and the
// other way.
func TestAnOutputOfAnotherFormThanItsCallIsNotServedAsItIs(t *testing.T) {
	t.Parallel()
	const (
		function, custom             = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, `{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"}`
		functionOutput, customOutput = `{"type":"function_call_output","call_id":"c","output":"y"}`, `{"type":"custom_tool_call_output","call_id":"c","output":"y"}`
	)
	for _, c := range []struct {
		call, output string
		checkpoint   int
		sound        bool
	}{
		{function, functionOutput, 0, true}, {custom, customOutput, 0, true}, {function, customOutput, 0, false}, {custom, functionOutput, 0, false},
		{function, functionOutput, 1, true}, {custom, functionOutput, 1, false}, {function, customOutput, 1, false}, {custom, customOutput, 2, true},
	} {
		if got := validated(session.OpenAIResponses, storedOf(session.OpenAIResponses, []string{c.call, c.output}), c.checkpoint).Valid(""); got != c.sound {
			t.Errorf("%s, %s behind checkpoint %d: %t", c.call, c.output, c.checkpoint, got)
		}
	}
}

// TestMarksForTheCacheAreCountedWhereverTheyStand has five of them, one in a message that begins in another format and
// one in a result that is written anew.
func TestMarksForTheCacheAreCountedWhereverTheyStand(t *testing.T) {
	t.Parallel()
	const mark = `"cache_control":{"type":"ephemeral"}`
	marked := `{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x",`+mark+`},`, 3) + `{"type":"text","text":"y",` + mark + `}]}`
	for name, log := range map[string][]wire.Stored{
		"a message of two formats": {
			{Format: session.Gemini, Body: []byte(`{"role":"model","parts":[{"text":"first"}]}`)},
			{Format: session.Anthropic, Body: []byte(`{"role":"assistant","content":[{"type":"text","text":"then",` + mark + `}]}`)},
		},
		"a result without an id": {
			{Format: session.Anthropic, Body: []byte(`{"role":"assistant","content":[{"type":"tool_use","id":"","name":"f","input":{}}]}`)},
			{Format: session.Anthropic, Body: []byte(`{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"r",` + mark + `}]}]}`)},
		},
	} {
		view := append(append(storedOf(session.Anthropic, []string{`{"role":"user","content":"go"}`}), log...), storedOf(session.Anthropic, []string{marked})...)
		made := wiretest.Render(session.Anthropic, view, wire.Options{})
		for _, v := range wiretest.Validate(session.Anthropic, made.Bodies, wire.Options{}) {
			t.Errorf("%s: %s: %s", name, v.Rule, v.Detail)
		}
	}
}

// TestMarksInABlockThatNobodyReadsAreCounted has five marks inside a block, and no others.
func TestMarksInABlockThatNobodyReadsAreCounted(t *testing.T) {
	t.Parallel()
	texts := strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5)
	view := storedOf(session.Anthropic, []string{`{"role":"user","content":[{"type":"search_result","source":"s","title":"t",` +
		`"content":[` + strings.TrimSuffix(texts, ",") + `]}]}`})
	if len(wiretest.Validate(session.Anthropic, [][]byte{view[0].Body}, wire.Options{})) == 0 {
		t.Fatal("the view breaks no rule as it is")
	}
	made := wiretest.Render(session.Anthropic, view, wire.Options{})
	for _, v := range wiretest.Validate(session.Anthropic, made.Bodies, wire.Options{}) {
		t.Errorf("%s: %s", v.Rule, v.Detail)
	}
}

// TestAStepBehindAnOpenCallIsTheLastOne has an AI SDK message that ends with a text, and a call without a result in the
// step before: the view does not end with the result that is made for the call.
func TestAStepBehindAnOpenCallIsTheLastOne(t *testing.T) {
	t.Parallel()
	body := `{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"type":"dynamic-tool","toolName":"f","toolCallId":"a","state":"input-available","input":{}},` +
		`{"type":"step-start"},{"type":"text","text":"Wait."}]}`
	view := storedOf(session.AISDK, []string{`{"id":"u","role":"user","parts":[{"type":"text","text":"go"}]}`, body})
	for _, pending := range []wire.Pending{wire.KeepPending, wire.SynthesizePending, wire.DropPending} {
		for _, model := range []string{"", "mistral-large-latest", "claude-opus-4-6", "gpt-5", "gemini-2.5-pro"} {
			o := wire.Options{Model: model, Pending: pending}
			made := wiretest.Render(session.AISDK, view, o)
			for _, v := range wiretest.Validate(session.AISDK, made.Bodies, o) {
				t.Errorf("%s, %s: %s: %s in %s", model, pending, v.Rule, v.Detail, made.Bodies)
			}
		}
	}
}

// TestContentsThatGeminiWantsAsOneAreARepair joins what the model said in two contents, and says so.
func TestContentsThatGeminiWantsAsOneAreARepair(t *testing.T) {
	t.Parallel()
	view := storedOf(session.Gemini, []string{`{"role":"user","parts":[{"text":"go"}]}`, `{"role":"model","parts":[{"text":"one"}]}`,
		`{"role":"model","parts":[{"text":"two"}]}`, `{"role":"user","parts":[{"text":"on"}]}`})
	made := wiretest.Render(session.Gemini, view, wire.Options{})
	if len(made.Bodies) != 3 || len(made.Repairs) != 2 || made.Repairs[1].Kind != "contents_joined" || made.Repairs[1].Seq != 3 {
		t.Errorf("%s, repairs %+v", made.Bodies, made.Repairs)
	}
}
