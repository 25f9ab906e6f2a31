// Command bench measures Varve's hot paths, each beside its floor in the same run: the same statements with nothing of
// ours around them, or encoding/json over the same bytes. Only the ratio travels between machines.
//
// What needs a database runs on a durable cluster of its own with cmd/api and cmd/worker as processes of their own; the
// engine is measured in this process, on one core. Rounds of a measurement alternate with rounds of its floor. It prints
// a table; a run of everything also writes bench/latest.json and the tables of docs/performance.md.
//
// Start at scenarios, then at bench.compare (measure.go) and bench.alternate (alternate.go), which do the measuring.
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
	"slices"
	"strings"
	"syscall"
	"time"
)

// scenario is a group of measurements that share their preparations.
type scenario struct {
	name string
	lab  bool // needs the database and the processes
	run  func(ctx context.Context, b *bench) error
}

var scenarios = []scenario{
	{"engine", false, measureEngine},
	{"linear", false, measureLinearity},
	{"incremental", false, measureIncremental},
	{"formats", false, measureFormats},
	{"profiles", false, measureProfiles},
	{"memory", true, measureMemory},
	{"append", true, measureAppends},
	{"view", true, measureViews},
	{"history", true, measureHistories},
	{"crossing", true, measureCrossings},
}

// options are the flags.
type options struct {
	only      []scenario
	match     *regexp.Regexp
	rounds    int
	round     time.Duration
	crossings int
	data      string
	output    string
	publish   bool
}

const (
	latestFile = "bench/latest.json"
	docsFile   = "docs/performance.md"
)

func parseOptions() (o options, err error) {
	only := flag.String("only", "", "measure only these groups, for example engine,profiles; all are "+strings.Join(names(scenarios), ","))
	run := flag.String("run", "", "measure only what this regular expression matches; names are those of the table")
	quick := flag.Bool("quick", false, "one short round of everything: to see that it runs, not to measure")
	flag.DurationVar(&o.round, "round", 1500*time.Millisecond, "length of one round")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each measurement, each followed by one of its floor")
	flag.IntVar(&o.crossings, "crossings", 50, "sessions whose way over the trigger is timed")
	flag.StringVar(&o.data, "data", filepath.Join("..", "shared", "data"), "folder of recorded conversations; VARVE_DATA names another")
	flag.StringVar(&o.output, "o", "", "file to write the numbers to; a run of everything writes "+latestFile)
	flag.Parse()
	if dir := os.Getenv("VARVE_DATA"); dir != "" {
		o.data = dir
	}
	if *quick {
		o.round, o.rounds, o.crossings = 300*time.Millisecond, 1, 5
	}
	if o.only, err = chosen(*only); err != nil {
		return o, err
	}
	if o.publish = *only == "" && *run == "" && !*quick; o.publish && o.output == "" {
		o.output = latestFile
	}
	o.match, err = regexp.Compile(*run)
	return o, err
}

func names(all []scenario) []string {
	list := make([]string, len(all))
	for i, s := range all {
		list[i] = s.name
	}
	return list
}

// chosen are the scenarios that a list names, in their own order; all for an empty one.
func chosen(list string) (found []scenario, err error) {
	if list == "" {
		return scenarios, nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.Contains(names(scenarios), name) {
			return nil, fmt.Errorf("-only: there is no group %q; there are %s", name, strings.Join(names(scenarios), ", "))
		}
	}
	for _, s := range scenarios {
		if slices.Contains(wanted, s.name) {
			found = append(found, s)
		}
	}
	return found, nil
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
	b := &bench{options: o}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, s := range o.only {
		if s.lab && b.cluster == nil {
			if err := b.open(ctx); err != nil {
				return err
			}
		}
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w\n%s%s", s.name, err, b.api.complaints(), b.worker.complaints())
		}
	}
	if b.cluster != nil {
		if err := b.checkLog(ctx); err != nil {
			return err
		}
	}
	return b.report(os.Stdout)
}
