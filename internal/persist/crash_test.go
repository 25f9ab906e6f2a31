package persist_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/tier"
)

// atEachStep runs a test for each store and each step of a work on it.
func atEachStep(t *testing.T, steps func(kind persist.Kind) []string, test func(w *world, step string)) {
	t.Helper()
	t.Parallel()
	for _, kind := range kinds {
		for _, step := range steps(kind) {
			t.Run(kind.String()+" "+step, func(t *testing.T) {
				t.Parallel()
				test(newWorld(t, kind), step)
			})
		}
	}
}

// putting returns the steps of storing bodies.
func putting(kind persist.Kind) []string {
	if kind == persist.Postgres {
		return []string{"committed"}
	}
	return []string{"put", "verified", "committed"}
}

func TestAPutThatIsKilledIsDoneAgain(t *testing.T) {
	atEachStep(t, putting, func(w *world, step string) {
		want := someResults()
		w.kill("put", step, task{})
		if step == "committed" {
			w.mustRead(want[:1])
		}
		put(w.TB, w.store, w.key, want...)
		w.mustRead(want)
		if there, _ := w.objects(); w.New != persist.Postgres && step != "committed" && len(there) != 6 {
			w.Errorf("the kill left %d objects in all, want one that nothing names beside 5", len(there))
		}
		w.collect()
		w.mustRead(want)
		w.mustBeTidy()
	})
}

func TestAWriterThatIsKilledIsContinued(t *testing.T) {
	atEachStep(t, putting, func(w *world, step string) {
		body := written()
		id := newBody(w.TB, w.store, w.key, w.New)
		w.kill("write", step, task{Body: id})
		again := writer(w.TB, w.store, w.key, id)
		if saved := again.Offset() > 0; saved != (step == "committed") {
			w.Errorf("killed after %s: %d bytes are saved", step, again.Offset())
		}
		if err := again.Write(w.Context(), body[again.Offset():]); err != nil {
			w.Fatal(err)
		}
		if _, _, err := again.Complete(w.Context(), noMore); err != nil {
			w.Fatal(err)
		}
		mustHave(w.TB, w.store, w.key, id, body)
		w.collect()
		w.mustBeTidy()
	})
}

func TestAMoveThatIsKilledIsContinued(t *testing.T) {
	t.Parallel()
	for _, from := range kinds {
		for _, to := range kinds {
			steps := []string{"put", "verified", "switched", "deleted"}
			if to == persist.Postgres {
				steps = []string{"part switched", "switched", "deleted"}
			}
			for _, step := range steps {
				if from == to || testing.Short() && from != persist.Postgres && to != persist.Postgres {
					continue
				}
				t.Run(fmt.Sprint(from, " to ", to, " ", step), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, from)
					want := killedResults()
					put(t, w.store, w.key, want...)
					w.kill("move", step, task{To: to})
					w.mustRead(want)
					w.collect()
					w.mustRead(want)
					mustMove(w, to)
					w.mustRead(want)
					w.collect()
					w.mustBeTidy()
					w.mustRead(want)
					stats, err := tier.ResultStats(t.Context(), w.store, w.key.Tenant, nil)
					if err != nil || len(stats) != 1 || stats[0].Store != to {
						t.Errorf("%+v, %v", stats, err)
					}
				})
			}
		}
	}
}

func TestACollectionThatIsKilledIsDoneAgain(t *testing.T) {
	steps := func(kind persist.Kind) []string {
		if kind == persist.Postgres {
			return []string{"rows deleted", "objects deleted"}
		}
		return []string{"rows deleted", "objects deleted", "orphan deleted"}
	}
	atEachStep(t, steps, func(w *world, step string) {
		want := killedResults()
		put(w.TB, w.store, w.key, want...)
		write(w.TB, w.store, w.key, w.New, logLines(300_000)[1:]) // nothing names it
		if w.New != persist.Postgres {
			store, err := w.store.ResultStores().Store(w.New)
			if err != nil {
				w.Fatal(err)
			}
			if err := store.Put(w.Context(), persist.ObjectName(w.key, uuid.New()), []byte("orphan")); err != nil {
				w.Fatal(err)
			}
		}
		w.kill("collect", step, task{})
		w.mustRead(want)
		w.collect()
		w.mustRead(want)
		w.mustBeTidy()
		stats, err := tier.ResultStats(w.Context(), w.store, w.key.Tenant, nil)
		if err != nil || len(stats) != 1 || stats[0].Bodies != 4 {
			w.Errorf("%+v, %v", stats, err)
		}
		if there, _ := w.objects(); w.New != persist.Postgres && !slices.IsSorted(there) || len(there) > 5 {
			w.Errorf("left are %q", there)
		}
	})
}
