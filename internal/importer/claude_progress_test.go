package importer

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// progress writes a line on which Claude Code repeats what a subagent said.
func progress(agent, said string) string {
	return `{"type":"progress","sessionId":"s1","uuid":"p","data":{"type":"agent_progress","agentId":"` + agent + `","prompt":"p","message":` + said + `}}`
}

func TestSubagentsThatOnlyProgressHas(t *testing.T) {
	t.Parallel()
	main := user(`"a"`)
	asked := `{"type":"user","uuid":"1","message":{"role":"user","content":"look"}}`
	called := `{"type":"assistant","uuid":"2","message":{"model":"m","id":"m1","role":"assistant","content":[` + call("c1") + `]}}`
	and := `{"type":"assistant","uuid":"3","message":{"model":"m","id":"m1","role":"assistant","content":[` + call("c2") + `]}}`
	found := `{"type":"user","uuid":"4","message":{"role":"user","content":[` + result("c1", "x") + `]}}`
	side := rec("user", `{"role":"user","content":"own"}`, `,"isSidechain":true,"agentId":"x"`)
	hook := `{"type":"progress","data":{"type":"hook_progress"}}`
	tests := []struct {
		name    string
		lines   []string
		want    []string
		skipped map[string]int
	}{
		{
			"they are conversations of their own, in which a message is put together from its lines",
			[]string{main, progress("x", asked), hook, progress("x", called), progress("x", and), progress("x", found), user(`"b"`)},
			[]string{
				`s 1 {"role":"user","content":"a"}`, `s 7 {"role":"user","content":"b"}`,
				`s-agent-x 2 {"role":"user","content":"look"}`,
				`s-agent-x 4 {"role":"assistant","content":[` + call("c1") + `,` + call("c2") + `]}`,
				`s-agent-x 6 {"role":"user","content":[` + result("c1", "x") + `]}`,
			},
			map[string]int{"progress hook_progress": 1},
		},
		{
			"two agents are two, and a record that is repeated counts once",
			[]string{main, progress("x", asked), progress("x", asked), progress("y", found)},
			[]string{
				`s 1 {"role":"user","content":"a"}`, `s-agent-x 2 {"role":"user","content":"look"}`,
				`s-agent-y 4 {"role":"user","content":[` + result("c1", "x") + `]}`,
			},
			map[string]int{"user (copy)": 1},
		},
		{
			"an agent whose own records come later has them only",
			[]string{main, progress("x", asked), side},
			[]string{`s 1 {"role":"user","content":"a"}`, `s-agent-x 3 {"role":"user","content":"own"}`},
			map[string]int{"progress agent_progress (copy)": 1},
		},
		{
			"progress without a message is skipped",
			[]string{main, `{"type":"progress","data":{"type":"agent_progress","agentId":"x"}}`, `{"type":"progress"}`},
			[]string{`1 {"role":"user","content":"a"}`},
			map[string]int{"progress agent_progress": 1, "progress": 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := ""
			for _, line := range tt.lines {
				file += line + "\n"
			}
			f, err := Read(context.Background(), "s", []byte(file), Auto)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, show(f)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.skipped, f.Report.Skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
			checkLaws(t, f)
		})
	}
}
