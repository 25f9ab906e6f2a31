package compactor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

func chatCall(id, tool string) string {
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[`+
		`{"id":%q,"type":"function","function":{"name":%q,"arguments":"{}"}}]}`, id, tool)
}

func chatResult(id, text string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, text)
}

func TestAResultIsCappedUnderTheToolOfTheCallThatItAnswers(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("a line of output\n", 20_000)
	sdk := fmt.Sprintf(`{"id":"m","role":"assistant","parts":[{"type":"tool-Read","toolCallId":"a",`+
		`"state":"output-available","input":{},"output":%q}]}`, large)
	p := policy.Default()
	p.Cap.Enabled, p.Cap.AtInsertion = true, true
	p.Protect.Tools = []string{"Keep"}
	for name, c := range map[string]struct {
		format   session.Format
		earlier  []string
		messages []string
		want     []string // tools of the capped results
	}{
		"of a call before the batch":        {session.OpenAIChat, []string{chatCall("a", "Read")}, []string{chatResult("a", large)}, []string{"Read"}},
		"of a call in the batch":            {session.OpenAIChat, nil, []string{chatCall("a", "Read"), chatResult("a", large)}, []string{"Read"}},
		"of a call in the same message":     {session.AISDK, nil, []string{sdk}, []string{"Read"}},
		"of no call":                        {session.OpenAIChat, []string{chatCall("b", "Read")}, []string{chatResult("a", large)}, nil},
		"of a call that was answered":       {session.OpenAIChat, []string{chatCall("a", "Read"), chatResult("a", "x")}, []string{chatResult("a", large)}, nil},
		"of a protected tool":               {session.OpenAIChat, []string{chatCall("a", "Keep")}, []string{chatResult("a", large)}, nil},
		"small":                             {session.OpenAIChat, []string{chatCall("a", "Read")}, []string{chatResult("a", "x")}, nil},
		"of the nearest of two calls, both": {session.OpenAIChat, []string{chatCall("a", "One"), chatCall("a", "Two")}, []string{chatResult("a", large), chatResult("a", large)}, []string{"Two", "One"}},
	} {
		batch := postgres.IngestBatch{Policy: p.Document(), Format: c.format, FirstSeq: 10}
		for _, body := range c.earlier {
			batch.Earlier = append(batch.Earlier, []byte(body))
		}
		for _, body := range c.messages {
			m := session.NewMessage{Body: []byte(body)}
			if !strings.Contains(body, "tool_calls") {
				m.Answers = []string{"a"}
			}
			batch.Messages = append(batch.Messages, m)
		}
		views, results, err := compactor.CapAtIngest(batch)
		if err != nil {
			t.Errorf("a result %s: %v", name, err)
			continue
		}
		var got []string
		for _, r := range results {
			got = append(got, r.Tool)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("a result %s: capped of tools %v, want %v", name, got, c.want)
		}
		shown := 0
		for _, view := range views {
			if view.Body != nil && len(view.Body) < len(large) {
				shown++
			}
		}
		if shown != len(c.want) {
			t.Errorf("a result %s: %d messages are shown shorter, want %d", name, shown, len(c.want))
		}
	}
}
