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

func calibrationOf(t testing.TB, store *postgres.Store, at session.Address) float64 {
	t.Helper()
	found, err := store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return found.Calibration
}

func newWideSession(t testing.TB, store *postgres.Store, at session.Address, window, overhead int) session.Address {
	t.Helper()
	if _, _, err := store.Create(t.Context(), at, session.Change{WindowTokens: &window, OverheadTokens: &overhead}, nil); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestTwentyTurnsWithUsageCalibrateASessionWithinThreePercent(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for i, truth := range []float64{0.7, 1, 1.28, 2.2} {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		at := newWideSession(t, store, session.Address{Tenant: tenant, ID: fmt.Sprint("s", i)}, 1_000_000, 2000)
		estimated, actual := 2000, truth*2000
		grow := func(tokens int) {
			estimated += tokens
			actual += float64(tokens) * truth * (0.9 + 0.2*random.Float64()) // no two messages are off by the same
		}
		for range 20 {
			question, answer := 500+random.IntN(1500), 50+random.IntN(300)
			mustAppend(t, store, batch(at, message("why?", question)))
			grow(question)
			mustAppend(t, store, answered(at, answer, int64(actual)))
			grow(answer)
		}
		got := calibrationOf(t, store, at) * float64(estimated)
		if off := math.Abs(got/actual - 1); off > 0.03 {
			t.Errorf("factor %v: %.0f tokens instead of %.0f, off by %.1f %%", truth, got, actual, 100*off)
		}
	}
}

func TestAUsageThatLiesIsClamped(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	for id, c := range map[string]struct {
		input       int64
		once, twice float64
	}{
		"much too much":   {1_000_000_000, 1.5, 1.875},
		"much too little": {1, 0.875, 0.78125},
		"none":            {0, 1, 1},
	} {
		at := newWideSession(t, store, session.Address{Tenant: tenant, ID: id}, 1_000_000, 0)
		mustAppend(t, store, batch(at, message("why?", 1000)))
		for _, want := range []float64{c.once, c.twice} {
			mustAppend(t, store, answered(at, 0, c.input))
			if got := calibrationOf(t, store, at); got != want {
				t.Errorf("%s: factor %v, want %v", id, got, want)
			}
		}
		for range 100 {
			mustAppend(t, store, answered(at, 0, c.input))
		}
		if got := calibrationOf(t, store, at); got < session.MinCalibration || got > session.MaxCalibration {
			t.Errorf("%s: factor %v after a hundred of them", id, got)
		}
	}
}

func TestUsageIsComparedWithWhatWasSent(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newWideSession(t, store, session.Address{Tenant: tenant, ID: "s"}, 1_000_000, 100)
	a := answered(at, 5000, 1000) // 100 of overhead and 400 of the question were sent
	a.Messages = append([]session.NewMessage{message("why?", 400)}, append(a.Messages, message("next", 900))...)
	mustAppend(t, store, a)
	if got := calibrationOf(t, store, at); got != 1.25 {
		t.Errorf("factor %v after twice the estimate, want 1.25", got)
	}
	empty := newWideSession(t, store, session.Address{Tenant: tenant, ID: "empty"}, 1_000_000, 0)
	mustAppend(t, store, answered(empty, 10, 1000))
	if got := calibrationOf(t, store, empty); got != 1 {
		t.Errorf("factor %v, although nothing was estimated", got)
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
		mustAppend(t, store, answered(at, 100, 800)) // twice as many: now a token counts 1.25, and 640 are 800
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
	if n, err := store.Sweep(t.Context(), tenant); err != nil || n != 1 {
		t.Errorf("the sweep found %d sessions over their trigger, %v", n, err)
	}
}

func TestAUsageMayMakeTheSessionDueByItself(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("why?", 600)))
	if done := mustAppend(t, store, answered(at, 0, 2400)); done.Compaction != session.CompactionQueued { // 600 × 1.5
		t.Errorf("%+v", done)
	}
}

func TestAnAppendThatIsRepeatedCalibratesOnce(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("why?", 100)))
	a := answered(at, 10, 200)
	a.Messages[0].ClientID = "m"
	for range 2 {
		mustAppend(t, store, a)
	}
	if got := calibrationOf(t, store, at); got != 1.25 {
		t.Errorf("factor %v, want 1.25", got)
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
		{answered(at, 0, 1800), 2.5},    // half of what was estimated, a step towards 1
		{counted(1_000_000, 1000), 2.5}, // the provider is believed from now on
	} {
		mustAppend(t, store, step.append)
		if got := calibrationOf(t, store, at); got != step.want {
			t.Errorf("factor %v, want %v", got, step.want)
		}
	}
}
