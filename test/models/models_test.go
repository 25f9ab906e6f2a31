package main

import (
	"encoding/json"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/test/harness"
)

var (
	mutated = flag.Bool("mutants", false, "run every mutant, which takes a minute each")
)

// brief returns a run that takes a few seconds on an idle machine. A busy one is late, which is not looked at here.
func brief(t *testing.T) options {
	return options{
		compactions: 40, faults: 0.3, seed: 7, sessions: 1, slow: 2 * time.Second, kills: 3 * time.Second,
		quick: 2 * time.Second, outage: 8, idle: 3 * time.Second, settles: 2 * time.Minute, lasts: 2 * time.Minute, dir: t.TempDir(), out: t.Output(),
	}
}

// timed are the kinds of findings that a machine with much else to do makes by itself, and that only the soak looks
// at: others did nothing while a model took two seconds, and a worker had its answer for longer than late.
var timed = []string{"starved: ", "paid twice: "}

// TestModelsThatFailDoNoHarm runs the short version of the program, for as long as a busy machine needs.
func TestModelsThatFailDoNoHarm(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and lets models fail for half a minute; internal/jobs has each fault")
	}
	t.Parallel()
	o := brief(t)
	o.idle, o.settles, o.lasts = time.Minute, 10*time.Minute, 10*time.Minute
	found, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	found.print(t.Output())
	for _, text := range found.anomalies {
		if !slices.ContainsFunc(timed, func(kind string) bool { return strings.HasPrefix(text, kind) }) {
			t.Error(text)
		}
	}
	if found.paid == 0 || found.messages == 0 || found.slowCalls == 0 || found.asked == 0 || found.deaths() == 0 {
		t.Error("the run checked nothing")
	}
	for _, fault := range fake.Faults() {
		if found.met[fault] == 0 {
			t.Errorf("no call has met the fault %s", fault)
		}
	}
}

// TestMutantsFitTheSources reports a mutant whose place in the sources has changed, without building it.
func TestMutantsFitTheSources(t *testing.T) {
	t.Parallel()
	if err := harness.Fit(t.Context(), mutants); err != nil {
		t.Error(err)
	}
}

// TestEveryMutantIsFound runs a Varve with each of the defects.
func TestEveryMutantIsFound(t *testing.T) {
	if !*mutated {
		t.Skip("takes a minute a mutant: -args -mutants")
	}
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			o := brief(t)
			o.mutant, o.lasts, o.settles = m.Name, 30*time.Second, 30*time.Second
			o.compactions = 1000 // more than there are in this time, all of which is used
			o.quick, o.outage = 8*time.Second, 10
			found, err := run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			found.print(t.Output())
			for _, text := range found.anomalies {
				if strings.HasPrefix(text, m.Finds+": ") {
					return
				}
			}
			t.Errorf("nothing of the kind %q was found", m.Finds)
		})
	}
}

// TestTheOracleSeesWhatProvidersRefuse checks the check of views.
func TestTheOracleSeesWhatProvidersRefuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format, messages string
		valid            bool
	}{
		"a whole turn":                {chat, `[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]`, true},
		"a call without a result":     {chat, `[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]`, false},
		"a result without a call":     {chat, `[{"role":"tool","tool_call_id":"a","content":"x"}]`, false},
		"an answer that says nothing": {chat, `[{"role":"assistant","content":null}]`, false},
		"a tool_use without a result": {anthropic, `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]`, false},
		"an empty text":               {anthropic, `[{"role":"user","content":[{"type":"text","text":""}]}]`, false},
		"an assistant first":          {anthropic, `[{"role":"assistant","content":"x"}]`, false},
	} {
		var messages []json.RawMessage
		if err := json.Unmarshal([]byte(c.messages), &messages); err != nil {
			t.Fatal(err)
		}
		if said := refused(c.format, messages); (said == "") != c.valid {
			t.Errorf("%s: refused for %q", name, said)
		}
	}
}

// TestTheOracleJudgesGrowth compares views of the same messages.
func TestTheOracleJudgesGrowth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		later servedView
		grown int
	}{
		{"the same checkpoint", servedView{Checkpoint: 1, LastSeq: 4, Messages: texts(9000)}, 0},
		{"a smaller one", servedView{Checkpoint: 2, LastSeq: 4, Messages: texts(10)}, 0},
		{"a larger one", servedView{Checkpoint: 2, LastSeq: 4, Messages: texts(9000)}, 1},
		{"after another message", servedView{Checkpoint: 2, LastSeq: 5, Messages: texts(9000)}, 0},
	} {
		r := &rig{found: newFindings()}
		of := &conversation{weights: map[int64]weight{}}
		r.compareWeight(of, servedView{Checkpoint: 1, LastSeq: 4, Messages: texts(1000)})
		r.compareWeight(of, c.later)
		if n := len(r.found.growths); n != c.grown {
			t.Errorf("%s: %d growths, want %d", c.name, n, c.grown)
		}
	}
}

func texts(n int) []json.RawMessage {
	return []json.RawMessage{json.RawMessage(strings.Repeat("x", n))}
}

// TestTheOracleExcusesOnlyWhatAKillCanHaveLost counts payments of one input.
func TestTheOracleExcusesOnlyWhatAKillCanHaveLost(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	paid := func(input string, began, ended time.Duration) fake.CallRecord {
		return fake.CallRecord{Input: input, Paid: true, Began: at.Add(began), Ended: at.Add(ended)}
	}
	for name, c := range map[string]struct {
		calls     []fake.CallRecord
		anomalies int
	}{
		"two inputs":                {[]fake.CallRecord{paid("a", 0, 1), paid("b", 0, 1)}, 0},
		"one again":                 {[]fake.CallRecord{paid("a", 0, 1), paid("a", 2, 3)}, 1},
		"one again after a kill":    {[]fake.CallRecord{paid("a", time.Hour-1, time.Hour+1), paid("a", 2, 3)}, 0},
		"before it could be stored": {[]fake.CallRecord{paid("a", 0, time.Hour-time.Second), paid("a", 2, 3)}, 0},
		"sent before the kill":      {[]fake.CallRecord{paid("a", time.Hour+time.Second, time.Hour+2*time.Second), paid("a", 2, 3)}, 0},
		"twice again after a kill": {[]fake.CallRecord{
			paid("a", time.Hour-1, time.Hour+1), paid("a", 2, 3), paid("a", 4, 5)}, 1},
	} {
		r := &rig{found: newFindings()}
		r.found.kills = []time.Time{at.Add(time.Hour)}
		if r.checkPaid(c.calls); len(r.found.anomalies) != c.anomalies {
			t.Errorf("%s: %v", name, r.found.anomalies)
		}
	}
}
