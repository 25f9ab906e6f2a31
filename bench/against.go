package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const againstHelp = `measure this checkout beside the checkout of Varve in this directory, in pairs of rounds that take
turns in one run, and print old, new, new/old and the spread of the pairs; more is faster. The programs of both
are built, and each serves a database that it migrated itself, in one PostgreSQL. The groups append and view go
over HTTP: calls a second, and calls a second of the API's processor time, which a busy machine disturbs less.
The group engine runs the benchmarks of internal/compact that both have: "go test -c" builds them in each
checkout, they run on one core, and the best rounds are compared. No file is written but that of -o`

// pair is a measurement of both checkouts: more is faster.
type pair struct {
	name, unit string
	old, new   []float64 // of each pair of rounds
	best       bool      // compare the best rounds of both, not the pairs: what is measured is never too fast
}

func (p *pair) cells() []string {
	ratios := make([]float64, len(p.old))
	for i := range ratios {
		ratios[i] = p.new[i] / p.old[i]
	}
	before, now := median(p.old), median(p.new)
	ratio := middle(ratios)
	if p.best {
		before, now = slices.Max(p.old), slices.Max(p.new)
		ratio = now / before
	}
	spread := fmt.Sprintf("%.3f to %.3f", slices.Min(ratios), slices.Max(ratios))
	return []string{p.name, p.unit, number(before), number(now), fmt.Sprintf("%.3f", ratio), spread}
}

// middle returns the median, between the two in the middle of an even number.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// compareCheckouts measures the checkout of -against (old) beside this one (new) and prints the table.
func (b *bench) compareCheckouts(ctx context.Context) error {
	checkout, err := filepath.Abs(b.against)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(checkout, "go.mod")); err != nil {
		return fmt.Errorf("-against: %w", err)
	}
	groups := names(b.only)
	measured := [][]string{{"what", "unit", "old", "new", "new/old", "spread of the pairs"}}
	add := func(pairs ...*pair) {
		for _, p := range pairs {
			measured = append(measured, p.cells())
			b.progress("  %s", strings.Join(measured[len(measured)-1][1:], ", "))
		}
	}
	if slices.Contains(groups, "append") || slices.Contains(groups, "view") {
		if err := b.compareServers(ctx, checkout, groups, add); err != nil {
			return err
		}
	}
	if slices.Contains(groups, "engine") {
		if err := b.compareEngines(ctx, checkout, add); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
	}
	if len(measured) == 1 {
		return errors.New(
			"-against measures the groups append, view and engine; none of them was chosen, or -run matches nothing",
		)
	}
	table := markdown(measured)
	for _, line := range b.notes {
		table += "\n* " + line
	}
	fmt.Println(table)
	if b.output == "" {
		return nil
	}
	return os.WriteFile(b.output, []byte(table+"\n"), 0o644)
}

func (b *bench) compareServers(ctx context.Context, checkout string, groups []string, add func(...*pair)) (err error) {
	if err := b.startCluster(ctx); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	before, err := b.openSite(ctx, "old", checkout)
	if err != nil {
		return err
	}
	now, err := b.openSite(ctx, "new", ".")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nold: %s\nnew: %s", err, before.complaints(), now.complaints())
		}
	}()
	if slices.Contains(groups, "append") {
		if err := b.compareAppends(ctx, before, now, add); err != nil {
			return err
		}
	}
	if slices.Contains(groups, "view") {
		if err := b.compareViews(ctx, before, now, add); err != nil {
			return err
		}
	}
	return errors.Join(before.checkLog(ctx), now.checkLog(ctx))
}

func (b *bench) compareAppends(ctx context.Context, before, now *site, add func(...*pair)) error {
	cases := b.appendCases()
	if len(cases) == 0 {
		return nil
	}
	for _, s := range []*site{before, now} {
		if err := s.prepareAppends(ctx); err != nil {
			return err
		}
	}
	for _, a := range cases {
		pairs, err := b.pairOf(ctx, a.name(), "appends", before, now, before.appends(a), now.appends(a))
		if err != nil {
			return fmt.Errorf("%s: %w", a.name(), err)
		}
		add(pairs...)
	}
	return nil
}

// compactedTail is how many messages follow the checkpoint.
const compactedTail = 10

