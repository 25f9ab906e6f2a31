package jobs_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
)

const (
	victimDSN  = "VARVE_TEST_VICTIM_DSN"
	victimStep = "VARVE_TEST_VICTIM_STEP"
)

// victim runs a worker in its own process that reports when it reaches a step and then stops there.
func victim(dsn, step string) int {
	pool, err := postgres.Open(context.Background(), pgtest.Worker(dsn), 8)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	inserts, err := queue.New(pool)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	client, err := jobs.NewClient(pool, jobs.Config{
		Store: postgres.New(pool, inserts, nil),
		Trace: func(reached string) {
			if reached == step {
				fmt.Println("reached")
				select {}
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := client.Start(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	<-client.Stopped()
	return 0
}

// kill starts a victim, waits until it came to the step, and kills it there.
func (w *world) kill(step string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimDSN+"="+w.dsn, victimStep+"="+step)
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

func TestAWorkerKilledBetweenAnyTwoStepsLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"snapshot", "planned", "persisted", "rendered", "committed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.session("s")
			w.fill(at)
			w.kill(step)
			after := w.check(at, filled())
			if committed := step == "committed"; committed != (after.Checkpoint == 1) {
				t.Fatalf("killed after %s: checkpoint %d", step, after.Checkpoint)
			}
			w.rescue()
			w.work(jobs.Config{})
			w.settle()
			found := w.check(at, filled())
			if found.Checkpoint != 1 || found.ContextTokens >= 8000 {
				t.Errorf("checkpoint %d, %d tokens", found.Checkpoint, found.ContextTokens)
			}
		})
	}
}

// rescue does at once what River does when twice the job's timeout is over.
func (w *world) rescue() {
	w.Helper()
	_, err := w.store.Pool().Exec(w.Context(), `UPDATE river_job SET state = 'available' WHERE state = 'running' AND kind IN ('compact', 'offload')`)
	if err != nil {
		w.Fatal(err)
	}
}

func TestADeadWorkersJobIsTakenOver(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for River to find out that the worker is dead: about 45 seconds")
	}
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	w.kill("persisted")
	w.work(jobs.Config{JobTimeout: 10 * time.Second})
	w.settle()
	if found := w.check(at, filled()); found.Checkpoint != 1 {
		t.Errorf("checkpoint %d", found.Checkpoint)
	}
}
