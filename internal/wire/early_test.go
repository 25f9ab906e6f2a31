package wire_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// toolTalk has the messages of a talk with a tool in one format: u the user's, a and b calls, A and B their results, w
// the assistant's words.
type toolTalk struct {
	f    session.Format
	said map[rune]string
}

var toolTalks = map[string]toolTalk{
	"openai-chat": {session.OpenAIChat, map[rune]string{
		'u': `{"role":"user","content":"go"}`,
		'a': `{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		'b': `{"role":"assistant","content":null,"tool_calls":[{"id":"call_b","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
		'A': `{"role":"tool","tool_call_id":"call_a","content":"ra"}`,
		'B': `{"role":"tool","tool_call_id":"call_b","content":"rb"}`,
		'w': `{"role":"assistant","content":"done"}`,
	}},
	"openai-responses": {session.OpenAIResponses, map[rune]string{
		'u': `{"role":"user","content":"go"}`,
		'a': `{"type":"function_call","call_id":"call_a","name":"f","arguments":"{}"}`,
		'b': `{"type":"function_call","call_id":"call_b","name":"g","arguments":"{}"}`,
		'A': `{"type":"function_call_output","call_id":"call_a","output":"ra"}`,
		'B': `{"type":"function_call_output","call_id":"call_b","output":"rb"}`,
		'w': `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`,
	}},
	"anthropic": {session.Anthropic, map[rune]string{
		'u': `{"role":"user","content":"go"}`,
		'a': `{"role":"assistant","content":[{"type":"tool_use","id":"call_a","name":"f","input":{}}]}`,
		'b': `{"role":"assistant","content":[{"type":"tool_use","id":"call_b","name":"g","input":{}}]}`,
		'A': `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_a","content":"ra"}]}`,
		'B': `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_b","content":"rb"}]}`,
		'w': `{"role":"assistant","content":"done"}`,
	}},
	"gemini, by id": {session.Gemini, map[rune]string{
		'u': `{"role":"user","parts":[{"text":"go"}]}`,
		'a': `{"role":"model","parts":[{"functionCall":{"id":"call_a","name":"f","args":{}},"thoughtSignature":"c2ln"}]}`,
		'b': `{"role":"model","parts":[{"functionCall":{"id":"call_b","name":"g","args":{}},"thoughtSignature":"c2ln"}]}`,
		'A': `{"role":"user","parts":[{"functionResponse":{"id":"call_a","name":"f","response":{"output":"ra"}}}]}`,
		'B': `{"role":"user","parts":[{"functionResponse":{"id":"call_b","name":"g","response":{"output":"rb"}}}]}`,
		'w': `{"role":"model","parts":[{"text":"done"}]}`,
	}},
	"gemini, by name": {session.Gemini, map[rune]string{
		'u': `{"role":"user","parts":[{"text":"go"}]}`,
		'a': `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}]}`,
		'b': `{"role":"model","parts":[{"functionCall":{"name":"g","args":{}},"thoughtSignature":"c2ln"}]}`,
		'A': `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"ra"}}}]}`,
		'B': `{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":"rb"}}}]}`,
		'w': `{"role":"model","parts":[{"text":"done"}]}`,
	}},
}

func (x *toolTalk) view(talk string) []wire.Stored {
	var bodies [][]byte
	for _, m := range talk {
		bodies = append(bodies, []byte(x.said[m]))
	}
	return stored(x.f, bodies)
}

// TestAResultThatStandsBeforeItsCallIsMovedBehindIt renders what finding C-03 had, and the same in its order.
func TestAResultThatStandsBeforeItsCallIsMovedBehindIt(t *testing.T) {
	t.Parallel()
	for name, x := range toolTalks {
		for _, c := range []struct{ early, inOrder string }{
			{"uAaw", "uaAw"},
			{"uAau", "uaAu"},
			{"uAa", "uaA"},
			{"uAabBw", "uaAbBw"},
			{"uABabw", "uaAbBw"},
			{"uBabAw", "uabBAw"},
			{"uBaAbw", "uaAbBw"},
		} {
			for _, target := range session.Formats() {
				got, want := wiretest.Render(target, x.view(c.early), wire.Options{}), wiretest.Render(target, x.view(c.inOrder), wire.Options{})
				if target != session.AISDK && !slices.EqualFunc(got.Bodies, want.Bodies, bytes.Equal) {
					t.Errorf("%s, %s in %s:\n%s\nwant\n%s", name, c.early, target, bytes.Join(got.Bodies, []byte("\n")), bytes.Join(want.Bodies, []byte("\n")))
				}
				if text := string(bytes.Join(got.Bodies, nil)); strings.Contains(text, "not in this conversation") || strings.Contains(text, "is lost") {
					t.Errorf("%s, %s in %s: the model is told that a result is lost: %s", name, c.early, target, text)
				}
				if kinds := repairKinds(got.Repairs); !slices.Contains(kinds, "result_moved") || slices.Contains(kinds, "orphan_result") {
					t.Errorf("%s, %s in %s: repairs %v", name, c.early, target, got.Repairs)
				}
			}
		}
	}
}

// TestAResultWaitsForACallOnlyWhereNoOtherCallIsItsOwn says what happens to results whose call is not behind them.
func TestAResultWaitsForACallOnlyWhereNoOtherCallIsItsOwn(t *testing.T) {
	t.Parallel()
	for name, x := range toolTalks {
		for talk, want := range map[string][]string{
			"uAaAw":  {"orphan_result"},                       // the call has its own result
			"uAuawu": {"orphan_result", "result_synthesized"}, // the user spoke: ids repeat
			"uaAAau": {"orphan_result", "result_synthesized"}, // a second result of the first call
			"uAAaw":  {"orphan_result", "result_moved"},       // the nearest result is that of the call
		} {
			for _, target := range session.Formats() {
				made := wiretest.Render(target, x.view(talk), wire.Options{})
				kinds := repairKinds(made.Repairs)
				kinds = slices.DeleteFunc(kinds, func(kind string) bool {
					return !slices.Contains([]string{"orphan_result", "result_synthesized", "result_moved"}, kind)
				})
				if slices.Sort(kinds); !slices.Equal(kinds, want) {
					t.Errorf("%s, %s in %s: repairs %v, want %v", name, talk, target, kinds, want)
				}
			}
		}
	}
}

// TestAFastValidatorAcceptsNoResultBeforeItsCall moves a result of a conversation in front of its call, over every
// checkpoint.
func TestAFastValidatorAcceptsNoResultBeforeItsCall(t *testing.T) {
	t.Parallel()
	moved := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 63))
		f := session.Formats()[rng.IntN(4)]
		view := stored(f, compacttest.Session(rng, f, compacttest.Options{Messages: 8, ResultTokens: 5}))
		for i := 1; i < len(view); i++ {
			call, result := wire.ShapeOfBody(f, view[i-1].Body), wire.ShapeOfBody(f, view[i].Body)
			if len(call.Calls) == 0 || !slices.Contains(call.Calls, strings.Join(result.Answers, "")) {
				continue
			}
			if slices.ContainsFunc(view[:i-1], func(m wire.Stored) bool {
				before := wire.ShapeOfBody(f, m.Body)
				return slices.Contains(before.Calls, result.Answers[0])
			}) {
				continue // a result of a name that was called before waits for no other call
			}
			moved++
			early := slices.Clone(view)
			early[i-1], early[i] = view[i], view[i-1]
			for checkpoint := range len(view) + 1 {
				if validated(f, early, checkpoint).Valid("") {
					t.Fatalf("seed %d, checkpoint at %d: called valid:\n%s", seed, checkpoint, show(early))
				}
			}
			for _, target := range session.Formats() {
				made := wiretest.Render(target, early, wire.Options{})
				if !slices.Contains(repairKinds(made.Repairs), "result_moved") {
					t.Fatalf("seed %d, %s: %v\n%s", seed, target, made.Repairs, show(early))
				}
				for _, v := range wiretest.Validate(target, made.Bodies, wire.Options{}) {
					t.Errorf("seed %d, %s: %+v", seed, target, v)
				}
			}
		}
	}
	if moved < 100 {
		t.Errorf("only %d results were moved", moved)
	}
}

func repairKinds(repairs []wire.Repair) (kinds []string) {
	for _, r := range repairs {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}
