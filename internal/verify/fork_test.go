package verify_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// TestAForkThatLeavesACheckpointOutHasWholeNumbers forks a session before the end of its newest checkpoint, from
// a later one that restored an earlier one.
func TestAForkThatLeavesACheckpointOutHasWholeNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	at := session.Address{Tenant: w.tenant.ID, ID: "s"}
	w.save(at.ID, withLargeResult(conversation(t, "claude-code", "entire-17")), 20_000, 12, true)
	made, err := w.store.Checkpoints(t.Context(), at, 0, 100)
	if err != nil || len(made) < 2 {
		t.Fatalf("%d checkpoints, %v", len(made), err)
	}
	newest := made[0].N
	covered, before := made[0].Through, made[1].Through
	if before >= covered-1 {
		t.Fatalf("the checkpoints cover 1 to %d and 1 to %d", before, covered)
	}
	for n := newest - 1; n < newest+postgres.KeptCheckpoints; { // until the newest before has no body any more
		c, _, err := w.store.Restore(t.Context(), at, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		n = c.N
	}
	fork, _, err := w.store.Fork(t.Context(), session.Fork{From: at, ID: "fork", Seq: covered - 1})
	if err != nil {
		t.Fatal(err)
	}
	forkAt := session.Address{Tenant: at.Tenant, ID: fork.ID}
	kept, err := w.store.Checkpoints(t.Context(), forkAt, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	of := fork.Forked
	if of.Checkpoint <= newest || len(kept) != of.Checkpoint-1 || fork.Checkpoint != len(kept) {
		t.Errorf("the fork of %+v has %d checkpoints, the newest is %d", of, len(kept), fork.Checkpoint)
	}
	for i, c := range kept {
		if c.N != len(kept)-i || c.Base >= c.N {
			t.Errorf("checkpoint %d, from the newest, is %d on %d", i, c.N, c.Base)
		}
		if lineages, err := w.store.Lineages(t.Context(), forkAt, c.N); err != nil || lineages[0].Through != c.Through {
			t.Errorf("checkpoint %d: %+v, %v", c.N, lineages, err)
		}
	}
	w.clean()
}
