package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

var histories = flag.Int("histories", defaultHistories, "how many random histories TestLaws puts through the engine")

// TestLaws puts random histories under random policies through the engine and holds it to its promises. A failure
// names its seed, and checkLaws with that seed repeats it.
func TestLaws(t *testing.T) {
	t.Parallel()
	var seen [Drop + 1]atomic.Int64
	t.Cleanup(func() {
		for do := Squeeze; do <= Drop; do++ {
			if n := seen[do].Load(); n < int64(*histories)/100 {
				t.Errorf("only %d results were given the action %s: the histories test little", n, do)
			}
		}
	})
	const shards = 4
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard; seed < *histories && !t.Failed(); seed += shards {
				for _, a := range checkLaws(t, uint64(seed)) {
					seen[a.Do].Add(1)
				}
			}
		})
	}
}

// FuzzMake looks for a history that breaks a law.
func FuzzMake(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkLaws(t, seed) })
}

// checkLaws returns what was done to the history of a seed.
func checkLaws(t testing.TB, seed uint64) []Action {
	t.Helper()
	l := newLaws(t, seed)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: %s, window %d, policy %s", seed, l.in.Format, l.in.WindowTokens, l.in.Policy.Document())
		}
	}()
	whole := l.compact(l.in)
	l.addsUp(whole)
	l.reachesThrough(whole)
	l.unitsCover(whole)
	l.deterministic(whole)
	l.idempotent(whole)
	l.untouched(whole)
	l.protected(whole)
	l.incremental(whole)
	l.otherPolicy(whole)
	return whole.plan.Actions
}

// laws is one history with what is known of it without the engine.
type laws struct {
	t         testing.TB
	rng       *rand.Rand
	in        Input // the whole log
	originals []wire.Message
}

// outcome is a compaction: its input, its plan and its checkpoint.
type outcome struct {
	in   Input
	plan *Plan
	made *Checkpoint
}

func newLaws(t testing.TB, seed uint64) *laws {
	rng := rand.New(rand.NewPCG(seed, 2))
	f := session.Formats()[rng.IntN(len(session.Formats()))]
	options := compacttest.Options{Messages: 1 + rng.IntN(20), ResultTokens: 5 + rng.IntN(40), Wild: rng.IntN(5) > 0}
	switch rng.IntN(20) {
	case 0:
		options.ResultTokens = 300
	case 1, 2:
		options.Messages = 60
	}
	l := &laws{t: t, rng: rng, in: Input{Format: f, Policy: randomPolicy(rng)}}
	tokens := 0
	for i, body := range compacttest.Session(rng, f, options) {
		found, err := wire.Inspect(f, body)
		if err != nil {
			t.Fatalf("message %d of seed %d: %v\n%s", i, seed, err, body)
		}
		l.originals = append(l.originals, found)
		l.in.Tail = append(l.in.Tail, Entry{Seq: int64(i + 1), Tokens: found.Tokens, Body: body})
		tokens += found.Tokens
	}
	if cut := rng.IntN(4); cut == 0 { // a log that ends anywhere, with calls in flight
		n := 1 + rng.IntN(len(l.in.Tail))
		l.in.Tail, l.originals = l.in.Tail[:n], l.originals[:n]
	}
	l.in.WindowTokens = 1 + int(float64(tokens)*(0.2+2*rng.Float64()))
	l.in.OverheadTokens = rng.IntN(2) * rng.IntN(1+tokens/4)
	return l
}

// randomPolicy is any policy that may be set: a profile, or stages switched on and off with any measures.
func randomPolicy(rng *rand.Rand) Policy {
	p := profiles[rng.IntN(len(profiles))].build()
	if rng.IntN(4) > 0 {
		p = DefaultPolicy()
		randomStages(rng, &p)
	}
	if rng.IntN(2) == 0 {
		p.Summarise.Enabled = false
	}
	if rng.IntN(6) == 0 {
		p.Protect.Tools = []string{"Bash"}
	}
	parsed, err := ParsePolicy(p.Document())
	if err != nil {
		panic(err)
	}
	return parsed
}

