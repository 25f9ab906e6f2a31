// Command chaos runs Varve under faults and checks, with an oracle of its own, that nothing acknowledged is lost,
// doubled or reordered, that views are valid and refs readable, and that compaction is soon back.
//
// Two API processes and two workers run under supervisors that restart them. Each reaches PostgreSQL through a fault
// proxy of its own, and clients reach each API through one. Writers append turns and repeat what they do not know the
// outcome of; readers check every view; faults come at random, two at a time, from a seed, and then each alone, with
// the time that recovery took.
//
//	go run ./test/chaos -seed 7 -for 10m          # faults at random, then all checks
//	go run ./test/chaos -alone                    # each fault alone, with the time until all is well again
//	go run ./test/chaos -only 'kill -9 worker'    # those whose name contains this
//	go run ./test/chaos -mutant no-lock           # on a Varve with a defect, which must be found
//	go run ./test/chaos -users 4 -for 10m         # everything at once, with users who fork, archive, upload, erase
//	go run ./test/chaos -small-disk               # with a disk that is full now and then; needs the right to mount
//	go run ./test/chaos -clocks                   # with a database whose clock jumps; needs libfaketime
//
// Start at run in this file. faults.go has the faults by name, oracle.go and valid.go what is checked, mutants.go the
// defects that prove the checks. The oracle shares no code with the product.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/varve-dev/varve/test/harness"
)

// options are what a run does.
type options struct {
	seed    uint64
	lasts   time.Duration // of the faults at random; 0 for none
	alone   bool          // each fault alone, besides
	only    string        // faults whose name contains one of these
	mutant  string        // the defect to build in, "" for none
	disk    bool          // PostgreSQL's data is on a small disk, which can be full
	clock   string        // the file that sets PostgreSQL's clock, "" for the machine's
	writers int
	users   int // who do everything that the API can, with two faults more; see everything

	restoreOn string // the directory of PostgreSQL's programs that a backup is restored on, "" for those of the run
	dir       string // for data and logs
	patience  time.Duration
	out       io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.Uint64Var(&o.seed, "seed", 1, "of the order of faults and of what is written")
	flag.DurationVar(&o.lasts, "for", 0, "how long faults come at random")
	flag.BoolVar(&o.alone, "alone", false, "bring each fault alone and measure the recovery")
	flag.StringVar(&o.only, "only", "", "only faults whose name contains one of these, separated by commas")
	flag.StringVar(&o.mutant, "mutant", "", "build Varve with this defect")
	flag.BoolVar(&o.disk, "small-disk", false, "keep the database on a small disk; bring only its faults, each alone")
	clocks := flag.Bool("clocks", false, "let PostgreSQL's clock jump, which needs libfaketime; bring only that")
	flag.IntVar(&o.writers, "writers", 8, "that append at the same time")
	flag.IntVar(&o.users, "users", 0, "that do everything with sessions of their own")
	flag.StringVar(&o.restoreOn, "restore-on", "", "PostgreSQL's programs that the backup of -users is restored on")
	flag.StringVar(&o.dir, "dir", "", "for data and logs; a temporary one that is removed by default")
	flag.DurationVar(&o.patience, "patience", 10*time.Second, "within which compaction must be back after a fault")
	flag.Parse()
	o.alone = o.alone || o.disk || *clocks
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *clocks {
		remove := setClocks(&o)
		defer remove()
	}
	found, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	if found.print(o.out); len(found.anomalies) > 0 {
		os.Exit(1)
	}
}

// run starts everything, brings the faults, stops them, and checks. An error is one of the harness.
func run(ctx context.Context, o options) (*findings, error) {
	dir, remove, err := harness.MakeDir(o.dir, "chaos")
	if err != nil {
		return nil, err
	}
	defer remove()
	o.dir = dir
	defect, err := harness.Named(mutants, o.mutant)
	if err != nil {
		return nil, err
	}
	if o.disk {
		unmount, err := smallDisk(ctx, filepath.Join(o.dir, "database"))
		if err != nil {
			fmt.Fprintln(o.out, "skipped: a full disk needs the right to mount one:", err)
			return newFindings(), nil
		}
		defer unmount()
	}
	built, err := harness.Build(ctx, o.dir, defect)
	if err != nil {
		return nil, err
	}
	if o.users > 0 {
		if err := harness.BuildOf(ctx, o.dir, defect, "./cmd/varve"); err != nil {
			return nil, err
		}
	}
	r, err := startRig(ctx, o, built)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	return r.examine(ctx)
}

// examine lets writers and readers work while faults come, and then checks everything that is stored.
func (r *rig) examine(ctx context.Context) (*findings, error) {
	load, err := r.startLoad(ctx)
	if err != nil {
		return nil, err
	}
	var failed error
	if r.options.lasts > 0 {
		failed = r.storm(ctx)
	}
	if r.options.alone && failed == nil {
		failed = r.eachAlone(ctx)
	}
	if failed != nil && ctx.Err() == nil {
		load.stop()
		return nil, failed
	}
	r.progress.Tell("the faults are over: settling")
	settled := r.awaitCompaction(ctx, time.Now())
	load.stop()
	for _, p := range r.apis {
		p.Signal(syscall.SIGKILL) // with what they have not counted; checkUsage comes before reads that count it
	}
	if err := settled.err; err != nil {
		r.found.add("late", "after the last fault: %v", err)
	}
	r.progress.Tell("checking")
	checks := []func(context.Context) error{r.checkUsage, r.checkLogs, r.checkInvariants, r.checkResults, r.awaitIdle}
	if r.everything != nil {
		checks = slices.Insert(checks, 1, r.checkUsers)
		checks = append(checks, r.verifyAll)
	}
	for _, check := range checks {
		if err := check(ctx); err != nil {
			return r.found, err
		}
	}
	return r.found, nil
}
