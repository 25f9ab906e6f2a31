// Command bench measures Varve's hot paths, each beside its floor in the same run: the same statements with nothing
// of Varve around them, or encoding/json over the same bytes. Only ratios can be compared between machines.
//
// With -against it measures this checkout beside another one instead, in pairs.
//
// Start at scenarios. What needs a database runs on a durable cluster made for the run, with cmd/api and cmd/worker
// as processes (lab.go, site.go); measure.go lets the sides of a comparison take turns. What needs no server is a Go
// benchmark in this package's tests, which benchmarks.go runs. against.go compares two checkouts, report.go writes
// the tables.
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

// scenario is a group of measurements with common preparations.
type scenario struct {
	name string
	lab  bool // needs the database and the processes
	run  func(ctx context.Context, b *bench) error
}

var scenarios = []scenario{
	{"engine", false, goBenchmarks("Engine", addEngine)},
	{"linear", false, goBenchmarks("Linear", addLinear)},
	{"incremental", false, goBenchmarks("Incremental", addIncremental)},
	{"formats", false, goBenchmarks("Formats", addFormats)},
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
	against   string
}

const (
	latestFile = "bench/latest.json"
	docsFile   = "docs/performance.md"
)

func parseOptions() (o options, err error) {
	only := flag.String("only", "", "measure only these groups, for example engine,profiles; all are "+
		strings.Join(names(scenarios), ","))
	run := flag.String("run", "", "measure only what this regular expression matches; names are those of the table")
	quick := flag.Bool("quick", false, "one short round of everything: to see that it runs, not to measure")
	flag.DurationVar(&o.round, "round", 1500*time.Millisecond, "length of one round")
	flag.IntVar(
		&o.rounds, "rounds", 3,
		"rounds of each measurement, each followed by one of its floor; at least 5 with -against",
	)
	flag.IntVar(&o.crossings, "crossings", 50, "number of sessions that are timed while they cross the trigger")
	flag.StringVar(&o.data, "data", filepath.Join("..", "shared", "data"),
		"folder of recorded conversations; VARVE_DATA names another")
	flag.StringVar(&o.output, "o", "", "file to write the numbers to; a run of everything writes "+latestFile)
	flag.StringVar(&o.against, "against", "", againstHelp)
	flag.Parse()
	if dir := os.Getenv("VARVE_DATA"); dir != "" {
		o.data = dir
	}
	if *quick {
		o.round = 300 * time.Millisecond
		o.rounds = 1
		o.crossings = 5
	} else if o.against != "" {
		o.rounds = max(o.rounds, 5)
	}
	if o.only, err = chosen(*only); err != nil {
		return o, err
	}
	o.publish = *only == "" && *run == "" && !*quick && o.against == ""
	if o.publish && o.output == "" {
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

// chosen returns the scenarios that a list names, in the order of scenarios; all of them for an empty list.
func chosen(list string) (found []scenario, err error) {
	if list == "" {
		return scenarios, nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.Contains(names(scenarios), name) {
			return nil, fmt.Errorf(
				"-only: there is no group %q; there are %s", name, strings.Join(names(scenarios), ", "),
			)
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
	if o.against != "" {
		return b.compareCheckouts(ctx)
	}
	for _, s := range o.only {
		if s.lab && b.here == nil {
			if err := b.open(ctx); err != nil {
				return err
			}
		}
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w\n%s", s.name, err, b.here.complaints())
		}
	}
	if b.here != nil {
		if err := b.here.checkLog(ctx); err != nil {
			return err
		}
	}
	return b.report(os.Stdout)
}
