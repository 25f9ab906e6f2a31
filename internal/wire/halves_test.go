package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// halfBodies are messages with %s in a text, a result, arguments, a key or a name.
var halfBodies = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"user","content":"a%sb"}`,
		`{"role":"user","content":[{"type":"text","text":"%s"}]}`,
		`{"role":"assistant","reasoning_content":"%s","content":"a"}`,
		`{"role":"assistant","content":"a%s","refusal":"%[1]s"}`,
	},
	session.OpenAIResponses: {
		`{"role":"user","content":"a%s"}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%s"}]}`,
	},
	session.Anthropic: {
		`{"role":"user","content":"a%s"}`,
		`{"role":"user","content":[{"type":"document","title":"%s","source":{"type":"text","media_type":"text/plain","data":"a%[1]s"}}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"%s","citations":[{"type":"web_search_result_location","title":"%[1]s","url":"u","cited_text":"c","encrypted_index":"e"}]}]}`,
	},
	session.Gemini: {
		`{"role":"user","parts":[{"text":"a%s"}]}`,
		`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo=","displayName":"%s"}}]}`,
	},
	session.AISDK: {
		`{"id":"m","role":"user","parts":[{"type":"text","text":"a%s"}]}`,
		`{"id":"m","role":"assistant","parts":[{"type":"text","text":"b"},{"type":"source-url","sourceId":"s","url":"u","title":"%s"}]}`,
		`{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","state":"output-available","input":{"%s":"%[1]s"},"output":{"%[1]s":["%[1]s"]}}]}`,
	},
}

// halfCalls are a call and its result with %s in what they say. In OpenAI's formats arguments are JSON in a text.
var halfCalls = map[session.Format][2]string{
	session.OpenAIChat: {
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\ud83d\",\"\u005cuD83Dk\":[\"\\\u0075DfFf\"]}"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"%s"}`},
	session.OpenAIResponses: {
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":\"\\ud83d\"}"}`,
		`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"%s"}]}`},
	session.Anthropic: {
		`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"%s":"%[1]s"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"%s"}]}]}`},
	session.Gemini: {
		`{"role":"model","parts":[{"functionCall":{"name":"f","args":{"%s":"%[1]s"}},"thoughtSignature":"c2ln"}]}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"%s":"%[1]s"}}}]}`},
	session.AISDK: {},
}

var halfFixtures = makeHalfFixtures()

// makeHalfFixtures makes a list that keeps V-T1, with a whole pair, and lists that break it, of all messages.
func makeHalfFixtures() map[session.Format][]fixture {
	made := map[session.Format][]fixture{}
	for f, bodies := range halfBodies {
		before := slices.Clone(halfBodies[f][:1])
		before[0] = fmt.Sprintf(before[0], "said")
		for i, body := range bodies {
			pair := slices.Concat(before, []string{fmt.Sprintf(body, `\ud83d\ude00 \\ud83d`)}, before)
			half := slices.Concat(before, []string{fmt.Sprintf(body, `\ud83d`)}, before)
			if f == session.AISDK {
				pair[2] = strings.Replace(pair[2], `"m"`, `"n"`, 1)
				half[2] = pair[2]
			}
			made[f] = append(made[f],
				fixture{"V-T1", fmt.Sprint("a pair in message ", i), Options{}, pair, nil},
				fixture{"V-T1", fmt.Sprint("half in message ", i), Options{}, half, []string{"V-T1 1"}})
		}
	}
	return made
}

// TestHalfOfASurrogatePairNeverLeaves renders views with halves in every spelling and place.
func TestHalfOfASurrogatePairNeverLeaves(t *testing.T) {
	t.Parallel()
	for f, bodies := range halfBodies {
		user := fmt.Sprintf(bodies[0], "u")
		for _, half := range []string{`\ud83d`, `\uD83D`, `\uDe00`, `\udFFF`, `\ud83d\ud83d\ude00`, `\ude00\ud83d`} {
			var lists [][]string
			for _, body := range bodies {
				lists = append(lists, []string{user, fmt.Sprintf(body, half), user})
			}
			if f == session.OpenAIChat {
				lists = append(lists, []string{user, fmt.Sprintf(`{"role":"user","name":"a%s","content":"b"}`, half), user})
			}
			if calls := halfCalls[f]; calls[0] != "" {
				call := calls[0]
				if !fromOpenAI(f) {
					call = fmt.Sprintf(call, half)
				}
				lists = append(lists, []string{user, call, fmt.Sprintf(calls[1], half), user})
			}
			for _, list := range lists {
				checkHalves(t, f, list)
			}
		}
	}
}

func checkHalves(t *testing.T, f session.Format, list []string) {
	t.Helper()
	view := storedAs(f, list)
	inspected, accepted := NewFastValidator(f), NewFastValidator(f)
	for i := range view {
		shape := ShapeOfBody(f, view[i].Body)
		inspected.Add(&shape)
		facts, err := Accept(f, view[i].Body)
		if err != nil {
			t.Fatal(err)
		}
		shape = ShapeOf(f, &facts)
		accepted.Add(&shape)
		view[i].Flags = facts.Flags // as it is stored with
	}
	if inspected.Valid("") || accepted.Valid("") {
		t.Errorf("%s: the view is sent as it is stored: %s", f, list)
	}
	for _, target := range session.Formats() {
		made := rendered(target, view, Options{})
		isHalf := func(r Repair) bool { return r.Kind == "half_replaced" }
		if !slices.ContainsFunc(made.Repairs, isHalf) {
			t.Errorf("%s to %s: no repair is listed of %s", f, target, list)
		}
		for _, body := range made.Bodies {
			if len(whole(target, body)) != len(body) || len(rawjson.Whole(body)) != len(body) {
				t.Errorf("%s to %s: half is left: %s", f, target, body)
			}
		}
	}
}

// TestATextThatIsNoJSONMayWriteAHalf has an escape sequence as a text: it is the text of a program, and stays.
func TestATextThatIsNoJSONMayWriteAHalf(t *testing.T) {
	t.Parallel()
	for f, body := range map[session.Format]string{
		session.OpenAIChat:      `{"role":"user","content":"\\ud83d \u005cud83d \ud83d\ude00"}`,
		session.OpenAIResponses: `{"type":"custom_tool_call","call_id":"c","name":"patch","input":"{\"a\":\"\\ud83d\"}"}`,
		session.Anthropic:       `{"role":"user","content":"\\ud83d \u00e9"}`,
	} {
		if made := rendered(f, storedAs(f, []string{body}), Options{}); string(made.Bodies[0]) != body {
			t.Errorf("%s is %s", body, made.Bodies[0])
		}
	}
}
