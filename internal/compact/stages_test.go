package compact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// word is the user's or the assistant's word, read a call of a tool and its result of so many characters.
func word(role, text string) []string {
	return []string{fmt.Sprintf(`{"role":%q,"content":%q}`, role, text)}
}

func read(tool, path string, chars int) []string {
	return returned(tool, path, fmt.Sprintf("%q", strings.Repeat("abcdefghi ", chars/10)))
}

// returned is a call of a tool with its result as JSON.
func returned(tool, path, content string) []string {
	return append(called("c", tool, path), answered("c", content)...)
}

func called(id, tool, path string) []string {
	return []string{fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":"{\"path\":\"%s\"}"}}]}`, id, tool, path)}
}

func answered(id, content string) []string {
	return []string{fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, content)}
}

func input(t *testing.T, f session.Format, p Policy, window int, steps ...[]string) Input {
	t.Helper()
	in := Input{Format: f, Policy: p, WindowTokens: window}
	for _, step := range steps {
		for _, body := range step {
			found, err := wire.Inspect(f, []byte(body))
			if err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			in.Tail = append(in.Tail, Entry{Seq: int64(len(in.Tail) + 1), Tokens: found.Tokens, Body: []byte(body)})
		}
	}
	return in
}

// only is the default policy with one stage, nothing protected, and the measures of a small window.
func only(stage string, change func(*Policy)) Policy {
	p := DefaultPolicy()
	p.Protect.LastUnits = 0
	p.Cap.Enabled, p.Dedupe.Enabled, p.Trim.Enabled = stage == "cap", stage == "dedupe", stage == "trim"
	p.Cap.MaxTokens, p.Cap.HeadChars, p.Cap.TailChars = 1000, 500, 500
	p.Trim.HotZoneMinTokens, p.Trim.BookendMaxChars, p.Trim.BookendMinChars, p.Trim.FloorRatio = 0, 400, 200, 0
	if change != nil {
		change(&p)
	}
	return p
}

func TestStages(t *testing.T) {
	t.Parallel()
	image := `[{"type":"text","text":"` + strings.Repeat("x", 8000) + `"},{"type":"image_url","image_url":{"url":"data:"}}]`
	for name, c := range map[string]struct {
		stage  string
		change func(*Policy)
		window int
		steps  [][]string
		want   []string // seq.part do tokens before>after
	}{
		"a result over the limit is cut to its head and tail": {
			"cap", nil, 1000, [][]string{read("Read", "a", 8000), read("Read", "b", 3000)}, []string{"2.0 cap 2000>272"},
		},
		"no stage is entered while the view is within its target": {
			"cap", nil, 10_000, [][]string{read("Read", "a", 8000)}, nil,
		},
		"the newest result is capped although it is protected": {
			"cap", func(p *Policy) { p.Protect.LastUnits = 4 }, 1000, [][]string{read("Read", "a", 8000)}, []string{"2.0 cap 2000>272"},
		},
		"a listed tool is not even capped": {
			"cap", func(p *Policy) { p.Protect.Tools = []string{"Read"} }, 1000, [][]string{read("Read", "a", 8000)}, nil,
		},
		"a result with an image is not cut": {
			"cap", nil, 1000, [][]string{returned("Read", "a", image)}, nil,
		},
		"an array of texts is cut as one text": {
			"cap", nil, 1000, [][]string{returned("Read", "a", `[{"type":"text","text":"`+strings.Repeat("x", 8000)+`"}]`)}, []string{"2.0 cap 2000>272"},
		},
		"an orphan is carried as it is": {
			"cap", nil, 1000, [][]string{answered("nobody", `"`+strings.Repeat("x", 8000)+`"`)}, nil,
		},
		"a result whose calls are in flight beside it waits": {
			"cap", nil, 1000, [][]string{word("user", "go"), called("x", "Read", "a"), called("c", "Read", "a"), called("c", "Read", "a"), answered("d", `"`+strings.Repeat("x", 8000)+`"`)}, nil,
		},
		"an older result of the same call is superseded": {
			"dedupe", nil, 1000, [][]string{read("Read", "a", 2000), read("Read", "b", 2000), read("Read", "a", 2000)}, []string{"2.0 stub 500>26"},
		},
		"equal arguments of another tool supersede nothing": {
			"dedupe", nil, 500, [][]string{read("Read", "a", 2000), read("Grep", "a", 2000)}, nil,
		},
		"keep_last 2 keeps the two newest": {
			"dedupe", func(p *Policy) { p.Dedupe.KeepLast = 2 }, 1000,
			[][]string{read("Read", "a", 2000), read("Read", "a", 2000), read("Read", "a", 2000)}, []string{"2.0 stub 500>26"},
		},
		"a small result is not worth a stub": {
			"dedupe", nil, 500, [][]string{read("Read", "a", 200), read("Read", "b", 2000), read("Read", "a", 200)}, nil,
		},
		"an empty newer result supersedes nothing": {
			"dedupe", nil, 500, [][]string{read("Read", "a", 2000), returned("Read", "a", `""`)}, nil,
		},
		"a denied tool is not deduplicated": {
			"dedupe", func(p *Policy) { p.Dedupe.DenyTools = []string{"Read"} }, 1000, [][]string{read("Read", "a", 2000), read("Read", "a", 2000)}, nil,
		},
		"only allowed tools are deduplicated": {
			"dedupe", func(p *Policy) { p.Dedupe.AllowTools = []string{"Grep"} }, 1000,
			[][]string{read("Read", "a", 2000), read("Grep", "a", 2000), read("Read", "a", 2000), read("Grep", "a", 2000)}, []string{"4.0 stub 500>26"},
		},
		"the last units are not deduplicated": {
			"dedupe", func(p *Policy) { p.Protect.LastUnits = 2 }, 1000, [][]string{read("Read", "a", 2000), read("Read", "a", 2000)}, nil,
		},
		"the hot zone stays whole, bookends shrink, then one line stays": {
			"trim", func(p *Policy) { p.Trim.HotZoneMinTokens, p.Trim.DegradationSpanRatio = 600, 0.6 }, 2400,
			[][]string{read("Read", "a", 2400), read("Read", "b", 2400), read("Read", "c", 2400), read("Read", "d", 2400), read("Read", "e", 2400)},
			[]string{"2.0 placeholder 600>37", "4.0 bookend 600>136", "6.0 bookend 600>179", "8.0 bookend 600>221"},
		},
		"an ephemeral result is cleared where another gets a placeholder": {
			"trim", func(p *Policy) { p.Trim.DegradationSpanRatio = 0 }, 1000,
			[][]string{read("SubAgent", "a", 2000), read("Read", "a", 2000), word("assistant", strings.Repeat("done ", 40))},
			[]string{"2.0 clear 500>15", "4.0 placeholder 500>37"},
		},
		"a non-reproducible result stays longer if the policy says so": {
			"trim", func(p *Policy) {
				p.Trim.HotZoneMinTokens, p.Trim.DegradationSpanRatio, p.Trim.ExtendedRetentionMultiplier = 200, 0, 4
			}, 1600, [][]string{read("Read", "a", 2000), read("Bash", "a", 2000), read("Read", "b", 1000), word("assistant", strings.Repeat("done ", 80))},
			[]string{"2.0 placeholder 500>37"},
		},
		"the hot zone is never more than half of the target": {
			"trim", func(p *Policy) { p.Trim.HotZoneMinTokens, p.Trim.DegradationSpanRatio = 16_000, 0 }, 1600,
			[][]string{read("Read", "a", 2000), read("Read", "b", 2000)}, []string{"2.0 placeholder 500>37"},
		},
		"a view below the floor is not trimmed": {
			"trim", func(p *Policy) { p.Target, p.Trim.FloorRatio = 0.1, 0.8 }, 1600, [][]string{read("Read", "a", 2000), read("Read", "b", 2000)}, nil,
		},
		"the last units are not trimmed": {
			"trim", func(p *Policy) { p.Protect.LastUnits, p.Trim.DegradationSpanRatio = 2, 0 }, 1000,
			[][]string{read("Read", "a", 2000), read("Read", "b", 2000), word("assistant", "done")}, []string{"2.0 placeholder 500>37"},
		},
		"an image result becomes one line where text would keep bookends, not before": {
			"trim", func(p *Policy) { p.Trim.DegradationSpanRatio = 0.6 }, 2000,
			[][]string{returned("Read", "a", image), returned("Read", "b", image), word("assistant", strings.Repeat("done ", 400))}, []string{"2.0 placeholder 3500>38"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := Make(input(t, session.OpenAIChat, only(c.stage, c.change), c.window, c.steps...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, deeds(plan)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

func deeds(p *Plan) (lines []string) {
	for _, a := range p.Actions {
		lines = append(lines, fmt.Sprintf("%d.%d %s %d>%d", a.Seq, a.Part, a.Do, a.TokensBefore, a.TokensAfter))
	}
	return lines
}
