package persist_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
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
		return tier.MoveResults(ctx, store, tier.ResultMove{Tenant: of.Key.Tenant, To: of.To, Each: func(persist.Movable, int64, error) {}})
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
