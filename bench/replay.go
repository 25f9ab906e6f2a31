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

// The windows of the replay: all are interpolated between, and the second ones have a table and planted facts.
var (
	replayWindows = []int{20_000, 26_000, 32_000, 40_000, 48_000, 64_000, 80_000, 96_000, 128_000}
	tableWindows  = []int{32_000, 64_000, 128_000}
	factWindows   = tableWindows[:2]
)

// factSeeds is how often facts are planted in each session.
const factSeeds = 3

// replayPlot is the plot of docsFile.
const replayPlot = "docs/replay.svg"

// measureReplay replays the recorded conversations under every profile and every yardstick.
func measureReplay(ctx context.Context, b *bench) error {
	sessions, _, err := folder.Read(ctx, os.Getenv("VARVE_DATA"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	contenders, err := replayed()
	if err != nil {
		return err
	}
	tasks := replay.Tasks(sessions, contenders, replayWindows)
	facts, err := replay.FactTasks(sessions, contenders, factWindows, factSeeds)
	if err != nil {
		return err
	}
	if tasks = append(tasks, facts...); len(tasks) == 0 {
		b.note("replay: not measured, because there are no recorded conversations that are long enough")
		return nil
	}
	b.progress("replay, %d measurements", len(tasks))
	outcomes, err := replay.MeasureAll(ctx, tasks, func(int) {})
	b.replayed = replay.Summarise(outcomes, replay.Options{Windows: tableWindows})
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

// replayTables returns the tables of the replay that the page has, "" if it was not measured: those of a mean view and
// of a window of 32,000 tokens. varve replay prints all.
func (b *bench) replayTables() string {
	if b.replayed == nil {
		return ""
	}
	var text bytes.Buffer
	for _, t := range b.replayed.Tables() {
		facts := strings.HasPrefix(t.Title, "Window of 32000 tokens: planted facts in the view")
		if !facts && !strings.HasPrefix(t.Title, "Mean view of 32000 tokens") {
			continue
		}
		text.WriteString("### " + t.Title + "\n\n" + table(t.Head, t.Lines) + "\n")
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
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