func randomStages(rng *rand.Rand, p *Policy) {
	maybe := func(n int) bool { return rng.IntN(n) > 0 }
	p.Target = 0.05 + 0.7*rng.Float64()
	p.Protect.LastUnits, p.Protect.LastMessages, p.Protect.LastTurns = rng.IntN(6), rng.IntN(2)*rng.IntN(8), rng.IntN(2)*rng.IntN(3)
	p.Protect.NewestUser, p.Protect.MaxTurnRatio = maybe(4), 0.1+0.9*rng.Float64()
	p.Trim = TrimPolicy{
		Enabled: maybe(8), MinTokens: rng.IntN(2) * rng.IntN(200), FloorRatio: 0.8 * rng.Float64(),
		HotZoneMinTokens: rng.IntN(2) * rng.IntN(2000), HotZoneRatio: 0.3 * rng.Float64(), BookendMinChars: policyMinimum + rng.IntN(100),
		DegradationSpanRatio: float64(rng.IntN(3)) * rng.Float64(), ExtendedRetentionMultiplier: 1 + float64(rng.IntN(2))*rng.Float64(),
		Categories: p.Trim.Categories,
	}
	p.Trim.BookendMaxChars = p.Trim.BookendMinChars + rng.IntN(400)
	p.Cap = CapPolicy{
		Enabled: maybe(4), AtInsertion: maybe(2), MaxTokens: 100 + rng.IntN(1000), HeadChars: p.Trim.BookendMaxChars + rng.IntN(300),
		TailChars: p.Trim.BookendMaxChars + rng.IntN(300), WholeLines: maybe(2),
	}
	if rng.IntN(4) == 0 {
		p.Cap.MaxLines = 2 + rng.IntN(40)
	}
	if rng.IntN(4) == 0 {
		p.Cap.MaxLineChars = policyMinimum + rng.IntN(100)
	}
	p.Dedupe.Enabled, p.Dedupe.KeepLast, p.Dedupe.MinTokens = maybe(4), 1+rng.IntN(2), rng.IntN(2)*rng.IntN(100)
	p.Dedupe.Identity, p.Dedupe.ToolOnly = identities[rng.IntN(len(identities))], true
	p.Dedupe.Arguments, p.Dedupe.ArgumentBytes = maybe(2), 32+rng.IntN(500)
	p.Stale.Enabled, p.Arguments.Enabled, p.Budget.Enabled, p.Whitespace.Enabled = maybe(2), maybe(2), maybe(2), maybe(2)
	p.Arguments.MinBytes, p.Arguments.AfterTokens = 32+rng.IntN(500), rng.IntN(2000)
	p.Budget.Tokens = rng.IntN(2) * (100 + rng.IntN(3000))
	p.Summarise.KeepTurns, p.Summarise.KeepMessages, p.Summarise.MinTokens = rng.IntN(3), rng.IntN(8), rng.IntN(500)
	p.Summarise.MaxTokens = 100 + rng.IntN(1000)
	p.Truncate.Enabled = maybe(3)
}

// compact runs the engine once.
func (l *laws) compact(in Input) outcome {
	l.t.Helper()
	plan, err := Make(in)
	if err != nil {
		l.t.Fatal(err)
	}
	made, err := Render(in, plan)
	if err != nil {
		l.t.Fatal(err)
	}
	return outcome{in, plan, made}
}

