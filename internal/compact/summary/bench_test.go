//go:build unix

package summary_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// processorTime returns the time that this process has had of processors: what others do on the machine is not in it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// reportRate reports the megabytes that were summarised in a second of processor time since began.
func reportRate(b *testing.B, size int, began time.Duration) {
	b.Helper()
	used := processorTime(b) - began
	b.ReportMetric(float64(size)*float64(b.N)/1e6/used.Seconds(), "MB/cpu-s")
}

// BenchmarkExtractOfRecorded writes the summaries of the recorded conversations, each in requests of 60 messages with the
// summary before.
func BenchmarkExtractOfRecorded(b *testing.B) {
	const step = 60
	var all [][]summary.Message
	size := 0
	for _, messages := range recorded(b) {
		all = append(all, messages)
		size += textBytes(messages)
	}
	b.Run(fmt.Sprint(len(all)), func(b *testing.B) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		began := processorTime(b)
		for b.Loop() {
			for _, messages := range all {
				previous := ""
				for part := range slices.Chunk(messages, step) {
					previous = summary.Extract(summary.Request{
						Previous: previous, Messages: part, MaxTokens: 2_000, WordsKept: true,
					}).Summary
				}
			}
		}
		reportRate(b, size, began)
	})
}

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
			began := processorTime(b)
			for b.Loop() {
				summary.Extract(r)
			}
			reportRate(b, size, began)
		})
	}
}
