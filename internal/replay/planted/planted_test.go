package planted

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
)

var seeds = flag.Int("seeds", 1, "how often facts are planted in each session")

// recorded returns the recorded conversations, if the folder of them exists, else the project's own samples. Without
// -seeds the longest ones are left out.
var recorded = sync.OnceValues(func() (sessions []*replay.Session, o Options) {
	const few = 5
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	o = Standard
	o.Seeds = *seeds
	if _, err := os.Stat(dir); err != nil {
		dir = filepath.Join("..", "..", "..", "samples")
	}
	sessions, _, err := folder.Read(context.Background(), dir)
	if err != nil || len(sessions) == 0 {
		panic(fmt.Sprint(dir, err))
	}
	if *seeds == 1 && len(sessions) > few {
		longest := int64(110_000)
		if testing.Short() {
			longest = 95_000
		}
		sessions = slices.DeleteFunc(sessions, func(s *replay.Session) bool { return s.Tokens() > longest })
	}
	return sessions, o
})

// fewest returns how many facts a measurement has at least.
func fewest() int {
	if testing.Short() {
		return 10
	}
	return 30
}

func measured(t *testing.T, sessions []*replay.Session, writers []Writer, o Options) map[string]Share {
	t.Helper()
	rows, err := Measure(t.Context(), sessions, writers, o)
	if err != nil {
		t.Fatal(err)
	}
	head, lines := Table(rows)
	t.Log(strings.Join(head, " | "))
	all := map[string]Share{}
	for i := range rows {
		t.Log(strings.Join(lines[i], " | "))
		all[rows[i].Writer] = rows[i].Kept[""]
	}
	return all
}

func TestExtractIsWellAheadOfSimpleWriters(t *testing.T) {
	t.Parallel()
	sessions, o := recorded()
	for _, o.HeldOut = range []bool{false, true} {
		kept := measured(t, sessions, Writers(), o)
		for _, simple := range []string{HeadAndTail, FirstSentences} {
			if 5*kept[Extract].Kept < 8*kept[simple].Kept {
				t.Errorf("held out %t: Extract keeps %v, %s %v", o.HeldOut, kept[Extract], simple, kept[simple])
			}
		}
		if kept[Extract].Percent() < 60 && *seeds == 1 {
			t.Errorf("held out %t: Extract keeps %v", o.HeldOut, kept[Extract])
		}
		if kept[Pinned].Kept != kept[Pinned].All {
			t.Errorf("held out %t: of %v facts that are pinned not all are there", o.HeldOut, kept[Pinned])
		}
		if 10*kept[AsModel].Kept < 9*kept[Extract].Kept || kept[Finder].Kept < kept[Extract].Kept || kept[Extract].All < fewest() {
			t.Errorf("held out %t: %v", o.HeldOut, kept)
		}
	}
}

// TestTheMeasureMeasures has a writer that keeps all, and one that keeps nothing.
func TestTheMeasureMeasures(t *testing.T) {
	t.Parallel()
	sessions, o := recorded()
	forgetful := func(summary.Request) string { return "nothing" }
	kept := measured(t, sessions, []Writer{{"all", always(wholeOf), false}, {"none", always(forgetful), false}}, o)
	if kept["all"].Kept != kept["all"].All || kept["none"].Kept != 0 || kept["all"].All < fewest() {
		t.Error(kept)
	}
}

func TestTheHalvesHaveNoSentenceInCommon(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		half, heldOut := k.half(false), k.half(true)
		if len(half) < 4 || len(heldOut) < 4 || len(half)+len(heldOut) != len(k.sentences) {
			t.Errorf("%s: %d and %d sentences", k.name, len(half), len(heldOut))
		}
		for _, sentence := range half {
			if slices.Contains(heldOut, sentence) {
				t.Errorf("%s: %q is in both halves", k.name, sentence)
			}
		}
	}
}