// addsUp: the manifest is the difference, and the tokens are those that a fresh look at the bytes finds.
func (l *laws) addsUp(o outcome) {
	saved, before, looked := int64(0), int64(0), int64(0)
	for _, a := range o.plan.Actions {
		saved += int64(a.TokensBefore - a.TokensAfter)
	}
	rest := int64(0)
	for _, e := range o.in.Tail {
		before += int64(e.Tokens)
		if e.Seq > o.made.Through {
			rest += int64(e.Tokens)
		}
	}
	if o.in.Base != nil {
		before += o.in.Base.Tokens
	}
	for _, body := range l.split(o.made) {
		found, err := wire.Inspect(o.in.Format, body)
		if err != nil {
			l.t.Fatalf("the rendition of a message is no message: %v\n%s", err, body)
		}
		looked += int64(found.Tokens)
	}
	got := []int64{o.plan.Before, o.plan.After, o.plan.Before - o.plan.After, o.made.Tokens}
	if diff := cmp.Diff([]int64{before, looked + rest, saved, looked}, got); diff != "" {
		l.t.Errorf("before, after, saved, tokens of the checkpoint (-counted +said):\n%s", diff)
	}
	if saved < 0 {
		l.t.Errorf("the view grew by %d tokens", -saved)
	}
}

// split returns the messages of a checkpoint.
func (l *laws) split(c *Checkpoint) [][]byte {
	array := append(append([]byte{'['}, c.Body...), ']')
	if !json.Valid(array) {
		l.t.Fatalf("the rendition is no JSON: %s", array)
	}
	var bodies [][]byte
	for element := range rawjson.Elements(array, 0) {
		bodies = append(bodies, element.Of(array))
	}
	return bodies
}

// reachesThrough: a checkpoint ends at the end, or before the unit of the newest assistant message whose calls wait.
func (l *laws) reachesThrough(o outcome) {
	last := o.in.Tail
	end := o.in.Base.through()
	if len(last) > 0 {
		end = last[len(last)-1].Seq
	}
	want, _ := l.boundary(end)
	if o.made.Through != want || o.plan.Through != want {
		l.t.Errorf("through %d (plan %d), want %d of %d", o.made.Through, o.plan.Through, want, end)
	}
}

func (c *Checkpoint) through() int64 {
	if c == nil {
		return 0
	}
	return c.Through
}

// boundary says where a checkpoint of the first n messages must end, and in which unit, by order of beginning, each
// message is. It walks the messages as slowly and plainly as can be.
func (l *laws) boundary(n int64) (through int64, units []int) {
	pending := map[string]int{} // calls of the newest assistant message without an answer
	answered := map[[2]int]bool{}
	unit, asked := 0, -1
	for m := range int(n) {
		found := &l.originals[m]
		waiting := 0
		for _, c := range pending {
			waiting += c
		}
		if m == 0 || found.Role == "assistant" || found.StartsUnit && waiting == 0 {
			unit++
		}
		units = append(units, unit)
		for _, part := range found.Parts {
			if part.Kind == wire.Result {
				if at, ok := l.nearest(m, part.CallID, answered); ok {
					answered[at] = true
					if at[0] == asked {
						pending[part.CallID]--
					}
				}
			}
		}
		if found.Role != "assistant" {
			continue
		}
		asked, pending = m, map[string]int{}
		for _, part := range found.Parts {
			if part.Kind == wire.Call {
				pending[part.CallID]++
			}
		}
	}
	for _, c := range pending {
		if c > 0 {
			return int64(slices.Index(units, units[asked])), units
		}
	}
	return n, units
}

// nearest finds the nearest call before message m with an id and without an answer.
func (l *laws) nearest(m int, id string, answered map[[2]int]bool) ([2]int, bool) {
	for c := m - 1; c >= 0; c-- {
		parts := l.originals[c].Parts
		for i := len(parts) - 1; i >= 0; i-- {
			if parts[i].Kind == wire.Call && parts[i].CallID == id && !answered[[2]int{c, i}] {
				return [2]int{c, i}, true
			}
		}
	}
	return [2]int{}, false
}

// rendered is a message of a rendition: of the log, or one that stands for others.
type rendered struct {
	message
	body []byte
	unit int
}

