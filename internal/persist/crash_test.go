package persist_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const (
	victimWork   = "VARVE_TEST_VICTIM_WORK"
	victimStep   = "VARVE_TEST_VICTIM_STEP"
	victimPlaces = "VARVE_TEST_VICTIM_PLACES"
)

// task is what a victim works on.
type task struct {
	places
	Key  session.Key
	Body uuid.UUID    // to write
	To   persist.Kind // to move to
}

// works are what a victim can be killed at.
var works = map[string]func(ctx context.Context, store *postgres.Store, of task, trace func(string)) error{
	"put": func(ctx context.Context, store *postgres.Store, of task, _ func(string)) error {
		_, err := store.PutResults(ctx, of.Key, someResults())
		return err
	},
	"write": func(ctx context.Context, store *postgres.Store, of task, _ func(string)) error {
		w, err := store.WriteBody(ctx, of.Key, of.Body)
		if err == nil {
			err = w.Write(ctx, written()[w.Offset():])
		}
		if err == nil {
			_, _, err = w.Complete(ctx, noMore)
		}
		return err
	},
	"move": func(ctx context.Context, store *postgres.Store, of task, _ func(string)) error {
		return store.MoveResults(ctx, postgres.ResultMove{Tenant: of.Key.Tenant, To: of.To, Each: func(persist.Movable, int64, error) {}})
	},
	"collect": func(ctx context.Context, store *postgres.Store, _ task, trace func(string)) error {
		return collect(ctx, store, trace)
	},
}

// written returns the body that a victim writes.
func written() []byte { return logLines(17 << 20)[3:] }

// killedResults returns results of several chunks and few bytes: they are written and read again after each step.
func killedResults() []persist.NewResult { return resultsUpTo(2 << 20) }

// victim works in its own process, reports when it reaches a step, and then stops there.
func victim(work, step, text string) int {
	var of task
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		fmt.Println(err)
		return 1
	}
	trace := func(reached string) {
		if reached == step {
			fmt.Println("reached")
			select {}
		}
	}
	store, err := open(context.Background(), of.places, trace)
	if err == nil {
		err = works[work](context.Background(), store, of, trace)
	}
	fmt.Println("ended", err)
	return 1
}

// kill starts a victim, waits until it came to the step, and kills it there.
func (w *world) kill(work, step string, of task) {
	w.Helper()
	of.places, of.Key = w.places, w.key
	text, err := json.Marshal(of)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimWork+"="+work, victimStep+"="+step, victimPlaces+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if err := cmd.Process.Kill(); err != nil {
		w.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if line != "reached\n" {
		w.Fatalf("the victim said %q", line)
	}
}

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
				if from == to {
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
					stats, err := w.store.ResultStats(t.Context(), w.key.Tenant, nil)
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
		stats, err := w.store.ResultStats(w.Context(), w.key.Tenant, nil)
		if err != nil || len(stats) != 1 || stats[0].Bodies != 4 {
			w.Errorf("%+v, %v", stats, err)
		}
		if there, _ := w.objects(); w.New != persist.Postgres && !slices.IsSorted(there) || len(there) > 5 {
			w.Errorf("left are %q", there)
		}
	})
}
