package compact

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

var histories = flag.Int("histories", 300, "how many random histories TestLaws puts through the engine; make soak has more")

// laws are the engine's promises. Each has a fuzz target below.
var laws = []func(*trial){
	(*trial).unitsWhole, (*trial).protectedStay, (*trial).neverGrows, (*trial).deterministic, (*trial).idempotent, (*trial).downTheLadder,
	(*trial).addsUp, (*trial).othersUntouched, (*trial).recoverable, (*trial).incremental, (*trial).valid, (*trial).bounded,
	(*trial).belowHard, (*trial).budgetHeld,
}

// TestLaws puts random histories under random policies through the engine and holds it to its promises. A failure names
// its seed; as many -histories and one more reach it.
func TestLaws(t *testing.T) {
	t.Parallel()
	var seen [Drop + 1]atomic.Int64
	t.Cleanup(func() {
		for do := CollapseSpace; do <= Drop; do++ {
			if n := seen[do].Load(); do != Stale && n < int64(*histories)/100 {
				t.Errorf("the action %s was taken %d times: the histories test little", do, n)
			}
		}
	})
	const shards = 4
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard; seed < *histories && !t.Failed(); seed += shards {
				for _, a := range try(t, uint64(seed), nil, laws...).whole.plan.Actions {
					seen[a.Kind].Add(1)
				}
			}
		})
	}
}

// TestLawsHoldWhereReplacementsMayGrow does the same for policies that use every replacement, as the systems do that
// Varve unites, and count by their formulas.
func TestLawsHoldWhereReplacementsMayGrow(t *testing.T) {
	t.Parallel()
	counters := []policy.Tokenizer{policy.Estimate, policy.Chars4, policy.JSONChars4, policy.Bytes4, policy.Runes4}
	for seed := range uint64(*histories) / 8 {
		grow := func(rng *rand.Rand, p *policy.Policy) {
			p.OnlySmaller, p.Protect.System = false, rng.IntN(4) > 0
			p.Tokens.Tokenizer = counters[rng.IntN(len(counters))]
		}
		tryUnder(t, seed, nil, grow, (*trial).deterministic, (*trial).incremental, (*trial).valid, (*trial).othersUntouched)
		if t.Failed() {
			return
		}
	}
}

// TestLawsHoldWithCopies does the same for histories in which results are windows that were read back, or the capped
// texts of uploaded results.
func TestLawsHoldWithCopies(t *testing.T) {
	t.Parallel()
	windows, texts := 0, 0
	for seed := range uint64(*histories) / 8 {
		rng := rand.New(rand.NewPCG(seed, 2))
		l := newTrial(t, rng)
		l.copies(rng)
		l.whole = l.compact(l.in)
		l.walk(rng)
		other := randomPolicy(rng)
		other.Protect.Yields = false
		l.other = l.compact(l.next(l.whole.made, other))
		for _, holds := range laws {
			holds(l)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s, window %d, policy %s", seed, l.in.Format, l.in.WindowTokens, l.in.Policy.Document())
		}
		for _, r := range l.whole.plan.Results {
			switch {
			case strings.HasPrefix(r.Source, "u"):
				texts++
			case r.Source != "":
				windows++
			}
		}
	}
	if windows < *histories/100 || texts < *histories/100 {
		t.Errorf("%d windows and %d capped texts have left: the histories test little", windows, texts)
	}
}

// copies makes some results of the history copies of others.
func (l *trial) copies(rng *rand.Rand) {
	l.in.Policy.Protect.Yields = false // what holds at the hard limit goes by the sizes that newTrial chooses
	window := func(ref string) string { return strings.Trim(literal(passage(ref, "")), `"`) }
	for i := range l.in.Tail {
		e := &l.in.Tail[i]
		e.Body = bytes.ReplaceAll(e.Body, []byte(`"WebFetch"`), []byte(`"mcp__varve__read_result"`))
		found, err := wire.Inspect(l.in.Format, e.Body)
		if err != nil {
			l.Fatal(err)
		}
		var edits []wire.Edit
		for _, p := range found.Parts {
			value := p.Value.Of(e.Body)
			if p.Kind != wire.Result || len(value) < 2 || value[0] != '"' {
				continue
			}
			begin := `"` + []string{"", window("r2.0-9f3a"), window("m4-7"), `[900 tokens cut: u1-0a0b has all]`, `u2-c0de`}[rng.IntN(5)]
			made := append([]byte(begin), value[1:]...)
			if rng.IntN(2) == 0 {
				l.in.Uploads = append(l.in.Uploads, Upload{Ref: []string{"u1-0a0b", "u2-c0de"}[rng.IntN(2)], TextDigest: DigestOf(decoded(made))})
			}
			edits = append(edits, wire.Edit{Span: p.Value, With: made})
		}
		e.Body = wire.Replace(nil, e.Body, edits)
		if l.originals[i], err = wire.Inspect(l.in.Format, e.Body); err != nil {
			l.Fatal(err)
		}
		e.Tokens = l.originals[i].Tokens
	}
}