// shown reads the messages of a checkpoint, with the seqs that its state gives them.
func (l *laws) shown(c *Checkpoint) []rendered {
	l.t.Helper()
	h, err := readHistory(Input{Format: l.in.Format, Policy: l.in.Policy, WindowTokens: 1, Base: c})
	if err != nil {
		l.t.Fatal(err)
	}
	bodies, unit := l.split(c), -1
	if len(bodies) != len(h.messages) {
		l.t.Fatalf("%d messages in the rendition, %d in its state", len(bodies), len(h.messages))
	}
	var all []rendered
	for m := range h.messages {
		if h.messages[m].whole {
			unit++
		}
		all = append(all, rendered{h.messages[m], bodies[m], unit})
	}
	return all
}

// unitsCover: the units are all messages, each once, and a call is never in another unit than its answer.
func (l *laws) unitsCover(o outcome) {
	seqs, tokens, unitOf := 0, int64(0), map[int]int{}
	for _, m := range l.shown(o.made) {
		if m.any() {
			seqs += m.messages
			continue
		}
		seqs++
		unitOf[int(m.seq-1)] = m.unit
	}
	messages := 0
	for i, u := range o.made.Units {
		if i > 0 && o.made.Body[u.Offset-1] != ',' {
			l.t.Errorf("unit %d does not begin at %d", i, u.Offset)
		}
		messages += u.Messages
		tokens += u.Tokens
	}
	if int64(seqs) != o.made.Through || int64(messages) != o.made.Through || tokens != o.made.Tokens {
		l.t.Errorf("%d messages shown, %d and %d tokens in units, want %d and %d", seqs, messages, tokens, o.made.Through, o.made.Tokens)
	}
	answered, open := map[[2]int]bool{}, 0
	for m := range int(o.made.Through) {
		_, there := unitOf[m]
		for _, part := range l.originals[m].Parts {
			switch part.Kind {
			case wire.Call:
				if there {
					open++
				}
			case wire.Result:
				if at, ok := l.nearest(m, part.CallID, answered); ok {
					answered[at] = true
					unit, asked := unitOf[at[0]]
					if asked {
						open--
					}
					if asked && unit != unitOf[m] { // a call may have left before its late answer came
						l.t.Errorf("message %d is in unit %d, its call in message %d is in unit %d", m+1, unitOf[m], at[0]+1, unitOf[at[0]])
					}
				}
			}
		}
	}
	if open != len(o.made.OpenCalls) {
		l.t.Errorf("%d open calls, want %d", len(o.made.OpenCalls), open)
	}
}

func (l *laws) deterministic(o outcome) {
	again := l.compact(o.in)
	l.same("the same input", o.made, again.made)
}

// same compares checkpoints. cmp.Diff alone would look at every byte of their bodies.
func (l *laws) same(what string, want, got *Checkpoint) {
	l.t.Helper()
	if reflect.DeepEqual(want, got) {
		return
	}
	if !bytes.Equal(want.Body, got.Body) {
		l.t.Errorf("%s makes another body:\n-%s\n+%s", what, want.Body, got.Body)
		return
	}
	l.t.Errorf("%s makes another checkpoint:\n%s", what, cmp.Diff(want, got))
}

// idempotent: what was just compacted has nothing left to do.
func (l *laws) idempotent(o outcome) {
	in := l.in
	in.Base, in.Tail = o.made, after(l.in.Tail, o.made.Through)
	again := l.compact(in)
	if again.plan.Changed() || len(again.plan.Results) > 0 {
		l.t.Errorf("compacting again does %v", again.plan.Actions)
	}
	l.same("compacting again", o.made, again.made)
}

func after(entries []Entry, seq int64) []Entry {
	for i, e := range entries {
		if e.Seq > seq {
			return entries[i:]
		}
	}
	return nil
}

