package wire

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

// fixture is a list of messages and what is wrong with it.
type fixture struct {
	rule   string // the rule that it is about
	name   string
	o      Options
	bodies []string
	want   []string // the violations as "rule message"; nil for a valid list
}

var fixtures = map[session.Format][]fixture{
	session.OpenAIChat:      slices.Concat(chatFixtures, chatDialectFixtures, halfFixtures[session.OpenAIChat], mediaFixtures[session.OpenAIChat]),
	session.OpenAIResponses: slices.Concat(responsesFixtures, halfFixtures[session.OpenAIResponses], mediaFixtures[session.OpenAIResponses]),
	session.Anthropic:       slices.Concat(anthropicFixtures, anthropicBlockFixtures, bedrockFixtures, serverToolFixtures, halfFixtures[session.Anthropic], mediaFixtures[session.Anthropic]),
	session.Gemini:          slices.Concat(geminiFixtures, halfFixtures[session.Gemini], mediaFixtures[session.Gemini]),
	session.AISDK:           slices.Concat(aiSDKFixtures, behindFixtures, halfFixtures[session.AISDK], mediaFixtures[session.AISDK]),
}

func TestValidateFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for _, x := range fixtures[f] {
			t.Run(fmt.Sprint(f, "/", x.rule, ": ", x.name), func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(x.want, named(validated(f, bytesOf(x.bodies), x.o))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func named(found []Violation) (names []string) {
	for _, v := range found {
		names = append(names, fmt.Sprint(v.Rule, " ", v.Message))
	}
	return names
}

func TestEveryRuleHasAListThatKeepsItAndOneThatBreaksIt(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		for _, f := range r.Formats {
			keeps, breaks := 0, 0
			for _, x := range fixtures[f] {
				switch {
				case x.rule == r.Code && x.want == nil:
					keeps++
				case x.rule == r.Code && slices.ContainsFunc(x.want, func(v string) bool { return ruleOf(v) == r.Code }):
					breaks++
				}
			}
			if keeps == 0 || breaks == 0 {
				t.Errorf("%s of %s is kept by %d lists and broken by %d", r.Code, f, keeps, breaks)
			}
		}
	}
}

func ruleOf(violation string) (rule string) {
	_, _ = fmt.Sscan(violation, &rule)
	return rule
}

func TestAMessageThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		good := map[session.Format]string{session.Gemini: `{"role":"user","parts":[{"text":"u"}]}`, session.AISDK: `{"id":"m1","role":"user","parts":[]}`}[f]
		if good == "" {
			good = `{"role":"user","content":"u"}`
		}
		if diff := cmp.Diff([]string{"inspect 1"}, named(validated(f, bytesOf([]string{good, `{"role":7}`}), Options{}))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", f, diff)
		}
		if found := validated(f, nil, Options{}); found != nil {
			t.Errorf("%s: no messages are wrong: %v", f, found)
		}
	}
}

func TestWithoutBodiesOnlyWhatInspectFindsIsChecked(t *testing.T) {
	t.Parallel()
	bodies := []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":[{"type":"thinking","thinking":"no signature"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
		`{"role":"user","content":"no result"}`}
	messages := make([]Facts, len(bodies))
	for i, body := range bodies {
		var err error
		if messages[i], err = Inspect(session.Anthropic, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"V-A1 1"}, named(ValidateMessages(session.Anthropic, messages))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With a search through the open calls for each answer this takes half a minute.
func TestManyCallsOfOneMessageAreValidatedInLinearTime(t *testing.T) {
	t.Parallel()
	const calls = 100_000
	messages := []Facts{{Role: "user", StartsUnit: true}, {Role: "assistant", StartsUnit: true}, {Role: "user"}}
	messages[0].Parts = []Part{{Kind: Text}}
	for i := range calls {
		id := fmt.Sprint("c", i)
		messages[1].Parts = append(messages[1].Parts, Part{Kind: Call, CallID: id})
		messages[2].Parts = append(messages[2].Parts, Part{Kind: Result, CallID: id})
	}
	if found := ValidateMessages(session.Anthropic, messages); len(found) != 0 {
		t.Errorf("%d violations, the first is %v", len(found), found[0])
	}
}

// What no view can mend: the caller has to define tools.
var callersDuty = map[string]bool{"V-A11: calls without tools": true}

// longList has fewer messages than the lists that are about the number alone.
const longList = 1000

func TestEveryListThatBreaksARuleIsRenderedWithoutThat(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for _, x := range fixtures[f] {
			if callersDuty[x.rule+": "+x.name] {
				continue
			}
			t.Run(fmt.Sprint(f, "/", x.rule, ": ", x.name), func(t *testing.T) {
				t.Parallel()
				var view []Stored
				for i, body := range x.bodies {
					view = append(view, Stored{Format: f, Body: []byte(body), Seq: int64(i + 1)})
				}
				for _, target := range session.Formats() {
					if testing.Short() && len(view) > longList && target != f {
						continue // a hundred thousand messages take seconds, and break a rule of their own format
					}
					made := rendered(target, view, x.o).Bodies
					for _, v := range validated(target, made, x.o) {
						t.Errorf("%s: message %d breaks %s: %s\n%.300s", target, v.Message, v.Rule, v.Detail, made[v.Message])
					}
				}
			})
		}
	}
}

func TestNoListThatBreaksARuleIsCalledSound(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for _, x := range fixtures[f] {
			w := NewFastValidator(f)
			for _, body := range x.bodies {
				shape := ShapeOfBody(f, []byte(body))
				w.Add(&shape)
			}
			if x.want != nil && w.ValidFor(x.o) && x.o.Pending == "" && x.o.Author == "" && !callersDuty[x.rule+": "+x.name] {
				t.Errorf("%s/%s: %s: is called valid", f, x.rule, x.name)
			}
		}
	}
}
