package replay

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
)

// withModel returns the default policy with a model for summaries.
func withModel() policy.Policy {
	p := policy.Default()
	p.Summarise.Model = "small"
	return p
}

// TestAModelThatWritesTheSameLosesNothing compares policies with and without a model that writes what Extract would. Its
// segments have other lengths, and so other units stay beside them: that may be one call in ten.
func TestAModelThatWritesTheSameLosesNothing(t *testing.T) {
	t.Parallel()
	asked := 0
	const factor = 1.15 // the samples have some fifty far calls; a model answers one compaction later
	var ownFar, far, ownCalls, calls, ownBacks, backs float64
	for _, s := range sampled() {
		without := measured(t, s, Under("without", policy.Default()), sampleWindow)
		with := measured(t, s, Under("with", withModel()), sampleWindow)
		far, ownFar = far+with.All.Far.Kept, ownFar+without.All.Far.Kept
		calls, ownCalls = calls+with.All.Calls.Kept, ownCalls+without.All.Calls.Kept
		backs, ownBacks = backs+float64(with.All.ReadBacks), ownBacks+float64(without.All.ReadBacks)
		if without.All.Summaries > 0 {
			t.Errorf("%s: a model was asked that no policy names", s.Name)
		}
		asked += with.All.Summaries
	}
	if factor*far < ownFar || factor*calls < ownCalls || backs > factor*ownBacks {
		t.Errorf("%v far calls, %v calls, %v read-backs, and %v, %v, %v without a model", far, calls, backs, ownFar, ownCalls, ownBacks)
	}
	if asked == 0 {
		t.Error("no model was asked")
	}
}

func TestTheCostHasTheCallsOfTheModel(t *testing.T) {
	t.Parallel()
	s := sampled()[0]
	free := measured(t, s, Under("free", withModel()).Priced(Price{}), sampleWindow)
	paid := measured(t, s, Under("paid", withModel()).Priced(Price{Input: 1}), sampleWindow)
	dear := measured(t, s, Under("dear", withModel()).Priced(Price{Input: 2}), sampleWindow)
	if free.All.Summaries == 0 || free.All.Summaries != paid.All.Summaries {
		t.Fatalf("%d and %d calls", free.All.Summaries, paid.All.Summaries)
	}
	for _, c := range Cards() {
		input := paid.All.Cost[c.Name] - free.All.Cost[c.Name]
		again := dear.All.Cost[c.Name] - paid.All.Cost[c.Name]
		if input < 1000 || again < 0.99*input || again > 1.01*input {
			t.Errorf("%s: the calls cost %.0f, and at twice the price %.0f more", c.Name, input, again)
		}
	}
}

func TestAnAnswerIsPaidOnce(t *testing.T) {
	t.Parallel()
	paid := 0
	m := &model{name: "small", price: ownPrice, kept: map[summary.Digest]summary.Answer{}, paid: func(float64) { paid++ }}
	long := summary.Part{Kind: summary.Text, Text: "The limit is 4217 because the server has no more. " + strings.Repeat("And so on it goes. ", 200)}
	r := summary.Request{First: 1, Last: 1, Messages: []summary.Message{{Seq: 1, Role: "assistant", Parts: []summary.Part{long}}}}
	for range 3 {
		if a, err := m.write(r); err != nil || a.Writer != "small" || !strings.Contains(a.Summary, "4217") {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if paid != 1 {
		t.Errorf("one request was paid %d times", paid)
	}
	if _, err := m.write(summary.Request{}); !errors.Is(err, summary.ErrFailed) {
		t.Errorf("nothing to summarise: %v", err)
	}
}