// untouched: only results that the manifest names have other bytes, they have fewer, they say how to get the whole
// back, and the whole is among what is to be persisted.
func (l *laws) untouched(o outcome) {
	actions := map[[2]int]Action{}
	for _, a := range o.plan.Actions {
		actions[[2]int{int(a.Seq), a.Part}] = a
	}
	persisted := map[string][]byte{}
	for _, r := range o.plan.Results {
		if r.SHA256 != sha256.Sum256(r.Stored) || persisted[r.Ref.String()] != nil {
			l.t.Errorf("result %s twice, or with another sum", r.Ref)
		}
		persisted[r.Ref.String()] = r.Stored
	}
	var view []wire.Message
	var seqs []int64
	for _, m := range l.shown(o.made) {
		found, err := wire.Inspect(l.in.Format, m.body)
		if err != nil {
			l.t.Fatal(err)
		}
		view, seqs = append(view, found), append(seqs, m.seq)
		if !m.any() {
			l.onlyActedOn(m, &found, actions, persisted)
		}
	}
	if len(persisted) > 0 {
		l.t.Errorf("results are persisted that no action names: %d", len(persisted))
	}
	l.asValid(view, seqs)
}

// onlyActedOn: a message has the bytes that it came with, but for the parts that the manifest names.
func (l *laws) onlyActedOn(m rendered, found *wire.Message, actions map[[2]int]Action, persisted map[string][]byte) {
	entry, original := l.in.Tail[m.seq-1], l.originals[m.seq-1]
	var edits []wire.Edit
	for i, part := range original.Parts {
		a, acted := actions[[2]int{int(m.seq), part.Index}]
		if !acted {
			continue
		}
		now := found.Parts[i].Value.Of(m.body)
		edits = append(edits, wire.Edit{Span: part.Value, With: now})
		text, _ := rawjson.Unquote(nil, quotedValue(now))
		named := l.in.Policy.Wording != defaultWording() || a.Do == Squeeze || bytes.Contains(text, []byte("read_result "+a.Ref+" "))
		if len(now) >= part.Value.End-part.Value.Start || !named && a.Do != Omit || a.Do == Omit && !bytes.Contains(text, []byte(a.Ref)) {
			l.t.Errorf("message %d part %d became %s", m.seq, part.Index, now)
		}
		if want := wire.ResultText(l.in.Format, entry.Body, part); !bytes.Equal(persisted[a.Ref], want.Stored) {
			l.t.Errorf("%s keeps other bytes than message %d part %d has", a.Ref, m.seq, part.Index)
		}
		delete(persisted, a.Ref)
	}
	if want := bytes.TrimSpace(wire.Replace(nil, entry.Body, edits)); !bytes.Equal(want, bytes.TrimSpace(m.body)) {
		l.t.Errorf("message %d has changed outside its parts:\n%s\n%s", m.seq, entry.Body, m.body)
	}
}

// quotedValue is a string literal as it is, anything else as one.
func quotedValue(value []byte) []byte {
	if value[0] == '"' {
		return value
	}
	return rawjson.Quote(nil, value)
}

// asValid: the rendition breaks no rule of the provider that the originals keep.
func (l *laws) asValid(view []wire.Message, seqs []int64) {
	type breach struct {
		seq  int64
		rule string
	}
	before := map[breach]bool{}
	for _, v := range wire.ValidateMessages(l.in.Format, l.originals) {
		before[breach{int64(v.Message + 1), fmt.Sprint(v.Rule)}] = true
	}
	for _, v := range wire.ValidateMessages(l.in.Format, view) {
		if !before[breach{seqs[v.Message], fmt.Sprint(v.Rule)}] {
			l.t.Errorf("message %d of the rendition, number %d of the log, breaks %s: %s", v.Message+1, seqs[v.Message], v.Rule, v.Detail)
		}
	}
}

