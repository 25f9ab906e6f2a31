package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/samples"
)

// sampleWindow is a window that all samples are compacted in many times.
const sampleWindow = 16_000

// sampled returns the project's own samples as sessions.
var sampled = sync.OnceValue(func() (list []*Session) {
	files, err := samples.Files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".json") {
			continue
		}
		data, err := samples.Files.ReadFile(file.Name())
		if err != nil {
			panic(err)
		}
		read, err := importer.Read(context.Background(), importer.SessionID(file.Name()), data, importer.Auto)
		if err != nil {
			panic(err)
		}
		c := &read.Conversations[0]
		s := &Session{Name: c.ID, Format: c.Format}
		for i := range c.Messages {
			found, err := wire.Inspect(c.Format, c.Messages[i].Body)
			if err != nil {
				panic(err)
			}
			s.Messages = append(s.Messages, Message{Seq: int64(i + 1), Body: c.Messages[i].Body, Tokens: found.Tokens})
		}
		list = append(list, s)
	}
	return list
})

func measured(t *testing.T, s *Session, by Contender, window int) Outcome {
	t.Helper()
	o, err := Measure(t.Context(), s, by, window)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func yardstickNamed(t *testing.T, name string) Contender {
	t.Helper()
	y, err := Yardstick(name)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

func TestALogHasAllThatCallsNeed(t *testing.T) {
	t.Parallel()
	for _, s := range sampled() {
		o := measured(t, s, yardstickNamed(t, "never"), sampleWindow)
		if o.All.Calls.All < 20 || o.All.Far.All < 5 || o.All.Far.All > o.All.Calls.All {
			t.Errorf("%s: %.0f calls, %.0f of them far: that is no measure", s.Name, o.All.Calls.All, o.All.Far.All)
		}
		for what, r := range map[string]Ratio{"calls": o.All.Calls, "far": o.All.Far, "user": o.UserEnd} {
			if r.Kept != r.All {
				t.Errorf("%s: the whole log has %v of the %s", s.Name, r, what)
			}
		}
		if o.All.ReadBacks+o.Compactions != 0 || o.Peak >= s.Tokens() || o.Peak < s.Tokens()/2 {
			t.Errorf("%s: %d read-backs, %d compactions, a peak of %d of %d tokens",
				s.Name, o.All.ReadBacks, o.Compactions, o.Peak, s.Tokens())
		}
	}
}

// TestAViewOfNothingHasNothing has a policy that drops whatever it may after each message. The newest unit always stays,
// and may be so large that it begins 8,000 tokens back.
func TestAViewOfNothingHasNothing(t *testing.T) {
	t.Parallel()
	p := slidingHalf.policy()
	p.Trigger, p.TriggerTokens, p.TargetTokens = 0.9, 1, 1
	for _, s := range sampled() {
		o := measured(t, s, Under("nothing", p), sampleWindow)
		if o.All.Far.Kept > 0.25*o.All.Far.All {
			t.Errorf("%s: a view of nothing has %v of the far calls", s.Name, o.All.Far)
		}
		if o.All.ReadBacks == 0 || o.All.BackCost["anthropic"] <= 0 {
			t.Errorf("%s: nothing had to be read back", s.Name)
		}
	}
}

func TestAReplayIsDeterministic(t *testing.T) {
	t.Parallel()
	list := append([]Contender{}, yardstickNamed(t, "oracle"), yardstickNamed(t, "clear-keep3"))
	names, windows := []string{"default", "cortex", "codelia"}, []int{sampleWindow, 32_000}
	if testing.Short() {
		names, windows = names[:1], windows[:1]
	}
	for _, name := range names {
		p, err := policy.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, Under(name, p))
	}
	run := func() string {
		outcomes, err := MeasureAll(t.Context(), Tasks(sampled(), list, windows), func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		document, err := json.Marshal(Summarise(outcomes, Options{MeanViews: []int{12_000}}))
		if err != nil {
			t.Fatal(err)
		}
		return string(document)
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Error(diff)
	}
}

// TestTheYardsticksStandInOrder asserts that who knows the future keeps more than who drops blindly.
func TestTheYardsticksStandInOrder(t *testing.T) {
	t.Parallel()
	far := map[string]Ratio{}
	for _, name := range Yardsticks() {
		for _, s := range sampled() {
			o := measured(t, s, yardstickNamed(t, name), sampleWindow)
			far[name] = sumOf(far[name], o.All.Far)
			if name != "never" && o.Compactions == 0 {
				t.Errorf("%s did nothing to %s", name, s.Name)
			}
			if trims := name == "oracle" || name == "clear-keep3"; trims && o.Share.Tokens > int64(o.Share.Requests)*sampleWindow {
				t.Errorf("%s lets views of %s be larger than the window on the average", name, s.Name)
			}
		}
	}
	if oracle := far["oracle"].Share(); oracle <= far["sliding-half"].Share() || oracle <= far["clear-keep3"].Share() {
		t.Errorf("the oracle is not ahead: %v", far)
	}
}

func TestAReplayKeepsTheViewOfAWorker(t *testing.T) {
	t.Parallel()
	for _, s := range sampled() {
		in, err := Grow(s, Under(Default, policy.Default()), sampleWindow)
		if err != nil {
			t.Fatal(err)
		}
		if in.Base == nil || len(in.Tail) > 0 && in.Tail[0].Seq != in.Base.Through+1 {
			t.Fatalf("%s: the tail does not continue the checkpoint", s.Name)
		}
		tokens := in.Base.Tokens
		for i := range in.Tail {
			tokens += int64(in.Tail[i].Tokens)
		}
		if limit := in.Policy.Hard + 0.05; float64(tokens) > limit*sampleWindow {
			t.Errorf("%s: a view of %d tokens in a window of %d", s.Name, tokens, sampleWindow)
		}
	}
}

// TestACompactionWaitsForTheRecordedTimes has a policy that waits for a cold cache: only pauses let it act before hard.
func TestACompactionWaitsForTheRecordedTimes(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	p.Cache.TTLSeconds = 300
	waiting := Under("waiting", p)
	at := func(step time.Duration) *Session {
		s := &Session{Name: "paced", Format: sampled()[0].Format, Messages: slices.Clone(sampled()[0].Messages)}
		for i := range s.Messages {
			s.Messages[i].At = time.Unix(0, 0).Add(time.Duration(i) * step)
		}
		return s
	}
	slow := measured(t, at(time.Hour), waiting, sampleWindow)
	quick := measured(t, at(time.Second), waiting, sampleWindow)
	if slow.All.Tokens >= quick.All.Tokens {
		t.Errorf("with pauses the views have %d tokens, without %d: it does not wait", slow.All.Tokens, quick.All.Tokens)
	}
	never := yardstickNamed(t, "never")
	cold, warm := measured(t, at(time.Hour), never, sampleWindow), measured(t, at(time.Second), never, sampleWindow)
	card := Cards()[0]
	if want := card.Write * float64(cold.All.Tokens); cold.All.Cost[card.Name] != want {
		t.Errorf("cold requests cost %g, not %g", cold.All.Cost[card.Name], want)
	}
	lowest := card.Read*float64(warm.All.Tokens-warm.Peak) + card.Write*float64(warm.Peak)
	if diff := warm.All.Cost[card.Name] - lowest; diff < -1 || diff > 1 {
		t.Errorf("warm requests cost %g, not %g", warm.All.Cost[card.Name], lowest)
	}
}

func TestPlantedFactsAreFollowed(t *testing.T) {
	t.Parallel()
	s, err := sampled()[0].Plant(1)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.facts) < 8 || s.Tokens() <= sampled()[0].Tokens() {
		t.Fatalf("%d facts in %d tokens", len(s.facts), s.Tokens())
	}
	for _, f := range s.facts {
		for i := range s.Messages {
			if has := strings.Contains(string(s.Messages[i].Body), f.token); has != (i == f.message) {
				t.Errorf("%s %q: message %d has it: %v", f.kind.name, f.token, i, has)
			}
		}
	}
	plain := measured(t, s, yardstickNamed(t, "summarise-95"), sampleWindow)
	cleared := measured(t, s, yardstickNamed(t, "sliding-half"), sampleWindow)
	for i := range plain.Facts {
		f := &plain.Facts[i]
		if n := len(f.Views); n == 0 || len(f.Recall) != n || !f.Recall[n-1] {
			t.Errorf("%s: a summary names no ref that brings it back: %v", f.Kind, f.Recall)
		}
	}
	held := Ratio{}
	for _, f := range cleared.Facts {
		if n := len(f.Views); n > 4 {
			held.count(f.Views[n-1])
		}
	}
	if held.All < 3 || held.Kept > 0 {
		t.Errorf("after all compactions a view without old units holds %v of the facts", held)
	}
}

func TestTheReportIsBuiltOfOutcomes(t *testing.T) {
	t.Parallel()
	r := Summarise(invented(), Options{MeanViews: []int{15_000}, Windows: []int{20_000}})
	if len(r.Equal) != 2 || len(r.Same) != 2 {
		t.Fatalf("%d and %d rows", len(r.Equal), len(r.Same))
	}
	// default has 50 % at 10,000 and 70 % at 20,000 tokens; better has 80 % at both.
	better, own := r.Equal[0], r.Equal[1]
	if better.Contender != "better" || own.Far != 60 || better.Far != 80 || own.ReadBacks != 45 {
		t.Errorf("the rows are %+v", r.Equal)
	}
	if diff := cmp.Diff(&Interval{20, 20, 20}, better.Against); diff != "" {
		t.Errorf("all sessions are alike, so that all samples are: %s", diff)
	}
	if own.Against != nil || own.FullCost["anthropic"] != 165 {
		t.Errorf("the baseline's row is %+v", own)
	}
	if got := r.Behind([]string{"better", Default}, 15_000, 32_000); len(got) != 1 || !strings.Contains(got[0], "far calls than default: +20.0") {
		t.Errorf("default is behind: %q", got)
	}
	if got := r.Behind([]string{"better"}, 20_000); got != nil {
		t.Errorf("at a size that is not compared: %q", got)
	}
	if again := Summarise(invented(), Options{MeanViews: []int{30_000}}); again.Equal != nil {
		t.Errorf("no contender has views of that size: %v", again.Equal)
	}
}

// invented returns the outcomes of two contenders in two windows, over three sessions that are alike.
func invented() (list []Outcome) {
	for session := range 3 {
		for _, window := range []int{10_000, 20_000} {
			for _, name := range []string{Default, "better"} {
				far := map[bool]float64{true: 50, false: 70}[window == 10_000]
				if name == "better" {
					far = 80
				}
				o := Outcome{Session: fmt.Sprint(session), Contender: name, Window: window, LogTokens: 100_000}
				o.Late.Requests, o.Late.Tokens, o.Late.Far = 10, int64(10*window), Ratio{far, 100}
				o.All.ReadBacks = window / 1000
				o.All.Cost = map[string]float64{"anthropic": 50}
				o.All.BackCost = map[string]float64{"anthropic": 5}
				list = append(list, o)
			}
		}
	}
	return list
}

func TestIntervalsCoverWhatSessionsDiffer(t *testing.T) {
	t.Parallel()
	outcomes := invented()
	for i := range outcomes {
		if o := &outcomes[i]; o.Contender == "better" && o.Session != "0" {
			o.Late.Far.Kept = map[string]float64{"1": 40, "2": 60}[o.Session]
		}
	}
	at := func() Interval {
		for _, row := range Summarise(outcomes, Options{MeanViews: []int{15_000}}).Equal {
			if row.Against != nil {
				return *row.Against
			}
		}
		return Interval{}
	}
	one := at()
	if one.Difference != 0 || one.Low >= 0 || one.High <= 0 || one.Low < -20 || one.High > 20 {
		t.Errorf("the sessions differ by -20 to 20: %+v", one)
	}
	if two := at(); two != one {
		t.Errorf("another run draws other samples: %+v, %+v", one, two)
	}
}
