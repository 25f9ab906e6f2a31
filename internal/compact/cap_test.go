package compact

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// The picture of a result, in each format's own way.
const (
	picture          = `,{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]`
	anthropicPicture = `,{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]`
)

// shows returns a call whose result is a text of a number of characters and an image.
func shows(path string, chars int) move {
	return func(f session.Format) []string {
		content := `[{"type":"text","text":` + literal(filler(chars)) + `}`
		if f == session.OpenAIChat {
			content += picture
		} else {
			content += anthropicPicture
		}
		return then(calls("c", "Read", `{"path":"`+path+`"}`), answered("c", content))(f)
	}
}

func TestCap(t *testing.T) {
	t.Parallel()
	lines := strings.TrimSuffix(strings.Repeat("one two three four five six\n", 100), "\n")
	checkStage(t, "cap", map[string]stageCase{
		"a result over the limit is cut, one within it is not": {
			window: 1000, moves: []move{gives("Read", "a", 8000), gives("Read", "b", 3000)}, want: []string{"2.0 cap"},
		},
		"the limit may be a share of the window": {
			change: func(p *policy.Policy) { p.Cap.MaxTokens, p.Cap.MaxRatio = 0, 0.5 }, window: 1000,
			moves: []move{gives("Read", "a", 4000), gives("Read", "b", 2000)}, want: []string{"2.0 cap"},
		},
		"of a unit that is too large the largest results are cut": {
			change: func(p *policy.Policy) { p.Cap.UnitRatio = 0.3 }, window: 2000,
			moves: []move{many(700, 2100, 2100), gives("Read", "b", 2400)}, want: []string{"3.0 cap", "4.0 cap"},
		},
		"the results of several units are not added up": {
			change: func(p *policy.Policy) { p.Cap.UnitRatio = 0.5 }, window: 1000,
			moves: []move{gives("Read", "a", 2400), gives("Read", "b", 2400)},
		},
		"a result with a picture is not cut": {
			window: 1000, moves: []move{shows("a", 8000)},
		},
		"an array of texts is cut as one text": {
			window: 1000, moves: []move{
				calls("c", "Read", `{}`), answered("c", `[{"type":"text","text":`+literal(filler(8000))+`}]`),
			}, want: []string{"2.0 cap"},
		},
		"the newest messages that the policy protects are not": {
			change: func(p *policy.Policy) { p.Protect.LastMessages = 2 }, window: 1000,
			moves: []move{gives("Read", "a", 8000), gives("Read", "b", 8000)}, want: []string{"2.0 cap"},
		},
		"unless no result enters a view whole": {
			change: func(p *policy.Policy) { p.Protect.LastMessages, p.Cap.AtInsertion = 2, true }, window: 1000,
			moves: []move{gives("Read", "a", 8000), gives("Read", "b", 8000)}, want: []string{"2.0 cap", "4.0 cap"},
		},
		"a limit in bytes": {
			change: func(p *policy.Policy) { p.Cap.MaxTokens, p.Cap.MaxBytes = 0, 2000 }, window: 500,
			moves: []move{gives("Read", "a", 1900), gives("Read", "b", 2100)}, want: []string{"4.0 cap"},
		},
		"whose escapes do not count": {
			change: func(p *policy.Policy) {
				p.Cap.MaxTokens, p.Cap.MaxBytes, p.Cap.HeadChars, p.Cap.TailChars = 0, 2000, 1000, 800
			}, window: 500,
			moves: []move{returns("Read", "a", strings.Repeat(`"a" `, 525))}, want: []string{"2.0 cap"},
		},
		"a limit in lines": {
			change: func(p *policy.Policy) { p.Cap.MaxTokens, p.Cap.MaxLines = 0, 99 }, window: 500,
			moves: []move{gives("Read", "a", 3000), returns("Read", "b", lines)}, want: []string{"4.0 cap"},
		},
		"as many lines as the limit are within it": {
			change: func(p *policy.Policy) { p.Cap.MaxTokens, p.Cap.MaxLines = 0, 100 }, window: 500, moves: []move{returns("Read", "b", lines)},
		},
		"a limit of a line": {
			change: func(p *policy.Policy) { p.Cap.MaxTokens, p.Cap.MaxLineChars = 0, 200 }, window: 500,
			moves: []move{gives("Read", "a", 3000), returns("Read", "b", lines)}, want: []string{"2.0 cap"},
		},
		"at insertion a result is cut although the view is within its target": {
			change: func(p *policy.Policy) { p.Cap.AtInsertion = true }, window: 100_000, moves: []move{gives("Read", "a", 8000)}, want: []string{"2.0 cap"},
		},
	})
}