// protected: the newest units and messages, the newest message of the user and the listed tools stay, whatever the stages
// want, caps of giants aside.
func (l *laws) protected(o outcome) {
	_, units := l.boundary(int64(len(l.originals)))
	rule := &l.in.Policy.Protect
	for _, a := range o.plan.Actions {
		if a.Do == Cap {
			continue
		}
		newest := units[len(units)-1]
		if units[a.LastSeq-1] > newest-rule.LastUnits || a.LastSeq > int64(len(units)-rule.LastMessages) {
			l.t.Errorf("%s up to message %d of %d, unit %d of %d", a.Do, a.LastSeq, len(units), units[a.LastSeq-1], newest)
		}
		if slices.Contains(rule.Tools, a.Tool) && a.Part >= 0 {
			l.t.Errorf("%s of a part of %s", a.Do, a.Tool)
		}
	}
	if m := o.plan.history.newestUser(); rule.NewestUser && m >= 0 && o.plan.leaves(m) {
		l.t.Errorf("message %d has left, the newest of the user", m+1)
	}
}

// incremental: a chain of compactions makes the bytes that one from the log makes, each result only moves down the
// ladder, and is persisted exactly once.
func (l *laws) incremental(whole outcome) {
	if l.in.Policy.Summarise.Enabled {
		return // a summary of a summary is another one
	}
	if l.in.Policy.Truncate.Enabled && l.lateAnswers() {
		return // a call that was dropped as abandoned leaves its late answer behind; no provider takes one
	}
	in := l.in
	in.Tail = nil
	ladder, seen := map[string]Action{}, map[string]bool{}
	var last outcome
	for at := 0; at < len(l.in.Tail); {
		at += 1 + l.rng.IntN(len(l.in.Tail)-at)
		in.Tail = after(l.in.Tail[:at], in.Base.through())
		last = l.compact(in)
		l.reachesThrough(last)
		l.unitsCover(last)
		for _, a := range last.plan.Actions {
			if before, ok := ladder[a.Ref]; a.Ref != "" && ok && (a.Do.rung() < before.Do.rung() || a.TokensAfter > before.TokensAfter) {
				l.t.Errorf("%s went from %v to %v", a.Ref, before, a)
			}
			ladder[a.Ref] = a
		}
		for _, r := range last.plan.Results {
			if seen[r.Ref.String()] {
				l.t.Errorf("%s is persisted again", r.Ref)
			}
			seen[r.Ref.String()] = true
		}
		if last.made.Through > 0 {
			in.Base = last.made
		}
	}
	l.addsUp(last)
	want, got := *whole.made, *last.made
	want.State, got.State = nil, nil
	l.same("from the log and then incremental", &want, &got)
	if len(seen) != len(whole.plan.Results) && whole.plan.departure == nil {
		l.t.Errorf("%d results persisted on the way, %d from the log", len(seen), len(whole.plan.Results))
	}
}

// lateAnswers reports whether a result comes after another assistant message than its call's.
func (l *laws) lateAnswers() bool {
	asked, answered := -1, map[[2]int]bool{}
	for m := range l.originals {
		if l.originals[m].Role == "assistant" {
			asked = m
		}
		for _, part := range l.originals[m].Parts {
			if part.Kind != wire.Result {
				continue
			}
			if at, ok := l.nearest(m, part.CallID, answered); ok {
				if answered[at] = true; at[0] != asked {
					return true
				}
			}
		}
	}
	return false
}

// otherPolicy: under whatever policy, a result that has left only moves down the ladder, and the view does not grow.
func (l *laws) otherPolicy(o outcome) {
	in := l.in
	in.Base, in.Tail, in.Policy = o.made, after(l.in.Tail, o.made.Through), randomPolicy(l.rng)
	next := l.compact(in)
	l.addsUp(next)
	ladder := map[string]Do{}
	for _, a := range o.plan.Actions {
		ladder[a.Ref] = a.Do
	}
	for _, a := range next.plan.Actions {
		if before, left := ladder[a.Ref]; a.Ref != "" && left && (a.Do.rung() < before.rung() || a.TokensAfter > a.TokensBefore) {
			l.t.Errorf("another policy took %s from %s to %v", a.Ref, before, a)
		}
	}
}
