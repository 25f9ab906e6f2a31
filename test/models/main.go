// Command models runs Varve with language models that fail, and checks, with an oracle of its own, that a summary never
// destroys, blocks, or costs without bound.
//
// One API process and two workers run under supervisors that restart them. Tenants have policies that name models of
// the fake provider (internal/llm/fake), by all three protocols and with every fallback. It meets a share of the calls
// with faults, is down for one model for a while, answers one very slowly, and one tenant may make few calls. Sessions
// grow while workers are killed, until that number of compactions is reached. Then the faults end, everything settles,
// and all is checked:
//
//	go run ./test/models -compactions 1000 -faults 0.3 -seed 7
//	go run ./test/models -mutant no-budget      # on a Varve with a defect, which must be found
//
// Start at run in this file. rig.go starts everything, load.go has what clients do, watch.go what is looked at
// meanwhile, check.go what must hold in the end, mutants.go the defects that prove the checks. What a provider accepts
// is known by the fake provider; nothing of the product checks itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/varve-dev/varve/test/harness"
)

// options are what a run does.
type options struct {
	compactions int // after how many of them nothing is appended any more
	faults      float64
	seed        uint64
	sessions    int           // of a tenant
	slow        time.Duration // an answer of the slow model
	quick       time.Duration // the deadline of the other models' answers
	outage      int64         // calls for which the brittle model is down
	kills       time.Duration // between two kills of a worker
	idle        time.Duration // the longest that a transaction may be idle
	settles     time.Duration // within which all summaries must have ended
	lasts       time.Duration // of the load at most
	mutant      string        // the defect to build in, "" for none
	dir         string
	out         io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.compactions, "compactions", 1000, "after which nothing is appended any more")
	flag.Float64Var(&o.faults, "faults", 0.3, "the share of the calls of models that meet a fault")
	flag.Uint64Var(&o.seed, "seed", 1, "of the faults and of what is written")
	flag.IntVar(&o.sessions, "sessions", 6, "of a tenant")
	flag.DurationVar(&o.slow, "slow", 30*time.Second, "an answer of the slow model")
	flag.DurationVar(&o.quick, "quick", 8*time.Second, "the deadline of the other models' answers")
	flag.Int64Var(&o.outage, "outage", 10, "calls for which one model is down")
	flag.DurationVar(&o.kills, "kills", 4*time.Second, "between two kills of a worker")
	flag.DurationVar(&o.idle, "idle", time.Second, "the longest that a transaction may be idle")
	flag.DurationVar(&o.settles, "settles", 3*time.Minute, "within which all summaries must have ended")
	flag.DurationVar(&o.lasts, "for", 30*time.Minute, "how long is appended at most")
	flag.StringVar(&o.mutant, "mutant", "", "build Varve with this defect")
	flag.StringVar(&o.dir, "dir", "", "for data and logs; a temporary one that is removed by default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	found, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(2)
	}
	if found.print(o.out); len(found.anomalies) > 0 {
		os.Exit(1)
	}
}

// run starts everything, lets sessions grow, and checks. An error is one of the harness.
func run(ctx context.Context, o options) (*findings, error) {
	dir, remove, err := harness.MakeDir(o.dir, "models")
	if err != nil {
		return nil, err
	}
	defer remove()
	o.dir = dir
	defect, err := harness.Named(mutants, o.mutant)
	if err != nil {
		return nil, err
	}
	built, err := harness.Build(ctx, o.dir, defect)
	if err != nil {
		return nil, err
	}
	r, err := startRig(ctx, o, built)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	r.progress.Tell("sessions grow")
	grown := r.grow(ctx)
	r.provider.Calm()
	r.progress.Tell("the faults are over: settling")
	settled := r.settle(ctx)
	r.progress.Tell("checking")
	return r.found, errors.Join(grown, settled, r.check(ctx))
}
