package main

import (
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
)

// windows are those in which the recorded conversations are compacted: most coding sessions cross the trigger of the
// smallest, the longest ones that of the largest.
var windows = []int{32_000, 64_000, 128_000}

// lives are what a profile makes of the recorded conversations, each compacted as it would have been: whenever an append
// crosses the trigger. Tokens are those of the conversations that did.
type lives struct {
	sessions    int
	crossed     int   // sessions that reached their trigger
	onTarget    int   // and were brought under their target by the last compaction
	compactions int   // that changed their view
	before      int64 // tokens of the whole log
	after       int64 // tokens of the view at the end
	compacted   int64 // tokens of the views before each compaction
	kept        int64 // of these, those of the beginnings that kept their bytes
}

// BenchmarkProfiles lets every recorded conversation live under every profile. Its results are the metrics: nothing is
// timed.
func BenchmarkProfiles(b *testing.B) {
	read, _, err := compacttest.Recorded(dataDir())
	if err != nil {
		b.Fatal(err)
	}
	if len(read) == 0 {
		b.Skipf("there are no recorded conversations in %s", dataDir())
	}
	for _, window := range windows {
		for _, profile := range policy.Profiles() {
			name := fmt.Sprintf("%dk/%s", window/1000, profile)
			if isWanted("Profiles/" + name) {
				l := liveUnder(b, read, profile, window)
				b.Run(name, l.report)
			}
		}
	}
}

// liveUnder returns what a profile makes of the conversations.
func liveUnder(tb testing.TB, read []compacttest.Conversation, profile string, window int) *lives {
	tb.Helper()
	settings, err := policy.Profile(profile)
	if err != nil {
		tb.Fatal(err)
	}
	all := &lives{}
	for i := range read {
		c := &read[i]
		r := newReplay(c.Format, settings, window)
		for _, e := range entries(c) {
			if err := r.append(e); err != nil {
				tb.Fatalf("%s, %s: %v", profile, c.ID, err)
			}
		}
		all.add(r, c)
	}
	return all
}

// report hands the numbers to the benchmark.
func (l *lives) report(b *testing.B) {
	for b.Loop() {
	}
	for unit, value := range map[string]float64{
		"sessions": float64(l.sessions), "crossed": float64(l.crossed), "compactions": float64(l.compactions),
		"tokens_before": float64(l.before), "tokens_after": float64(l.after),
		"%_of_the_log": percent(l.after, l.before), "%_of_prefix_kept": percent(l.kept, l.compacted),
		"on_target": float64(l.onTarget),
	} {
		b.ReportMetric(value, unit)
	}
}

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// add counts a conversation that was replayed.
func (l *lives) add(r *replay, c *compacttest.Conversation) {
	l.sessions++
	if !r.crossed {
		return
	}
	l.crossed++
	l.compactions += len(r.done)
	l.before += int64(c.Total())
	l.after += r.context
	for _, done := range r.done {
		l.compacted += done.before
		l.kept += done.kept
	}
	if n := len(r.done); n > 0 && float64(r.done[n-1].after) <= r.target() {
		l.onTarget++
	}
}
