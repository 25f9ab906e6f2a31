// Command bench measures Varve's hot paths, each beside its floor in the same run: the same statements with nothing of
// ours around them. Only the ratio travels between machines.
//
// It runs on a durable cluster of its own with cmd/api and cmd/worker as processes of their own, interleaves short rounds
// of a measurement with rounds of its floor, and takes medians. It prints a table and writes bench/latest.json.
//
// Start at scenarios, then at bench.compare (measure.go), which all of them use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// scenario is a group of measurements that share their preparations.
type scenario struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

var scenarios = []scenario{
	{"memory", measureMemory},
	{"append", measureAppends},
	{"view", measureViews},
	{"history", measureHistories},
	{"engine", measureEngine},
	{"crossing", measureCrossings},
}

// options are the flags.
type options struct {
	only      *regexp.Regexp
	rounds    int
	round     time.Duration
	crossings int
	output    string
}

func parseOptions() (o options, err error) {
	run := flag.String("run", "", "measure only what this regular expression matches; names are those of the table")
	quick := flag.Bool("quick", false, "one short round of everything: to see that it runs, not to measure")
	flag.DurationVar(&o.round, "round", 1500*time.Millisecond, "length of one round")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each measurement, each followed by one of its floor")
	flag.IntVar(&o.crossings, "crossings", 50, "sessions whose way over the trigger is timed")
	flag.StringVar(&o.output, "o", filepath.Join("bench", "latest.json"), "file to write the numbers to")
	flag.Parse()
	if *quick {
		o.round, o.rounds, o.crossings = 300*time.Millisecond, 1, 5
	}
	o.only, err = regexp.Compile(*run)
	return o, err
}

func main() {
	o, err := parseOptions()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second signal ends the process at once
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, s := range scenarios {
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w\n%s%s", s.name, err, b.api.complaints(), b.worker.complaints())
		}
	}
	if err := b.checkLog(ctx); err != nil {
		return err
	}
	return b.report(os.Stdout)
}
