package compact

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// unflagged writes a call of a tool for a file and its result in the formats whose results have no flag for errors.
var unflagged = map[session.Format]func(n int, tool, path, text string) []string{
	session.OpenAIChat: func(_ int, tool, path, text string) []string {
		return returns(tool, path, text)(session.OpenAIChat)
	},
	session.OpenAIResponses: func(n int, tool, path, text string) []string {
		return []string{
			fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":%q,"arguments":%s}`, n, tool, literal(fmt.Sprintf(`{"path":%q}`, path))),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"c%d","output":%s}`, n, literal(text)),
		}
	},
	session.Gemini: func(_ int, tool, path, text string) []string {
		return []string{
			fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"name":%q,"args":{"path":%q}}}]}`, tool, path),
			fmt.Sprintf(`{"role":"user","parts":[{"functionResponse":{"name":%q,"response":{"output":%s}}}]}`, tool, literal(text)),
		}
	},
}

func TestAResultThatShowsAnErrorSupersedesNothing(t *testing.T) {
	t.Parallel()
	for f, returned := range unflagged {
		for _, c := range []struct {
			text string
			want []string
		}{
			{filler(2000), []string{"2.0 stub"}},
			{"", nil},
			{"Error: ENOENT: no such file or directory", nil},
			{"<tool_use_error>File does not exist.</tool_use_error>", nil},
			{`{"error":"Unknown tool name"}`, nil},
			{"our server is on fire", nil},
		} {
			policy := only("dedupe", func(p *policy.Policy) { p.Tools.Errors = []string{"Our server is"} })
			in := Input{Format: f, Policy: policy, WindowTokens: 500}
			for _, body := range append(returned(1, "Read", "a.go", filler(2000)), returned(2, "Read", "a.go", c.text)...) {
				found, err := wire.Inspect(f, []byte(body))
				if err != nil {
					t.Fatalf("%v: %s", err, body)
				}
				in.Tail = append(in.Tail, Entry{Seq: int64(len(in.Tail) + 1), Tokens: found.Tokens, Body: []byte(body)})
			}
			plan, _ := compacted(t, in)
			if diff := cmp.Diff(c.want, outcomes(plan)); diff != "" {
				t.Errorf("%s, %.40q (-want +got):\n%s", f, c.text, diff)
			}
		}
	}
}

func TestACommandThatFailedSupersedesNothing(t *testing.T) {
	t.Parallel()
	run := func(text string) move {
		return then(calls("c", "Bash", `{"command":"make test"}`), answered("c", literal(text)))
	}
	for text, want := range map[string][]string{
		filler(2000) + "\nok":                            {"2.0 stub"},
		filler(2000) + "\nExit code: 0":                  {"2.0 stub"},
		filler(2000) + "\nExit code: 2":                  nil,
		"Exit code 1\nFAIL cart/a_test.go":               nil,
		filler(20000) + "\nProcess exited with code 137": nil,
	} {
		plan, _ := compacted(t, input(t, session.OpenAIChat, only("dedupe", nil), 500, run(filler(2000)), run(text)))
		if diff := cmp.Diff(want, outcomes(plan)); diff != "" {
			t.Errorf("…%.40q (-want +got):\n%s", text[max(0, len(text)-40):], diff)
		}
	}
}
