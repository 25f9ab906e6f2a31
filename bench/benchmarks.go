package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What needs no server is measured by Go benchmarks: those of this package's tests, each beside its floor, and with
// -against those of the engine's package.

// measured is what a benchmark printed: the best of its repetitions.
type measured struct {
	name                  string // without "Benchmark"
	nanoseconds           float64
	megabytes             float64 // a second; 0 if the benchmark says nothing of bytes
	allocated, allocation float64 // bytes and objects
}

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(\S+)\s+\d+\s+([0-9.]+) ns/op` +
	`(?:\s+([0-9.]+) MB/s)?(?:\s+([0-9.]+) B/op\s+([0-9.]+) allocs/op)?`)

// buildBenchmarks compiles the tests of a checkout's package.
func buildBenchmarks(ctx context.Context, checkout, pkg, binary string) error {
	build := exec.CommandContext(ctx, "go", "test", "-C", checkout, "-c", "-o", binary, "./"+pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// runBenchmarks runs a test binary's benchmarks on one core, so that the garbage collector's work counts.
func (b *bench) runBenchmarks(ctx context.Context, binary, dir string, flags ...string) ([]measured, error) {
	data, err := filepath.Abs(b.data)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-test.run=^$", "-test.cpu=1", "-test.benchmem"}, flags...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "VARVE_DATA="+data)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(binary), err, out)
	}
	return parseBenchmarks(string(out))
}

func parseBenchmarks(out string) (found []measured, err error) {
	for _, match := range benchmarkLine.FindAllStringSubmatch(out, -1) {
		m := measured{name: match[1]}
		for i, to := range []*float64{&m.nanoseconds, &m.megabytes, &m.allocated, &m.allocation} {
			if text := match[i+2]; text != "" {
				if *to, err = strconv.ParseFloat(text, 64); err != nil {
					return nil, err
				}
			}
		}
		if i := slices.IndexFunc(found, func(f measured) bool { return f.name == m.name }); i < 0 {
			found = append(found, m)
		} else if m.nanoseconds < found[i].nanoseconds {
			found[i] = m
		}
	}
	return found, nil
}

// goBenchmarks returns a scenario that runs the benchmarks of one name. Each has a name that ends with "/ours" and
// another that ends with "/floor"; add makes rows of the two.
func goBenchmarks(
	benchmark string, add func(b *bench, name string, ours, floor measured),
) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		dir, err := os.MkdirTemp("", "varve-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		b.progress("%s", strings.ToLower(benchmark))
		binary := filepath.Join(dir, "bench.test")
		if err := buildBenchmarks(ctx, ".", "bench", binary); err != nil {
			return err
		}
		found, err := b.runBenchmarks(
			ctx, binary, "bench", "-test.bench=^Benchmark"+benchmark+"$", "-wanted="+b.match.String(),
			"-test.benchtime="+b.round.String(), fmt.Sprintf("-test.count=%d", b.rounds),
			"-test.timeout="+time.Hour.String(),
		)
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(found); i += 2 {
			name, isOurs := strings.CutSuffix(found[i].name, "/ours")
			if !isOurs || found[i+1].name != name+"/floor" {
				return fmt.Errorf("benchmark %s has no floor after it", found[i].name)
			}
			add(b, tableName(name), found[i], found[i+1])
		}
		return nil
	}
}

// tableName returns a benchmark's name as the table has it.
func tableName(benchmark string) string {
	return strings.NewReplacer("/", ", ", "_", " ").Replace(strings.ToLower(benchmark))
}

func addEngine(b *bench, name string, ours, floor measured) {
	b.add(row{Name: name, Value: ours.megabytes, Unit: "MB/s", Goal: atLeast(0.8)}.beside(floor.megabytes))
	b.add(row{Name: name + ", allocations", Value: ours.allocation, Unit: "objects"})
	size := ours.megabytes * ours.nanoseconds / 1000
	b.add(row{Name: name + ", allocated for a byte of messages", Value: ours.allocated / size, Unit: "bytes"})
}

// addLinear compares a session with ten that together have as many messages: 10 is exactly linear.
func addLinear(b *bench, name string, ours, ten measured) {
	b.add(row{Name: name + ": time", Value: 10 * ours.nanoseconds / ten.nanoseconds, Unit: "times", Goal: atMost(12)})
	b.add(row{Name: name + ": allocated", Value: 10 * ours.allocated / ten.allocated, Unit: "times", Goal: atMost(12)})
}

func addIncremental(b *bench, name string, ours, other measured) {
	b.add(row{Name: name, Value: ours.nanoseconds / other.nanoseconds, Unit: "times", Goal: atMost(1.2)})
}

func addFormats(b *bench, name string, ours, floor measured) {
	b.add(row{Name: name, Value: ours.megabytes, Unit: "MB/s", Goal: atLeast(1.2)}.beside(floor.megabytes))
}
