// Command bench measures Varve's hot paths, each beside its floor in the same run: the same statements with nothing
// of Varve around them, or encoding/json over the same bytes. Only ratios can be compared between machines.
//
// With -against it measures this checkout beside another one instead, in pairs.
//
// Start at scenarios. What needs a database runs on a durable cluster made for the run, with cmd/api and cmd/worker
// as processes (lab.go, site.go); measure.go lets the sides of a comparison take turns. What needs no server is a Go
// benchmark in this package's tests, which benchmarks.go runs. report.go writes the tables.
package main

import (
	"cmp"
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
	name    string
	lab     bool // needs the database and the processes
	against bool // -against measures it
	run     measurement
}

var scenarios = []scenario{
	{"engine", false, true, comparedEngine.run},
	{"linear", false, false, goBenchmarks("Linear", linearFigures...)},
	{"incremental", false, false, goBenchmarks("Incremental", figure{"", "ns/op", "<= 1.2"})},
	{"formats", false, true, comparedFormats.run},
	{"replay", false, false, measureReplay},
	{"summaries", false, false, measureSummaries},
	{"lastviews", false, false, measureLastViews},
	{"parts", false, false, measureParts},
	{"compaction", false, true, measureCompactions},
	{"storage", true, false, measureStorage},
	{"memory", true, false, measureMemory},
	{"append", true, true, measureAppends},
	{"view", true, true, measureLoads(viewLoads)},
	{"history", true, false, measureLoads(historyLoads)},
	{"bounded", true, true, measureLoads(boundedLoads)},
	{"crossing", true, false, measureCrossings},
	{"readback", true, false, measureLoads(readbackLoads)},
	{"turns", true, false, measureTurns},
	{"clients", true, false, measureClients},
	{"traces", true, false, measureTraces},
	{"many", true, false, measureMany},
}

const (
	latestFile  = "bench/latest.json"
	docsFile    = "docs/performance.md"
	againstHelp = `measure append, view, compaction, engine and formats of this checkout beside those of the one in this
directory: rounds take turns, more is faster. Both serve a database of their own; calls a second of the API's processor
time are disturbed less by a busy machine. Engine and formats are compared by the best rounds of the benchmarks that
both have`
)

// options are the flags.
type options struct {
	only      []string // the groups
	match     *regexp.Regexp
	rounds    int
	round     time.Duration
	crossings int
	sessions  int // of the group many
	output    string
	publish   bool // write docsFile
	isPart    bool // -run or -quick leaves something out
	against   string
}

func parseOptions() (o options, err error) {
	known := make([]string, len(scenarios))
	for i, s := range scenarios {
		known[i] = s.name
	}
	all := strings.Join(known, ",")
	only := flag.String("only", all, "measure only these groups")
	run := flag.String("run", "", "measure only what this regular expression matches; names are those of the table")
	quick := flag.Bool("quick", false, "one short round of everything: to see that it runs, not to measure")
	data := flag.String("data", cmp.Or(os.Getenv("VARVE_DATA"), filepath.Join("..", "shared", "data")),
		"folder of recorded conversations; also VARVE_DATA")
	flag.DurationVar(&o.round, "round", 1500*time.Millisecond, "length of one round")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each side of a measurement; at least 5 with -against")
	flag.IntVar(&o.crossings, "crossings", 50, "number of sessions that are timed while they cross the trigger")
	flag.IntVar(&o.sessions, "sessions", 1_000_000, "number of sessions of the larger database of the group many")
	flag.StringVar(&o.output, "o", "", "file to write the numbers to; a run of everything writes "+latestFile)
	flag.StringVar(&o.against, "against", "", againstHelp)
	flag.Parse()
	if o.only, err = chosen(cmp.Or(*only, all), known); err != nil {
		return o, err
	}
	if *quick {
		o.round = 300 * time.Millisecond
		o.rounds = 1
		o.crossings = 5
		o.sessions = min(o.sessions, 20_000)
	} else if o.against != "" {
		o.rounds = max(o.rounds, 5)
	}
	o.isPart = *run != "" || *quick
	if len(o.only) == len(known) && !o.isPart && o.against == "" {
		o.publish = true
		o.output = cmp.Or(o.output, latestFile)
	}
	folder, err := filepath.Abs(*data)
	if err != nil {
		return o, err
	}
	if err := os.Setenv("VARVE_DATA", folder); err != nil { // for the tests of both checkouts
		return o, err
	}
	o.match, err = regexp.Compile(*run)
	return o, err
}

// chosen returns the names in a list; all must be known.
func chosen(list string, known []string) ([]string, error) {
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-only: there is no group %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return names, nil
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
	for _, s := range scenarios {
		if !slices.Contains(o.only, s.name) || o.against != "" && !s.against {
			continue
		}
		if s.lab && b.here == nil {
			if err := b.open(ctx); err != nil {
				return err
			}
		}
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w\n%s", s.name, err, b.complaints())
		}
	}
	for _, s := range b.sites {
		if err := s.checkLog(ctx); err != nil {
			return err
		}
	}
	return b.report(os.Stdout)
}