func FuzzUnitsWhole(f *testing.F)      { fuzz(f, (*trial).unitsWhole) }
func FuzzProtectedStay(f *testing.F)   { fuzz(f, (*trial).protectedStay) }
func FuzzNeverGrows(f *testing.F)      { fuzz(f, (*trial).neverGrows) }
func FuzzDeterministic(f *testing.F)   { fuzz(f, (*trial).deterministic) }
func FuzzIdempotent(f *testing.F)      { fuzz(f, (*trial).idempotent) }
func FuzzDownTheLadder(f *testing.F)   { fuzz(f, (*trial).downTheLadder) }
func FuzzAddsUp(f *testing.F)          { fuzz(f, (*trial).addsUp) }
func FuzzOthersUntouched(f *testing.F) { fuzz(f, (*trial).othersUntouched) }
func FuzzRecoverable(f *testing.F)     { fuzz(f, (*trial).recoverable) }
func FuzzIncremental(f *testing.F)     { fuzz(f, (*trial).incremental) }
func FuzzValid(f *testing.F)           { fuzz(f, (*trial).valid) }
func FuzzBelowHard(f *testing.F)       { fuzz(f, (*trial).belowHard) }
func FuzzBounded(f *testing.F)         { fuzz(f, (*trial).bounded) }

// fuzz looks for a history that breaks a law. The bytes are the first choices of the generator, so that a change of one
// changes one choice; the seed makes the rest.
func fuzz(f *testing.F, holds func(*trial)) {
	for seed := range uint64(8) {
		f.Add(seed, []byte{})
		f.Add(seed, []byte("\x00\x20\x40\x60\x80\xa0\xc0\xe0\xff"))
	}
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) { try(t, seed, choices, holds) })
}

// source is random numbers of which the first are given.
type source struct {
	choices []byte
	rest    *rand.PCG
}

// Uint64 spreads a choice over all bits: whether the high or the low ones are used, it counts.
func (s *source) Uint64() uint64 {
	if len(s.choices) == 0 {
		return s.rest.Uint64()
	}
	b := s.choices[0]
	s.choices = s.choices[1:]
	return binary.LittleEndian.Uint64([]byte{b, b, b, b, b, b, b, b})
}

// trial is one history with what is known of it without the engine, and what the engine made of it: at once, step by
// step, and then under another policy. Its messages are counted as the engine takes them: an AI SDK message of several
// steps is several.
type trial struct {
	testing.TB
	in        Input // the whole log
	originals []wire.Facts
	whole     outcome
	steps     []outcome
	other     outcome // from whole on
	model     *oracle // writes summaries; nil: Extract does
}

// outcome is a compaction: its input, its plan, its checkpoint, and that as it is shown.
type outcome struct {
	in   Input
	plan *Plan
	made *Checkpoint
	view []shownMessage
}

// try makes the history of a seed, has the engine compact it, and holds that to laws.
func try(t testing.TB, seed uint64, choices []byte, laws ...func(*trial)) *trial {
	t.Helper()
	return tryUnder(t, seed, choices, func(*rand.Rand, *policy.Policy) {}, laws...)
}

// tryUnder does so with changes to the policies.
func tryUnder(
	t testing.TB, seed uint64, choices []byte, change func(*rand.Rand, *policy.Policy), laws ...func(*trial),
) *trial {
	t.Helper()
	rng := rand.New(&source{choices, rand.NewPCG(seed, 2)})
	l := newTrial(t, rng)
	change(rng, &l.in.Policy)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, choices %x: %s, window %d, policy %s", seed, choices, l.in.Format, l.in.WindowTokens, l.in.Policy.Document())
		}
	}()
	l.whole = l.compact(l.in)
	l.walk(rng)
	l.other = l.compact(l.next(l.whole.made, randomPolicy(rng)))
	for _, holds := range laws {
		holds(l)
	}
	return l
}

