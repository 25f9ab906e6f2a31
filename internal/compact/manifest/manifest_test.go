package manifest_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/manifest"
)

// part returns an entry about a part of a message; messages returns one about several messages.
func part(seq int64, n int, do string, before, after int64) manifest.Entry {
	return manifest.Entry{Seq: seq, LastSeq: seq, Part: n, Do: do, Stage: "trim", TokensBefore: before, TokensAfter: after, Ref: "r"}
}

func messages(first, last int64, before, after int64) manifest.Entry {
	return manifest.Entry{Seq: first, LastSeq: last, Part: -1, Do: "summarise", Stage: "summarise", TokensBefore: before, TokensAfter: after}
}

func TestTheNewestEntryAboutAPartCountsFromTheOriginal(t *testing.T) {
	t.Parallel()
	got := manifest.Merge([]manifest.Manifest{
		{part(3, 0, "clear", 40, 5)},
		{part(3, 0, "bookend", 100, 40), part(5, 1, "bookend", 70, 30)},
	})
	want := manifest.Manifest{part(3, 0, "clear", 100, 5), part(5, 1, "bookend", 70, 30)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesThatLeftTakeTheEntriesAboutTheirPartsAlong(t *testing.T) {
	t.Parallel()
	got := manifest.Merge([]manifest.Manifest{
		{messages(2, 9, 80, 20)},                                   // the earlier summary among them
		{messages(2, 5, 60, 30), part(3, 0, "stub", 90, 10)},       // in one run: first the part, then the message
		{part(3, 0, "bookend", 100, 90), part(12, 0, "cap", 9, 4)}, // 12 is not among them
	})
	want := manifest.Manifest{messages(2, 9, 80+30+80+10, 20), part(12, 0, "cap", 9, 4)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPartsOfAMessageOfWhichStepsStayAreEntriesOfTheirOwn(t *testing.T) {
	t.Parallel()
	partial := messages(2, 5, 60, 30)
	partial.Partial = true
	earlier, shown := part(4, 0, "bookend", 100, 90), part(5, 9, "bookend", 80, 20)
	lineage := []manifest.Manifest{{partial}, {earlier, shown}}
	want := manifest.Manifest{partial, shown}
	want[0].TokensBefore += 10
	if diff := cmp.Diff(want, manifest.Merge(lineage)); diff != "" {
		t.Error(diff)
	}
	lineage = append([]manifest.Manifest{{messages(2, 5, 70, 10)}}, lineage...)
	if diff := cmp.Diff(manifest.Manifest{messages(2, 5, 70+30+10+60, 10)}, manifest.Merge(lineage)); diff != "" {
		t.Error(diff)
	}
}

func TestAMergedManifestSavesWhatItsManifestsSave(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		lineage := randomLineage(random)
		var want int64
		for _, m := range lineage {
			want += m.Saved()
		}
		merged := manifest.Merge(lineage)
		if got := merged.Saved(); got != want {
			t.Fatalf("%v saves %d, its parts %d", merged, got, want)
		}
		var byStage int64
		for _, s := range merged.Stages() {
			byStage += s.TokensSaved
		}
		if byStage != want {
			t.Fatalf("the stages of %v save %d, want %d", merged, byStage, want)
		}
	}
}

// randomLineage makes manifests as an engine could: a summary begins at message 2 and only ever grows.
func randomLineage(random *rand.Rand) []manifest.Manifest {
	lineage, summarised := []manifest.Manifest{}, int64(1)
	for range 1 + random.IntN(5) {
		var m manifest.Manifest
		for seq := summarised + 1; seq < 30; seq++ {
			if random.IntN(3) == 0 {
				m = append(m, part(seq, random.IntN(2), "bookend", random.Int64N(100), random.Int64N(50)))
			}
		}
		if random.IntN(3) == 0 {
			summarised += 1 + random.Int64N(8)
			m = append(manifest.Manifest{messages(2, summarised, random.Int64N(1000), random.Int64N(50))}, m...)
		}
		lineage = append([]manifest.Manifest{m}, lineage...)
	}
	return lineage
}

func TestTheChangesBetweenTwoViewsAddUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		lineage := randomLineage(random)
		older := random.IntN(len(lineage))
		// A restored checkpoint continues an older one, so neither has to be the base of the other.
		branch := append(randomLineage(random), lineage[older:]...)
		for _, pair := range [][2]manifest.Manifest{
			{manifest.Merge(lineage[older:]), manifest.Merge(lineage)},
			{manifest.Merge(lineage), manifest.Merge(lineage[older:])},
			{manifest.Merge(lineage), manifest.Merge(branch)},
		} {
			var sum int64
			for _, c := range manifest.Compare(pair[0], pair[1]) {
				sum += c.Tokens()
			}
			if want := pair[0].Saved() - pair[1].Saved(); sum != want {
				t.Fatalf("from %v\nto %v\nthe changes have %d tokens, want %d", pair[0], pair[1], sum, want)
			}
		}
	}
}

func TestTheKindsOfChanges(t *testing.T) {
	t.Parallel()
	from := manifest.Manifest{part(3, 0, "bookend", 100, 40), part(5, 0, "bookend", 50, 20), part(8, 0, "clear", 30, 5), messages(20, 25, 300, 50)}
	to := manifest.Manifest{messages(2, 6, 400, 60), part(8, 0, "clear", 30, 5), part(9, 1, "stub", 80, 8), part(22, 0, "cap", 90, 60)}
	trimmed := manifest.State{Do: "stub", Stage: "trim", Tokens: 8}
	summarised := func(tokens int64) manifest.State {
		return manifest.State{Do: "summarise", Stage: "summarise", Tokens: tokens}
	}
	want := []manifest.Change{
		{Seq: 2, LastSeq: 6, Part: -1, Kind: manifest.Changed, From: manifest.State{Do: manifest.Parts, Tokens: 400 - 60 - 30}, To: summarised(60)},
		{Seq: 9, LastSeq: 9, Part: 1, Kind: manifest.Left, From: manifest.State{Do: manifest.Whole, Tokens: 80}, To: trimmed, Ref: "r"},
		{Seq: 20, LastSeq: 25, Part: -1, Kind: manifest.Changed, From: summarised(50), To: manifest.State{Do: manifest.Parts, Tokens: 300 - 30}},
	}
	if diff := cmp.Diff(want, manifest.Compare(from, to)); diff != "" {
		t.Error(diff)
	}
	back := manifest.Compare(to[2:3], nil)
	if len(back) != 1 || back[0].Kind != manifest.Returned || back[0].Tokens() != 72 {
		t.Errorf("what came back: %+v", back)
	}
	if same := manifest.Compare(from, from); len(same) != 0 {
		t.Errorf("a view differs from itself: %+v", same)
	}
}

func TestAManifestOfAnyVersionIsRead(t *testing.T) {
	t.Parallel()
	got, err := manifest.Parse([]json.RawMessage{
		json.RawMessage(`[{"seq":3,"part":0,"do":"clear","stage":"trim","reason":"old","tokens_before":9,"tokens_after":2,"ref":"r3.0-aaaa"}]`),
		json.RawMessage(`[{"seq":2,"last_seq":9,"part":-1,"do":"summarise","tokens_before":90,"tokens_after":2,"new_member":[1]}]`),
		json.RawMessage(`[]`),
	})
	if err != nil || len(got) != 3 || got[0][0].Ref != "r3.0-aaaa" || got[0][0].LastSeq != 3 || got[1][0].LastSeq != 9 || len(got[2]) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := manifest.Parse([]json.RawMessage{json.RawMessage(`{}`)}); err == nil {
		t.Error("an object was taken for a manifest")
	}
}
