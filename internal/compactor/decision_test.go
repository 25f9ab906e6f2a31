package compactor

import (
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
)

// 793 tokens are 800.93 by the provider's count, the trigger is 800.8: whole tokens would say 800 and 801.
func TestADecisionIsDueWhereTheStoreAsksForTheCompaction(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	p.Trigger, p.Hard, p.Tokens.Calibrate = 0.8, 0.95, true
	for tokens, want := range map[int64]bool{792: false, 793: true} {
		snap := postgres.Snapshot{WindowTokens: 1001, Calibration: 1.01, ContextTokens: tokens}
		if d := newDecision(snap, &p, "threshold"); d.Due() != want {
			t.Errorf("a view of %d tokens is due: %t, want %t", tokens, d.Due(), want)
		}
	}
}
