package imports

import (
	"testing"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/protocol"
)

// TestEmptyLinesAreCounted wants any number of empty lines to be held as one, and other lines one by one.
func TestEmptyLinesAreCounted(t *testing.T) {
	t.Parallel()
	var f feed
	const empty = 3 * maxBatch
	n := int64(0)
	hold := func(line entry) {
		if err := f.hold(t.Context(), line, 0); err != nil { // a full batch would be stored: there is no store
			t.Fatal(err)
		}
	}
	for range empty {
		n++
		hold(unknownLine(n, archive.Line{Text: []byte(" "), Bytes: 2}))
	}
	n++
	hold(rejected(n, "no"))
	n++
	hold(unknownLine(n, archive.Line{Text: []byte{}, Bytes: 1}))
	want := []entry{
		{Line: 1, Outcome: protocol.LineSkipped, More: empty - 1}, {Line: empty + 1, Outcome: protocol.LineRejected},
		{Line: empty + 2, Outcome: protocol.LineSkipped},
	}
	if len(f.lines) != len(want) {
		t.Fatalf("%d lines are held, want %d", len(f.lines), len(want))
	}
	for i, w := range want {
		if got := f.lines[i]; got.Line != w.Line || got.Outcome != w.Outcome || got.More != w.More {
			t.Errorf("line %d: %+v", i, got)
		}
	}
}
