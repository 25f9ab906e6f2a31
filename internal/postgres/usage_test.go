package postgres_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

func answered(at session.Address, tokens int, input int64) session.Append {
	answer := message("yes", tokens)
	answer.Role = "assistant"
	a := batch(at, answer)
	a.Usage = &session.Usage{InputTokens: input}
	return a
}

func measured(t testing.TB, store *postgres.Store, at session.Address) session.Session {
	t.Helper()
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func newWideSession(t testing.TB, store *postgres.Store, at session.Address, window, overhead int) session.Address {
	t.Helper()
	if _, _, err := store.Create(t.Context(), at, session.Change{WindowTokens: &window, OverheadTokens: &overhead}, nil); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestAUsageIsBelievedAtOnce(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for i, truth := range []float64{0.7, 1, 1.28, 2.2} {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		at := newWideSession(t, store, session.Address{Tenant: tenant, ID: fmt.Sprint("s", i)}, 1_000_000, 2000)
		actual := 30_000.0 + 2000 // of tools that the store does not see
		for range 5 {
			question, answer := 500+random.IntN(1500), 50+random.IntN(300)
			mustAppend(t, store, batch(at, message("why?", question)))
			actual += float64(question) * truth
			a := answered(at, answer, int64(actual))
			a.Usage.OutputTokens = int64(float64(answer) * truth)
			actual += float64(answer) * truth
			mustAppend(t, store, a)
			if got := measured(t, store, at).CalibratedTokens(); math.Abs(float64(got)-actual) > 2 {
				t.Fatalf("factor %v: %d tokens instead of %.0f", truth, got, actual)
			}
		}
	}
}

func TestUnseenTokensAreWhatTheUsageCountsBeyondTheEstimate(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for id, c := range map[string]struct {
		usage session.Usage
		want  int64 // beyond 100 of overhead, 400 of the question, and 50 of the answer if it is counted
	}{
		"the request alone":           {session.Usage{InputTokens: 1000}, 500},
		"the request and its answer":  {session.Usage{InputTokens: 1000, OutputTokens: 60}, 510},
		"cached tokens count":         {session.Usage{InputTokens: 10, CacheCreationTokens: 90, CacheReadTokens: 900}, 500},
		"less than was estimated":     {session.Usage{InputTokens: 400}, -100},
		"too little to be true":       {session.Usage{InputTokens: 1}, -250},
		"more than the window":        {session.Usage{InputTokens: 1_000_000_000}, 99_500},
		"an answer without a request": {session.Usage{OutputTokens: 60}, 0},
	} {
		at := newWideSession(t, store, session.Address{Tenant: tenant, ID: id}, 100_000, 100)
		a := answered(at, 50, 0)
		a.Usage = &c.usage
		a.Messages = append([]session.NewMessage{message("why?", 400)}, append(a.Messages, message("next", 900))...)
		mustAppend(t, store, a)
		if got := measured(t, store, at); got.UnseenTokens != c.want || got.Calibration != 1 {
			t.Errorf("%s: %d unseen tokens, factor %v, want %d", id, got.UnseenTokens, got.Calibration, c.want)
		}
	}
}

// TestAReportAboveTheTriggerQueuesARun: the very append that brings it does, whatever the estimate is.
func TestAReportAboveTheTriggerQueuesARun(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for id, c := range map[string]struct {
		estimate int
		used     int64
		want     session.Compaction
	}{
		"below":                       {60_000, 102_399, session.CompactionNone},
		"at the trigger":              {60_000, 102_400, session.CompactionQueued},
		"far above a small estimate":  {3_000, 120_020, session.CompactionQueued},
		"tools that nobody declared":  {30_000, 105_000, session.CompactionQueued},
		"an estimate that is too big": {150_000, 101_000, session.CompactionNone},
	} {
		at := newWideSession(t, store, session.Address{Tenant: tenant, ID: id}, 128_000, 0)
		a := answered(at, 100, c.used-40)
		a.Usage.OutputTokens = 40
		a.Messages = append([]session.NewMessage{message("why?", c.estimate-100)}, a.Messages...)
		if got := mustAppend(t, store, a).Compaction; got != c.want {
			t.Errorf("%s: %s, want %s", id, got, c.want)
		}
	}
}

func TestTheTriggerIsThatOfCalibratedTokens(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for _, calibrate := range []bool{true, false} {
		at := newSession(t, store, tenant, fmt.Sprint("calibrated ", calibrate))
		policy := session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{"tokens":{"calibrate":` + strconv.FormatBool(calibrate) + `}}`)}
		if _, _, err := store.Update(t.Context(), at, session.Change{Policy: &policy}, nil); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, store, batch(at, message("why?", 400)))
		mustAppend(t, store, answered(at, 100, 560)) // 160 more than were estimated: 640 are 800
		last := []session.NewMessage{message("a", 139), message("b", 1)}
		var got []session.Compaction
		for _, m := range last {
			got = append(got, mustAppend(t, store, batch(at, m)).Compaction)
		}
		want := session.CompactionNone
		if calibrate {
			want = session.CompactionQueued
		}
		if got[0] != session.CompactionNone || got[1] != want {
			t.Errorf("calibrate %v: %v, want none and %s", calibrate, got, want)
		}
	}
	loseJobs(t, store)
	if n, err := sweep(t, store); err != nil || n != 1 {
		t.Errorf("the sweep found %d sessions over their trigger, %v", n, err)
	}
}

func TestAUsageMayMakeTheSessionDueByItself(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("why?", 600)))
	if done := mustAppend(t, store, answered(at, 0, 800)); done.Compaction != session.CompactionQueued {
		t.Errorf("%+v", done)
	}
}

func TestAnAppendThatIsRepeatedMeasuresOnce(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("why?", 100)))
	a := answered(at, 10, 200)
	a.Messages[0].ClientID = "m"
	for range 2 {
		mustAppend(t, store, a)
	}
	if got := measured(t, store, at).UnseenTokens; got != 100 {
		t.Errorf("%d unseen tokens, want 100", got)
	}
}

func TestMessagesThatWereCountedExactlyCalibrateTheSession(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newWideSession(t, store, session.Address{Tenant: tenant, ID: "s"}, 1_000_000, 0)
	counted := func(estimate int, exact int64) session.Append {
		a := batch(at, message("why?", estimate))
		a.ExactTokens = &exact
		return a
	}
	for _, step := range []struct {
		append session.Append
		want   float64
	}{
		{batch(at, message("not counted", 1000)), 1},
		{counted(100, 150), 1.5},
		{counted(300, 250), 1},
		{counted(400, 100_000), session.MaxCalibration},
		{answered(at, 0, 1800), 1}, // the provider is believed from now on
		{counted(1_000, 3000), 1},
	} {
		mustAppend(t, store, step.append)
		if got := measured(t, store, at).Calibration; got != step.want {
			t.Errorf("factor %v, want %v", got, step.want)
		}
	}
}

// TestAUsageMayBeOfARequestFromBeforeACompaction: the answer to it comes when the view has shrunk, and tells nothing
// about tools.
func TestAUsageMayBeOfARequestFromBeforeACompaction(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newWideSession(t, store, session.Address{Tenant: tenant, ID: "s"}, 100_000, 0)
	mustAppend(t, store, batch(at, message("why?", 40_000)))
	mustAppend(t, store, answered(at, 0, 45_000))
	if err := commitOf(t, store, at, 0, 2, 2, 10_000, "compacted"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ used, want int64 }{{46_000, 6_000}, {17_000, 7_000}} {
		mustAppend(t, store, answered(at, 0, step.used))
		if got := measured(t, store, at).UnseenTokens; got != step.want {
			t.Errorf("%d unseen tokens after a report of %d, want %d", got, step.used, step.want)
		}
	}
}