func TestWhatACapLeaves(t *testing.T) {
	t.Parallel()
	numbered := strings.Repeat("0123456789abcdefghi\n", 200) // 20 characters a line
	long := strings.Repeat("x", 300) + "\n" + strings.Repeat("short line\n", 80)
	for name, c := range map[string]struct {
		change func(*policy.Policy)
		text   string
		want   string
	}{
		"head and tail of so many characters": {
			func(p *policy.Policy) { p.Cap.HeadChars, p.Cap.TailChars = 130, 150 }, numbered,
			numbered[:130] + "|" + numbered[len(numbered)-150:],
		},
		"the head only": {
			func(p *policy.Policy) { p.Cap.HeadChars, p.Cap.TailChars = 300, 0 }, numbered, numbered[:300] + "|",
		},
		"whole lines only": {
			func(p *policy.Policy) { p.Cap.HeadChars, p.Cap.TailChars, p.Cap.WholeLines = 210, 150, true }, numbered,
			numbered[:199] + "|" + numbered[len(numbered)-140:],
		},
		"so many lines, shared like the characters": {
			func(p *policy.Policy) {
				p.Cap.MaxTokens, p.Cap.MaxLines, p.Cap.HeadChars, p.Cap.TailChars = 0, 30, 2000, 1000
			}, numbered,
			numbered[:400] + "|" + numbered[len(numbered)-200:],
		},
		"a long line is clipped and the others stay": {
			func(p *policy.Policy) {
				p.Cap.MaxTokens, p.Cap.MaxLineChars, p.Cap.HeadChars, p.Cap.TailChars = 0, 128, 1000, 1000
			}, long,
			strings.Repeat("x", 127) + "…" + strings.TrimPrefix(long, strings.Repeat("x", 300)) + "|",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := only("cap", func(p *policy.Policy) { p.Cap.MaxTokens = 400 })
			c.change(&p)
			p.Wording.Cap = "|"
			got := current(t, input(t, session.OpenAIChat, p, 500, returns("Read", "a", c.text)))[2]
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestIngestCapsAsTheStageDoes compares the cap at ingest with the cap stage, in every format.
func TestIngestCapsAsTheStageDoes(t *testing.T) {
	t.Parallel()
	for _, f := range written {
		p := only("cap", func(p *policy.Policy) { p.Cap.AtInsertion = true })
		in := input(t, f, p, 100_000, gives("Read", "a", 8000))
		plan, made, err := Run(context.Background(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := in.Tail[len(in.Tail)-1]
		for last.Seq > plan.Actions[0].Seq {
			last = in.Tail[last.Seq-2]
		}
		tool := func(*wire.Part) (string, bool) { return "Read", true }
		capped, err := CapAtIngest(&p, f, last.Seq, last.Body, tool)
		if err != nil || capped == nil {
			t.Fatalf("%s: %v, %v", f, capped, err)
		}
		if !bytes.Contains(made.Body, capped.Body) || capped.Tokens != plan.Actions[0].TokensAfter+last.Tokens-plan.Actions[0].TokensBefore {
			t.Errorf("%s: ingest makes %d tokens\n%s\nthe stage makes %+v\n%s", f, capped.Tokens, capped.Body, plan.Actions, made.Body)
		}
		if diff := cmp.Diff(plan.Results, capped.Results); diff != "" {
			t.Errorf("%s: results (-stage +ingest):\n%s", f, diff)
		}
		if again, err := CapAtIngest(&p, f, last.Seq, capped.Body, tool); again != nil || err != nil {
			t.Errorf("%s: capped twice: %v, %v", f, again, err)
		}
	}
}

// many returns a message with several calls and their results, each of a number of characters.
func many(chars ...int) move {
	return func(f session.Format) (bodies []string) {
		var calls []string
		for i := range chars {
			call := `{"type":"tool_use","id":"m%d","name":"Read","input":{}}`
			if f == session.OpenAIChat {
				call = `{"id":"m%d","type":"function","function":{"name":"Read","arguments":"{}"}}`
			}
			calls = append(calls, fmt.Sprintf(call, i))
		}
		body := `{"role":"assistant","content":[` + strings.Join(calls, ",") + `]}`
		if f == session.OpenAIChat {
			body = `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
		}
		bodies = append(bodies, body)
		for i, n := range chars {
			bodies = append(bodies, answered(fmt.Sprintf("m%d", i), literal(filler(n)))(f)...)
		}
		return bodies
	}
}
