package view

import (
	"testing"

	"github.com/varve-dev/varve/internal/postgres"
)

// TestAViewIsWeighedByTheMessagesThatItCanHave: how many those of a checkpoint are does not follow from the log, of
// which one message may have become hundreds.
func TestAViewIsWeighedByTheMessagesThatItCanHave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view     postgres.View
		messages int64
	}{
		"few pictures":                       {postgres.View{Size: 8 << 20, Tokens: 12_000, Through: 500, Version: postgres.Version{LastSeq: 500}}, 3_000},
		"300 messages that were divided":     {postgres.View{Size: 8 << 20, Tokens: 400_000, Through: 300, Version: postgres.Version{LastSeq: 300}}, 100_000},
		"more tokens than the bytes hold":    {postgres.View{Size: 320_000, Tokens: 4_000_000, Through: 300, Version: postgres.Version{LastSeq: 300}}, 10_000},
		"a tail, whose messages are counted": {postgres.View{TailBytes: 30 << 20, Tokens: 7_000_000, Version: postgres.Version{LastSeq: 300_001}}, 300_001},
	} {
		c.view.LeftOut = true
		if got := (weightOf(&c.view) - memoryPerByte*(c.view.TailBytes+int64(c.view.Size))) / memoryPerMessage; got != c.messages {
			t.Errorf("%s: weighed as %d messages, not %d", name, got, c.messages)
		}
	}
}
