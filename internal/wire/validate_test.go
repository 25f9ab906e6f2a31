package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

type validateCase struct {
	name   string
	bodies []string
	want   []string // "rule message"
}

func testValidate(t *testing.T, f session.Format, cases []validateCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, v := range Validate(f, bytesOf(c.bodies)) {
				got = append(got, fmt.Sprint(v.Rule, " ", v.Message))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateOpenAIChat(t *testing.T) {
	t.Parallel()
	const (
		system = `{"role":"system","content":"s"}`
		user   = `{"role":"user","content":"u"}`
		done   = `{"role":"assistant","content":"done"}`
	)
	calls := func(ids ...string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"` + strings.Join(ids, `"},{"id":"`) + `"}]}`
	}
	tool := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"r"}` }
	testValidate(t, session.OpenAIChat, []validateCase{
		{"calls and results in any order inside a unit are right", []string{system, system, user, calls("a", "b"), tool("b"), tool("a"), done}, nil},
		{"ids repeat", []string{calls("a", "a"), tool("a"), tool("a"), calls("a"), tool("a")}, nil},
		{"the last unit may be in flight", []string{user, calls("a", "b"), tool("a")}, nil},
		{"V-C1: a call without a result before another role", []string{calls("a", "b"), tool("a"), user, done}, []string{"V-C1 0"}},
		{"V-C1: and its late result answers nothing", []string{calls("a"), user, tool("a")}, []string{"V-C1 0", "V-C2 2"}},
		{"V-C2: a result without a call", []string{user, tool("a"), done}, []string{"V-C2 1"}},
		{"V-C2: a second result", []string{calls("a"), tool("a"), tool("a")}, []string{"V-C2 2"}},
		{"V-C3: an assistant message needs content or calls", []string{user, `{"role":"assistant","content":null}`}, []string{"V-C3 1"}},
		{"V-C3: an empty string is content", []string{`{"role":"assistant","content":""}`}, nil},
		{"V-C3: an array has a part", []string{`{"role":"assistant","content":[]}`, calls("a"), `{"role":"tool","tool_call_id":"a","content":[]}`}, []string{"V-C3 0", "V-C3 2"}},
		{"V-C3: a result is text", []string{calls("a", "b"), `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url"}]}`,
			`{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"x"}]}`}, []string{"V-C3 1"}},
		{"legacy calls are paired", []string{`{"role":"assistant","function_call":{"name":"f"}}`, `{"role":"function","name":"f","content":"r"}`, user}, nil},
		{"a message that cannot be read is named", []string{user, `{"role":7}`}, []string{"inspect 1"}},
		{"nothing is right", nil, nil},
	})
}

func TestValidateAnthropic(t *testing.T) {
	t.Parallel()
	const (
		system = `{"role":"system","content":"s"}`
		user   = `{"role":"user","content":"u"}`
		done   = `{"role":"assistant","content":"done"}`
	)
	use := func(ids ...string) string {
		return `{"role":"assistant","content":[{"type":"tool_use","id":"` + strings.Join(ids, `"},{"type":"tool_use","id":"`) + `"}]}`
	}
	result := func(ids ...string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + strings.Join(ids, `"},{"type":"tool_result","tool_use_id":"`) + `"}]}`
	}
	testValidate(t, session.Anthropic, []validateCase{
		{"calls and results in any order inside a turn are right", []string{system, user, use("a", "b"), result("b", "a"), done}, nil},
		{"messages of one role are one turn", []string{user, use("a"), use("b"), result("a"), result("b"), user, done}, nil},
		{"the last unit may be in flight", []string{user, use("a", "b")}, nil},
		{"the last unit may be half answered", []string{user, use("a", "b"), result("a")}, nil},
		{"V-A1: a call without a result in the next message", []string{use("a", "b"), result("a"), done}, []string{"V-A1 0"}},
		{"V-A1: a call passed over by text", []string{use("a"), user}, []string{"V-A1 0"}},
		{"V-A2: a result without a call", []string{user, done, result("a"), done}, []string{"V-A2 2"}},
		{"V-A2: a result of a call further back", []string{use("a"), user, done, result("a")}, []string{"V-A1 0", "V-A2 3"}},
		{"V-A3: a result behind text", []string{use("a"), user, result("a")}, []string{"V-A3 2"}},
		{"V-A3: text behind the results is right", []string{use("a"), result("a"), user}, nil},
		{"V-A4: an id twice", []string{use("a"), result("a"), use("a"), result("a")}, []string{"V-A4 2"}},
		{"V-A4: two results of one call", []string{use("a"), result("a", "a")}, []string{"V-A4 1"}},
		{"V-A4: an id of other characters", []string{use("a.b"), result("a.b")}, []string{"V-A4 0"}},
		{"V-A5: an empty text block", []string{`{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"x"}]}`}, []string{"V-A5 0"}},
		{"V-A5: an empty message", []string{`{"role":"user","content":[]}`, done}, []string{"V-A5 0"}},
		{"V-A5: an empty final assistant message is right", []string{user, `{"role":"assistant","content":""}`}, nil},
		{"a message that cannot be read is named", []string{`[]`}, []string{"inspect 0"}},
	})
}

// With a search through the open calls for each answer this takes half a minute.
func TestManyCallsOfOneMessageAreValidatedInLinearTime(t *testing.T) {
	t.Parallel()
	const calls = 100_000
	messages := []Message{{Role: "user", StartsUnit: true}, {Role: "assistant", StartsUnit: true}, {Role: "user"}}
	for i := range calls {
		id := fmt.Sprint("c", i)
		messages[1].Parts = append(messages[1].Parts, Part{Kind: Call, CallID: id})
		messages[2].Parts = append(messages[2].Parts, Part{Kind: Result, CallID: id})
	}
	if found := ValidateMessages(session.Anthropic, messages); len(found) != 0 {
		t.Errorf("%d violations, the first is %v", len(found), found[0])
	}
}
