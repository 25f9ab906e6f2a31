package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// BenchmarkExtract writes the summary of a long session: n turns of a demand, a finding, a command and its output.
func BenchmarkExtract(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := summary.Request{MaxTokens: 2_000, Retain: true}
			size := 0
			for i := range n {
				id := fmt.Sprint("call_", i)
				r.Messages = append(r.Messages,
					said("user", fmt.Sprintf("Please look at internal/part%d.go, and never change the public names there. Thanks!", i)),
					summary.Message{Role: "assistant", Parts: []summary.Part{
						{Kind: summary.Text, Text: fmt.Sprintf("The cause was the limit of %d in internal/part%d.go. I raised it. Let me run the tests now.", i, i)},
						{Kind: summary.Call, Tool: "Bash", CallID: id, Text: fmt.Sprintf(`{"command":"go test ./internal/part%d"}`, i)},
					}},
					summary.Message{Role: "tool", Parts: []summary.Part{{
						Kind: summary.Result, Tool: "Bash", CallID: id, Text: strings.Repeat("=== RUN TestPart\n--- PASS: TestPart (0.00s)\n", 40) + "ok\n",
					}}},
				)
			}
			for i := range r.Messages {
				r.Messages[i].Seq = int64(i + 1)
				for _, p := range r.Messages[i].Parts {
					size += len(p.Text)
				}
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				summary.Extract(r)
			}
		})
	}
}