// newTrial makes a history.
func newTrial(t testing.TB, rng *rand.Rand) *trial {
	t.Helper()
	f := session.Formats()[rng.IntN(len(session.Formats()))]
	options := compacttest.Options{Messages: 1 + rng.IntN(20), ResultTokens: 5 + rng.IntN(40), Wild: rng.IntN(5) > 0}
	switch rng.IntN(20) {
	case 0:
		options.ResultTokens = 300
	case 1, 2:
		options.Messages = 60
	}
	if f == session.AISDK && rng.IntN(2) == 0 {
		options.Steps = 12
		options.Messages = 1 + options.Messages/4
	}
	l := &trial{TB: t, in: Input{Format: f, Policy: randomPolicy(rng)}}
	tokens := 0
	bodies := compacttest.Session(rng, f, options)
	for i, body := range bodies {
		tokens += l.append(int64(i+1), body)
	}
	if cut := rng.IntN(4); cut == 0 { // a log that ends anywhere, with calls in flight
		n := l.count(int64(1 + rng.IntN(len(bodies))))
		l.in.Tail, l.originals = l.in.Tail[:n], l.originals[:n]
	}
	l.in.WindowTokens = 1 + int(float64(tokens)*(0.2+2*rng.Float64()))
	l.in.OverheadTokens = rng.IntN(2) * rng.IntN(1+tokens/4)
	return l
}

// append adds a message of the log and returns its tokens.
func (l *trial) append(seq int64, body []byte) (tokens int) {
	l.Helper()
	found, err := wire.Inspect(l.in.Format, body)
	if err != nil {
		l.Fatalf("message %d: %v\n%s", seq, err, body)
	}
	for _, e := range Divide(l.in.Format, Entry{Seq: seq, Tokens: found.Tokens, Body: body}) {
		if found, err = wire.Inspect(l.in.Format, e.Body); err != nil {
			l.Fatalf("message %d: %v\n%s", seq, err, e.Body)
		}
		l.originals = append(l.originals, found)
		l.in.Tail = append(l.in.Tail, e)
		tokens += e.Tokens
	}
	return tokens
}

// count returns how many messages the engine takes of the log through a seq.
func (l *trial) count(seq int64) int {
	n := 0
	for n < len(l.in.Tail) && l.in.Tail[n].Seq <= seq {
		n++
	}
	return n
}

// place returns the message that has a part.
func (l *trial) place(seq int64, part int) int {
	m := l.count(seq) - 1
	for l.in.Tail[m].Part > part {
		m--
	}
	return m
}

// walk compacts the history as it grows.
func (l *trial) walk(rng *rand.Rand) {
	in := l.in
	for at := 0; at < len(l.in.Tail); {
		at += 1 + rng.IntN(len(l.in.Tail)-at)
		at = l.count(l.in.Tail[at-1].Seq)
		in.Tail = after(l.in.Tail[:at], in.Base.through())
		if l.model != nil {
			in.Answers, in.Failed = l.model.outcomes(rng)
		}
		step := l.compact(in)
		l.steps = append(l.steps, step)
		if step.made.Through > 0 {
			in.Base = step.made
		}
	}
}

// next returns what comes after a compaction of the whole log if nothing is appended.
func (l *trial) next(base *Checkpoint, p policy.Policy) Input {
	in := l.in
	in.Base, in.Tail, in.Policy = base, after(l.in.Tail, base.Through), p
	return in
}

func after(entries []Entry, seq int64) []Entry {
	for i, e := range entries {
		if e.Seq > seq {
			return entries[i:]
		}
	}
	return nil
}

func (c *Checkpoint) through() int64 {
	if c == nil {
		return 0
	}
	return c.Through
}

// compact runs the engine once.
func (l *trial) compact(in Input) outcome {
	l.Helper()
	plan, made := l.run(in)
	o := outcome{in, plan, made, show(l, in.Format, made)}
	shown := map[int64]int{} // by seq
	for i := len(o.view) - 1; i >= 0; i-- {
		m := &o.view[i]
		if m.place = -1; !m.coversOthers() { // of a divided message, the first steps leave first
			shown[m.seq]++
			m.place = l.count(m.seq) - shown[m.seq]
		}
	}
	return o
}

// run runs the engine with the writer of the trial.
func (l *trial) run(in Input) (*Plan, *Checkpoint) {
	l.Helper()
	if l.model == nil {
		return compacted(l, in)
	}
	plan, made, err := Run(context.Background(), in, l.model.write)
	if err != nil {
		l.Fatal(err)
	}
	return plan, made
}

func compacted(t testing.TB, in Input) (*Plan, *Checkpoint) {
	t.Helper()
	plan, made, err := Run(context.Background(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan, made
}

// all returns all compactions of the history.
func (l *trial) all() []outcome { return append([]outcome{l.whole, l.other}, l.steps...) }

// chains returns the sequences of compactions that follow one another.
func (l *trial) chains() [][]outcome { return [][]outcome{{l.whole, l.other}, l.steps} }
