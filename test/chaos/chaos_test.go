package main

import (
	"encoding/json"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/varve-dev/varve/test/harness"
)

var (
	lasts   = flag.Duration("storm", 8*time.Second, "how long TestNothingIsLostUnderFaults brings faults")
	mutated = flag.Bool("mutants", false, "run every mutant, which takes a minute each")
)

// TestNothingIsLostUnderFaults brings faults at random. How soon compaction is back is measured by the program: a busy
// machine is late.
func TestNothingIsLostUnderFaults(t *testing.T) {
	t.Parallel()
	found, err := run(t.Context(), options{
		seed: uint64(time.Now().UnixNano()), lasts: *lasts, writers: 4, dir: t.TempDir(), patience: 2 * time.Minute,
		out: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	found.print(t.Output())
	if len(found.anomalies) > 0 {
		t.Errorf("%d anomalies", len(found.anomalies))
	}
	if found.appends.Load() == 0 || found.views.Load() == 0 || found.refs.Load() == 0 || found.faults == 0 {
		t.Error("the run checked nothing")
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
			found, err := run(t.Context(), options{
				seed: 7, lasts: time.Minute, only: m.Only, mutant: m.Name, writers: 8, users: 3, dir: t.TempDir(),
				patience: 10 * time.Second, out: t.Output(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if found.print(t.Output()); len(found.anomalies) == 0 {
				t.Errorf("nothing was found")
			}
		})
	}
}

// TestTheOracleSeesWhatProvidersRefuse checks the checks of views.
func TestTheOracleSeesWhatProvidersRefuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ format, messages string }{
		"a call without a result":      {chat, `[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"user","content":"x"}]`},
		"a result without a call":      {chat, `[{"role":"tool","tool_call_id":"a","content":"x"}]`},
		"two results of a call":        {chat, `[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}]`},
		"an empty answer":              {chat, `[{"role":"assistant","content":null}]`},
		"a tool_use without a result":  {anthropic, `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":"x"}]`},
		"a tool_result without a call": {anthropic, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`},
		"text before a tool_result":    {anthropic, `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}]`},
		"an empty text":                {anthropic, `[{"role":"user","content":""}]`},
		"an assistant first":           {anthropic, `[{"role":"assistant","content":"x"}]`},
	} {
		var messages []json.RawMessage
		if err := json.Unmarshal([]byte(c.messages), &messages); err != nil {
			t.Fatal(err)
		}
		if len(invalid(c.format, messages)) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
}

// TestTheOracleSeesWhatALogLost gives it logs that do not fit what was asked.
func TestTheOracleSeesWhatALogLost(t *testing.T) {
	t.Parallel()
	messages := func(texts ...string) (all []json.RawMessage) {
		for _, text := range texts {
			all = append(all, json.RawMessage(text))
		}
		return all
	}
	asked := []*attempt{
		{id: "a", messages: messages(`"a1"`, `"a2"`), outcome: acked, first: 1},
		{id: "b", messages: messages(`"b1"`, `"b2"`), outcome: unknown},
		{id: "c", messages: messages(`"c1"`), outcome: refused},
		{id: "d", messages: messages(`"d1"`), outcome: acked, first: 3},
	}
	for kind, log := range map[string][]json.RawMessage{
		"":          messages(`"a1"`, `"a2"`, `"d1"`, `"b1"`, `"b2"`),
		"lost":      messages(`"a1"`, `"a2"`),
		"doubled":   messages(`"a1"`, `"a2"`, `"d1"`, `"a1"`, `"a2"`),
		"half":      messages(`"a1"`, `"a2"`, `"d1"`, `"b1"`),
		"refused":   messages(`"a1"`, `"a2"`, `"d1"`, `"c1"`),
		"reordered": messages(`"d1"`, `"a1"`, `"a2"`),
		"foreign":   messages(`"a1"`, `"a2"`, `"d1"`, `"x"`),
	} {
		r := &rig{found: newFindings()}
		r.checkAttempts(&conversation{attempts: asked}, loggedAs(log))
		if kinds := r.found.kinds; kind == "" && len(kinds) > 0 || kind != "" && kinds[kind] == 0 {
			t.Errorf("%q: found %v", kind, kinds)
		}
	}
}

func loggedAs(messages []json.RawMessage) (log []logged) {
	for i, m := range messages {
		log = append(log, logged{Seq: int64(i + 1), Message: m})
	}
	return log
}

func TestFaultsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range faults() {
		names = append(names, f.name)
	}
	slices.Sort(names)
	if n := len(names); len(slices.Compact(names)) != n || n < 30 {
		t.Errorf("%d faults, of which some share a name: %v", n, names)
	}
}
