package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
)

// The windows of the replay: all are interpolated between, and the second ones have a table and planted facts. What the
// default policy is without its parts is compared at one size of the view, which two windows are around.
var (
	replayWindows  = []int{26_000, 32_000, 40_000, 48_000, 64_000, 80_000, 96_000}
	tableWindows   = []int{32_000}
	withoutWindows = []int{48_000, 64_000}
	withoutMeans   = []int{32_000}
)

// factSeeds is how often facts are planted in each session.
const factSeeds = 1

// questionsFile has the questions that the recorded conversations are asked. They were written from the conversations,
// without a look at their views.
const questionsFile = "bench/questions.json"

// replayPlot is the plot of docsFile.
const replayPlot = "docs/replay.svg"

// measureReplay replays the recorded conversations under every profile and every yardstick, and under the default
// policy without each of its parts.
func measureReplay(ctx context.Context, b *bench) error {
	sessions, _, err := folder.Read(ctx, os.Getenv("VARVE_DATA"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(sessions) > 0 {
		if err := folder.Ask(questionsFile, sessions); err != nil {
			return err
		}
	}
	contenders, err := replayed()
	if err != nil {
		return err
	}
	less, err := replay.Without()
	if err != nil {
		return err
	}
	facts, err := replay.FactTasks(sessions, contenders, tableWindows, factSeeds)
	if err != nil {
		return err
	}
	tasks := replay.Tasks(sessions, contenders, replayWindows)
	if tasks = append(tasks, facts...); len(tasks) == 0 {
		b.note("replay: not measured, because there are no recorded conversations that are long enough")
		return nil
	}
	whole := len(tasks)
	tasks = append(tasks, replay.Tasks(sessions, less, withoutWindows)...)
	b.progress("replay, %d measurements", len(tasks))
	outcomes, err := replay.MeasureAll(ctx, tasks, func(int) {})
	b.replayed = replay.Summarise(outcomes[:whole], replay.Options{Windows: tableWindows})
	ofDefault := func(o replay.Outcome) bool { return o.Contender != replay.Default }
	compared := append(slices.DeleteFunc(slices.Clone(outcomes[:whole]), ofDefault), outcomes[whole:]...)
	b.without = replay.Summarise(compared, replay.Options{Windows: []int{}, MeanViews: withoutMeans})
	return err
}

// replayed returns the contenders.
func replayed() ([]replay.Contender, error) {
	list, err := replay.Profiles(policy.Profiles()...)
	for _, name := range replay.Yardsticks() {
		y, err := replay.Yardstick(name)
		if err != nil {
			return nil, err
		}
		list = append(list, y)
	}
	return list, err
}

// replayTables returns the tables of the replay that the page has, "" if it was not measured. varve replay prints all.
func (b *bench) replayTables() string {
	if b.replayed == nil {
		return ""
	}
	var text bytes.Buffer
	write := func(r *replay.Report, before string, beginnings ...string) {
		for _, t := range r.Tables() {
			begins := func(with string) bool { return strings.HasPrefix(t.Title, with) }
			if slices.ContainsFunc(beginnings, begins) {
				t = withoutColumns(t, "decided 1", "decided 2", "demands 1", "demands 2")
				of := strings.ReplaceAll(table(t.Head, t.Lines), " … ", "…")
				text.WriteString("### " + before + t.Title + "\n\n" + of + "\n")
			}
		}
	}
	write(b.replayed, "", "Mean view of 32000 tokens: ", "Mean view of 20000 tokens: content",
		"Mean view of 48000 tokens: content", "Window of 32000 tokens: planted facts in the view")
	write(b.without, "Without a part: ", "Mean view of 32000 tokens: content")
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// withoutColumns returns a table without the columns whose names begin so: the page is narrower than a terminal.
func withoutColumns(t replay.Table, names ...string) replay.Table {
	drop := func(head string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(head, name+" ") })
	}
	narrow := replay.Table{Title: t.Title, Lines: make([][]string, len(t.Lines))}
	for i, head := range t.Head {
		if drop(head) {
			continue
		}
		narrow.Head = append(narrow.Head, head)
		for n := range t.Lines {
			narrow.Lines[n] = append(narrow.Lines[n], t.Lines[n][i])
		}
	}
	return narrow
}

// publishReplay writes the tables and the plot of a replay of everything.
func (b *bench) publishReplay() error {
	if b.replayed == nil || b.isPart {
		return nil
	}
	if err := writeDocs(docsFile, map[string]string{"replay": b.replayTables()}); err != nil {
		return err
	}
	var plot bytes.Buffer
	if err := b.replayed.WriteSVG(&plot); err != nil {
		return err
	}
	return os.WriteFile(replayPlot, slices.Clip(plot.Bytes()), 0o644)
}