func (b *bench) compareViews(ctx context.Context, before, now *site, add func(...*pair)) error {
	compacted := viewed{id: "compacted", tail: compactedTail}
	made := false
	for _, v := range []viewCase{
		{viewed: compacted, encoding: "zstd"},
		{viewed: compacted, encoding: "identity"},
		{viewed: compacted, encoding: "zstd", unchanged: true},
	} {
		name := fmt.Sprintf("view, after a compaction, %d tail messages, %s", v.tail, v.how())
		if !b.wants(name) {
			continue
		}
		if !made {
			if err := errors.Join(before.createCompacted(ctx, v.id), now.createCompacted(ctx, v.id)); err != nil {
				return err
			}
			made = true
		}
		old, oldSize, err := before.views(v)
		if err != nil {
			return err
		}
		new, newSize, err := now.views(v)
		if err != nil {
			return err
		}
		b.note("%s: views of %d and %d bytes", name, oldSize, newSize)
		pairs, err := b.pairOf(ctx, name, "reads", before, now, old, new)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		add(pairs...)
	}
	return nil
}

// createCompacted makes a session that was compacted, with messages after its checkpoint.
func (s *site) createCompacted(ctx context.Context, id string) error {
	c, made := s.newClient(), newCorpus(7)
	if err := c.bringToTrigger(id, made.conversation(299, 1000)); err != nil {
		return err
	}
	if _, err := c.cross(ctx, id, [][]byte{made.message(messageBytes)}); err != nil {
		return err
	}
	return c.appendAll(id, made.conversation(compactedTail, tailResult))
}

// pairOf lets both sides take turns and measures their rates, by the clock and by the processor time of their APIs.
func (b *bench) pairOf(ctx context.Context, name, what string, before, now *site, old, new sample) ([]*pair, error) {
	b.progress("%s", name)
	byClock := &pair{name: name, unit: what + "/s"}
	byProcessor := &pair{name: name, unit: what + "/s of the API's processor time"}
	rates, err := alternate(ctx, b.rounds, b.round,
		before.api.perProcessorSecond(old, &byProcessor.old), now.api.perProcessorSecond(new, &byProcessor.new))
	if err != nil {
		return nil, err
	}
	byClock.old, byClock.new = rates[0], rates[1]
	byProcessor.old, byProcessor.new = byProcessor.old[1:], byProcessor.new[1:] // the first turn warms
	if _, err := before.api.processorTime(); err != nil {
		return []*pair{byClock}, nil
	}
	return []*pair{byClock, byProcessor}, nil
}

// perProcessorSecond returns a sample that also appends to rates how many calls the process served in a second of its
// processor time.
func (p *server) perProcessorSecond(round sample, rates *[]float64) sample {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		before, _ := p.processorTime()
		start := time.Now()
		rate, err := round(ctx, d)
		calls := rate * time.Since(start).Seconds()
		after, _ := p.processorTime()
		*rates = append(*rates, calls/max(after-before, clockTick).Seconds())
		return rate, err
	}
}

// clockTick is the unit in which /proc counts processor time.
const clockTick = 10 * time.Millisecond

// processorTime returns what the process has used so far, or an error on a machine without /proc.
func (p *server) processorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may have blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("/proc has no times of the process")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, err
}

const enginePackage = "internal/compact"

// compareEngines runs the benchmarks of the engine in both checkouts by turns.
func (b *bench) compareEngines(ctx context.Context, checkout string, add func(...*pair)) error {
	dir, err := os.MkdirTemp("", "varve-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	here, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	sides := []struct{ binary, checkout string }{
		{filepath.Join(dir, "old"), checkout}, {filepath.Join(dir, "new"), here},
	}
	for _, side := range sides {
		b.progress("build the benchmarks of %s", side.checkout)
		if err := buildBenchmarks(ctx, side.checkout, enginePackage, side.binary); err != nil {
			return err
		}
	}
	values := [2]map[string][]float64{{}, {}}
	var order []string
	for turn := range b.rounds {
		b.progress("engine, pair %d of %d", turn+1, b.rounds)
		for _, i := range [][]int{{0, 1}, {1, 0}}[turn%2] {
			found, err := b.runBenchmarks(ctx, sides[i].binary, filepath.Join(sides[i].checkout, enginePackage),
				"-test.bench=.", "-test.skip=//json.Valid|///json.Valid", "-test.benchtime="+(b.round/5).String())
			if err != nil {
				return err
			}
			for _, f := range found {
				if turn == 0 && i == 0 && b.wants("engine, "+f.name) {
					order = append(order, f.name)
				}
				values[i][f.name] = append(values[i][f.name], 1e9/f.nanoseconds)
			}
		}
	}
	for _, name := range order {
		p := &pair{name: "engine, " + name, unit: "runs/s", old: values[0][name], new: values[1][name], best: true}
		if len(p.new) != len(p.old) {
			b.note("%s: only the old checkout has it", p.name)
			continue
		}
		add(p)
	}
	return nil
}
