package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// What needs no server is measured by Go benchmarks: those of this package's tests, each beside its floor, and with
// -against those of the engine's package in both checkouts.

// measured is what a benchmark printed: the values of its fastest repetition by their units, for example "ns/op".
type measured struct {
	Name   string             `json:"name"` // without "Benchmark"
	Values map[string]float64 `json:"values"`
}

// runBenchmarks runs benchmarks of a package on one core, so that the garbage collector's work counts.
func runBenchmarks(ctx context.Context, dir string, flags ...string) ([]measured, error) {
	args := append([]string{
		"test", "-C", dir, "-vet=off", ".", "-run=^$", "-cpu=1", "-benchmem", "-timeout=3h",
	}, flags...)
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("benchmarks of %s: %w\n%s", dir, err, out)
	}
	return parseBenchmarks(string(out)), nil
}

// parseBenchmarks reads lines of a name, a number of repetitions, and values with their units.
func parseBenchmarks(out string) (found []measured) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		m := measured{strings.TrimPrefix(fields[0], "Benchmark"), map[string]float64{}}
		for pair := range slices.Chunk(fields[2:], 2) {
			if value, err := strconv.ParseFloat(pair[0], 64); err == nil && len(pair) == 2 {
				m.Values[pair[1]] = value
			}
		}
		i := slices.IndexFunc(found, func(f measured) bool { return f.Name == m.Name })
		if i < 0 {
			found = append(found, m)
		} else if m.Values["ns/op"] < found[i].Values["ns/op"] {
			found[i] = m
		}
	}
	return found
}

// ownBenchmarks runs this package's benchmark of one name.
func (b *bench) ownBenchmarks(ctx context.Context, benchmark string, flags ...string) ([]measured, error) {
	b.progress("%s", strings.ToLower(benchmark))
	flags = append(flags, "-bench=^Benchmark"+benchmark+"$", "-wanted="+b.match.String())
	return runBenchmarks(ctx, "bench", flags...)
}

// figure is a number of a benchmark that the table shows, beside that of the benchmark's floor if it has a goal.
type figure struct {
	suffix string // of the row's name
	unit   string // as the benchmark prints it
	goal   string // of the ratio
}

var (
	engineFigures = []figure{{"", "MB/s", ">= 0.8"}, {", allocations", "allocs/op", ""}, {", allocated", "B/op", ""}}
	linearFigures = []figure{{": time", "ns/op", "<= 12"}, {": allocated", "B/op", "<= 12"}}
)

// goBenchmarks returns what measures the benchmarks of one name. Each has a name that ends with "/ours" and another
// that ends with "/floor".
func goBenchmarks(benchmark string, figures ...figure) measurement {
	return func(ctx context.Context, b *bench) error {
		found, err := b.ownBenchmarks(
			ctx, benchmark, "-benchtime="+b.round.String(), fmt.Sprintf("-count=%d", b.rounds),
		)
		if err != nil {
			return err
		}
		for pair := range slices.Chunk(found, 2) {
			name, isOurs := strings.CutSuffix(pair[0].Name, "/ours")
			if !isOurs || len(pair) < 2 || pair[1].Name != name+"/floor" {
				return fmt.Errorf("benchmark %s has no floor after it", pair[0].Name)
			}
			for _, f := range figures {
				r := row{Name: tableName(name) + f.suffix, Unit: f.unit, Value: pair[0].Values[f.unit], Goal: f.goal}
				if f.goal != "" {
					r = r.beside(pair[1].Values[f.unit])
				}
				b.add(r)
			}
		}
		return nil
	}
}

// tableName returns a benchmark's name as the table has it.
func tableName(benchmark string) string {
	return strings.NewReplacer("/", ", ", "_", " ").Replace(strings.ToLower(benchmark))
}

// compared are the Go benchmarks that -against measures in both checkouts.
type compared struct {
	group   string
	folder  string      // of their package
	flags   []string    // which of them
	measure measurement // what measures the group without -against
}

var (
	comparedEngine = compared{
		"engine", "internal/compact", []string{"-bench=.", "-skip=//json.Valid|///json.Valid"},
		goBenchmarks("Engine", engineFigures...),
	}
	comparedFormats = compared{
		"formats", "bench", []string{"-bench=^BenchmarkFormats$/.*/.*/.*/^ours$"},
		goBenchmarks("Formats", figure{"", "MB/s", ">= 1.2"}),
	}
)

// run measures the group beside its floors, or with -against its benchmarks that both checkouts have, by turns: the
// best rounds are compared, because what is measured is never too fast.
func (c compared) run(ctx context.Context, b *bench) error {
	if b.against == "" {
		return c.measure(ctx, b)
	}
	sides := []string{c.folder, filepath.Join(b.against, c.folder)}
	rates := []map[string][]float64{{}, {}}
	for turn := range b.rounds {
		b.progress("%s, pair %d of %d", c.group, turn+1, b.rounds)
		err := eachSide(turn, len(sides), func(side int) error {
			flags := append([]string{"-benchtime=" + (b.round / 5).String()}, c.flags...)
			found, err := runBenchmarks(ctx, sides[side], flags...)
			for _, f := range found {
				rates[side][f.Name] = append(rates[side][f.Name], 1e9/f.Values["ns/op"])
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, benchmark := range slices.Sorted(maps.Keys(rates[0])) {
		ours := rates[0][benchmark]
		theirs := rates[1][benchmark]
		name := c.group + ", " + benchmark
		if !b.match.MatchString(name) {
			continue
		}
		if len(ours) != len(theirs) {
			b.note("%s: the old checkout does not have it", name)
			continue
		}
		r := row{Name: name, Unit: "runs/s"}.pairs(ours, theirs)
		r.Value = slices.Max(ours)
		b.add(r.beside(slices.Max(theirs)))
	}
	return nil
}
