package compactor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// logged returns a random session as a snapshot of its log.
func logged(t *testing.T, seed uint64, wild bool) postgres.Snapshot {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	f := session.Formats()[rng.IntN(len(session.Formats()))]
	snap := postgres.Snapshot{Format: f, Calibration: 1}
	for i, body := range compacttest.Session(rng, f, compacttest.Options{Messages: 40 + rng.IntN(40), Wild: wild, Steps: 3}) {
		found, err := wire.Inspect(f, body)
		if err != nil {
			t.Fatal(err)
		}
		snap.Tail = append(snap.Tail, postgres.LogMessage{Seq: int64(i + 1), Format: f, Tokens: int64(found.Tokens), Body: body})
		snap.ContextTokens += int64(found.Tokens)
	}
	snap.LastSeq = int64(len(snap.Tail))
	snap.WindowTokens = max(int(snap.ContextTokens)/(1+rng.IntN(4)), 500)
	return snap
}

// byAge returns a policy whose compactions step by step make what one of all messages makes.
func byAge() policy.Policy {
	p := policy.Default()
	p.Trigger, p.Target, p.Hard = 0.5, 0.3, 0.9
	p.Summarise.Enabled, p.Protect.Yields = false, false
	p.Trim.Enabled, p.Arguments.Enabled, p.Dedupe.Enabled, p.Truncate.Enabled = true, true, true, false
	p.Dedupe.Pending = false
	return p
}

// inWindows plans a compaction of a snapshot in windows of a number of bytes, and returns all that it persists.
func inWindows(t *testing.T, snap postgres.Snapshot, p policy.Policy, bytes int64) (*Proposal, []compact.Result) {
	t.Helper()
	var kept []compact.Result
	pl := planner{window: bytes, persist: func(_ context.Context, _ []postgres.LogMessage, results []compact.Result) error {
		kept = append(kept, slices.Clone(results)...)
		return nil
	}}
	made, err := pl.plan(t.Context(), snap, &p, FromLog)
	if err != nil {
		t.Fatal(err)
	}
	return made, append(kept, made.Plan.Results[made.persisted:]...)
}

// did is what an action does, without the reasons, which count from the end of a window.
type did struct {
	seq, last int64
	part      int
	kind      compact.ActionKind
	saved     int
	ref       string
}

// done returns what actions do, by seq and part.
func done(actions []compact.Action) (list []did) {
	for _, a := range actions {
		list = append(list, did{a.Seq, a.LastSeq, a.Part, a.Kind, a.TokensBefore - a.TokensAfter, a.Ref})
	}
	slices.SortFunc(list, func(a, b did) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.part, b.part)) })
	return list
}

func refsOf(results []compact.Result) (refs []string) {
	for i := range results {
		refs = append(refs, results[i].Ref.String())
		if results[i].Stored == nil {
			refs[i] += " without its bytes"
		}
	}
	slices.Sort(refs)
	return refs
}

func TestAWindowHasOneMessageAtTheLeast(t *testing.T) {
	t.Parallel()
	messages := []postgres.LogMessage{{Seq: 2, Body: make([]byte, 5)}, {Seq: 3, Body: make([]byte, 50)}, {Seq: 5, Body: make([]byte, 1)}, {Seq: 6, Body: make([]byte, 9)}}
	for size, want := range map[int64][]int64{1: {2, 3, 5, 6}, 10: {3, 6}, 60: {6}, 30: {3, 6}, 1000: {6}} {
		if got := windowEnds(messages, 1, size); !slices.Equal(got, want) {
			t.Errorf("%d bytes: windows end with %v, not %v", size, got, want)
		}
	}
	if got := windowEnds(messages, 3, 10); !slices.Equal(got, []int64{6}) {
		t.Errorf("after message 3, windows end with %v", got)
	}
}

// Pictures have few tokens: their bytes are what a window must not hand on.
func TestTheRenditionOfPicturesIsBoundedInEveryWindow(t *testing.T) {
	t.Parallel()
	const size, limit = 300 << 10, 1 << 20
	snap := postgres.Snapshot{Format: session.Anthropic, Calibration: 1, WindowTokens: 1_000_000}
	add := func(form string, args ...any) {
		snap.LastSeq++
		body := fmt.Appendf(nil, form, args...)
		found, err := wire.Inspect(snap.Format, body)
		if err != nil {
			t.Fatal(err)
		}
		snap.ContextTokens += int64(found.Tokens)
		snap.Tail = append(snap.Tail, postgres.LogMessage{Seq: snap.LastSeq, Format: snap.Format, Tokens: int64(found.Tokens), Body: body})
	}
	add(`{"role":"user","content":"use the computer"}`)
	for n := range 40 {
		add(`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"computer","input":{}}]}`, n)
		add(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`, n, bytes.Repeat([]byte{'A' + byte(n%26)}, size))
	}
	p := policy.Default()
	p.MediaBytes = limit
	whole, _ := inWindows(t, snap, p, math.MaxInt64)
	pl := planner{window: 3 * size}
	pl.persist = func(_ context.Context, window []postgres.LogMessage, _ []compact.Result) error {
		if len(window) > 10 {
			t.Errorf("a window of %d messages", len(window))
		}
		return nil
	}
	made, err := pl.plan(t.Context(), snap, &p, FromLog)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(made.Made.Body); n > limit+2*size || !bytes.Equal(made.Made.Body, whole.Made.Body) {
		t.Errorf("a rendition of %d bytes, in one window of %d", n, len(whole.Made.Body))
	}
	if base := len(made.Input.Base.Body); base > limit+2*size || made.Decision.Verdict == Unchanged || len(made.Plan.Results) != 37 {
		t.Errorf("the last window begins with %d bytes, %d results have left", base, len(made.Plan.Results))
	}
}
