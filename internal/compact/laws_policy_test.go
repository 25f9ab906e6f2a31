package compact

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
)

// profileOf returns the policy of that name.
func profileOf(name string) policy.Policy {
	p, err := policy.Profile(name)
	if err != nil {
		panic(err)
	}
	return p
}

// randomPolicy returns any policy that may be set: a profile, or stages switched on and off with any measures.
func randomPolicy(rng *rand.Rand) policy.Policy {
	p := profileOf(policy.Profiles()[rng.IntN(len(policy.Profiles()))])
	if rng.IntN(4) > 0 {
		p = policy.Default()
		randomStages(rng, &p)
	}
	byAge(&p)
	if rng.IntN(2) == 0 {
		p.Summarise.Enabled = false
	}
	if rng.IntN(6) == 0 {
		p.Protect.Tools = []string{"Bash"}
	}
	if rng.IntN(8) == 0 {
		randomWording(rng, &p.Wording)
	}
	return p
}

// byAge switches off what lets a compaction step by step differ from one from the log: the ranking and the memory.
func byAge(p *policy.Policy) {
	p.Summarise.WordsRatio, p.Summarise.NamesRatio, p.Summarise.LinesRatio = 0, 0, 0
	p.Summarise.MaxTokens = 2000
}

// randomWording makes some texts longer, and others no more than a ref.
func randomWording(rng *rand.Rand, w *policy.Wording) {
	w.BookendHead = []string{"", "[{tool}: {ref}]\n", "{chars} of {tokens} "}[rng.IntN(3)]
	w.PlaceholderAgain = []string{"", "{ref}{preview}"}[rng.IntN(2)]
	for _, t := range []*string{&w.Cap, &w.Bookend, &w.Stub, &w.Placeholder} {
		switch rng.IntN(4) {
		case 0:
			*t += strings.Repeat(" More than one would want to read.", 1+rng.IntN(2))
		case 1:
			*t = "{ref}"
		}
	}
	w.Cap += strings.Repeat(" And more.", rng.IntN(2)*rng.IntN(80))
	w.Bookend += strings.Repeat(" And more.", rng.IntN(2)*rng.IntN(80))
	w.Clear = "{ref}"
}

func randomStages(rng *rand.Rand, p *policy.Policy) {
	maybe := func(n int) bool { return rng.IntN(n) > 0 }
	p.Target = 0.05 + 0.7*rng.Float64()
	p.Protect.LastUnits, p.Protect.LastMessages, p.Protect.LastTurns = rng.IntN(6), rng.IntN(2)*rng.IntN(8), rng.IntN(2)*rng.IntN(3)
	p.Protect.NewestUser, p.Protect.MaxTurnRatio = maybe(4), 0.1+0.9*rng.Float64()
	p.Trim = policy.Trim{
		Enabled: maybe(4), MinTokens: rng.IntN(2) * rng.IntN(200), FloorRatio: 0.8 * rng.Float64(),
		HotZoneMinTokens: rng.IntN(2) * rng.IntN(2000), HotZoneRatio: 0.3 * rng.Float64(), BookendMinChars: 1 + rng.IntN(228),
		HotZoneMaxRatio: 0.5 * float64(rng.IntN(2)), BookendSizes: rng.IntN(3) * 4,
		DegradationSpanRatio: float64(rng.IntN(3)) * rng.Float64(), ExtendedRetentionMultiplier: 1 + float64(rng.IntN(2))*rng.Float64(),
		Categories: p.Trim.Categories,
	}
	p.Trim.BookendMaxChars = p.Trim.BookendMinChars + rng.IntN(400)
	p.Cap = policy.Cap{
		Enabled: maybe(4), AtInsertion: maybe(2), MaxTokens: 20 + rng.IntN(1000), HeadChars: 1 + rng.IntN(900),
		TailChars: rng.IntN(900), WholeLines: maybe(2), ExceptTools: p.Cap.ExceptTools,
	}
	randomLimits(rng, &p.Cap)
	p.Cap.MaxRatio, p.Cap.UnitRatio = 0.4*rng.Float64()*float64(rng.IntN(2)), 0.5*rng.Float64()*float64(rng.IntN(2))
	p.Protect.Yields = maybe(2)
	p.Dedupe.Enabled, p.Dedupe.KeepLast, p.Dedupe.MinTokens = maybe(4), 1+rng.IntN(2), rng.IntN(2)*rng.IntN(100)
	p.Dedupe.Identity, p.Dedupe.ToolOnly = []policy.Identity{policy.ByArguments, policy.ByResource, policy.ByFields}[rng.IntN(3)], true
	p.Dedupe.Pending, p.Dedupe.OmitFields, p.Dedupe.MinBytes = maybe(4), maybe(2), rng.IntN(2)*rng.IntN(300)
	p.Dedupe.Arguments, p.Dedupe.ArgumentBytes = maybe(2), 32+rng.IntN(500)
	p.Arguments.Enabled, p.Arguments.MinBytes, p.Arguments.AfterTokens = maybe(2), 32+rng.IntN(500), rng.IntN(2000)
	p.Budget.Enabled, p.Budget.Tokens = maybe(2), rng.IntN(2)*(100+rng.IntN(3000))
	p.Whitespace = policy.Whitespace{Enabled: maybe(2), MinTokens: rng.IntN(2) * rng.IntN(100)}
	p.Summarise.KeepTurns, p.Summarise.KeepMessages, p.Summarise.MinTokens = rng.IntN(3), rng.IntN(8), rng.IntN(500)
	p.Summarise.All, p.Summarise.MaxTokens = maybe(2), 100+rng.IntN(1000)
	p.Truncate.Enabled, p.Trim.KeepMedia = maybe(3), maybe(2)
	p.Summarise.Segments = 1 + rng.IntN(2)*rng.IntN(5)
}

// randomLimits adds limits to a cap by tokens, or takes their place.
func randomLimits(rng *rand.Rand, c *policy.Cap) {
	if rng.IntN(4) == 0 {
		c.MaxLines = 2 + rng.IntN(40)
	}
	if rng.IntN(4) == 0 {
		c.MaxLineChars = 128 + rng.IntN(100)
	}
	if rng.IntN(4) == 0 {
		c.MaxBytes = max(400, c.HeadChars+c.TailChars) + rng.IntN(2000)
	}
	if c.MaxLines+c.MaxLineChars+c.MaxBytes > 0 && rng.IntN(2) == 0 {
		c.MaxTokens = 0
	}
}

func TestRandomPoliciesAreOnesThatMayBeSet(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		want := randomPolicy(rand.New(rand.NewPCG(seed, 3)))
		got, err := policy.Parse(want.Document())
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, want.Document())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d is read as another policy (-want +got):\n%s", seed, diff)
		}
	}
}
