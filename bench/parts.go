package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/varve-dev/varve/test/harness"
)

// engineParts are parts of the engine that no policy switches off: what is kept besides names, and what is not cut.
// Each is taken out of a build of its own, and the measure that it is there for must fall.
var engineParts = []struct {
	measure string
	without harness.Mutant
}{
	{"line far", withoutPart("lines of results", "memory/lines.go",
		"c.choosePassages(room, chosen)", "c.choosePassages(0*room, chosen)")},
	{"value far", withoutPart("more for a line that says what a name is", "memory/read.go",
		"l.more = definesMore", "l.more = 1")},
	{"last error", withoutPart("the newest failures", "memory/lines.go", "Failure: 2, ", "")},
	{"last count", withoutPart("the newest outcomes", "memory/lines.go", "Outcome: 3}", "}")},
	{"edit far", withoutPart("what the agent wrote last, whole", "memory/lines.go",
		"c.chooseWritten(written, chosen)", "c.chooseWritten(0*written, chosen)")},
	{"decided 5", withoutPart("sentences of the agent", "quote.go", "s.linesRoom() * 4 / 3", "0")},
	{"seen", withoutPart("what no request has had stays", "protect.go",
		"list[m] = next\n", "list[m] = min(m, next)\n")},
}

func withoutPart(name, file, text, instead string) harness.Mutant {
	return harness.Mutant{Name: name, Edits: []harness.Edit{
		harness.Replace("internal/compact/"+file, text, instead),
	}}
}

// The windows between which the parts' measures are interpolated, to a mean view of 32,000 tokens.
const partsWindows, partsMean = "48000,64000", "32000.00"

// measureParts replays the recorded conversations with the engine, and without each of its parts.
func measureParts(ctx context.Context, b *bench) error {
	whole, err := replayedWithout(ctx, nil)
	if errors.Is(err, os.ErrNotExist) {
		b.note("parts: not measured, because there are no recorded conversations")
		return nil
	}
	if err != nil {
		return err
	}
	var lines [][]string
	for i := range engineParts {
		part := &engineParts[i]
		less, err := replayedWithout(ctx, &part.without)
		if err != nil {
			return fmt.Errorf("without %s: %w", part.without.Name, err)
		}
		with, without := whole[part.measure], less[part.measure]
		lines = append(lines, []string{part.without.Name, part.measure, with, without})
		b.progress("without %s: %s %s, %s", part.without.Name, part.measure, with, without)
	}
	b.parts = table([]string{"without", "measure", "with it, %", "without it, %"}, lines)
	return nil
}

// replayedWithout returns the measures of the default policy by their names, with the engine that a mutant makes.
func replayedWithout(ctx context.Context, part *harness.Mutant) (map[string]string, error) {
	data := os.Getenv("VARVE_DATA")
	if _, err := os.Stat(data); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "varve-parts-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := harness.BuildOf(ctx, dir, part, "./cmd/varve"); err != nil {
		return nil, err
	}
	rows := filepath.Join(dir, "rows.csv")
	run := exec.CommandContext(ctx, filepath.Join(dir, "varve"), "replay", "run", data, "--profiles", "default",
		"--yardsticks", "none", "--seeds", "0", "--windows", partsWindows, "--csv", rows)
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	file, err := os.Open(rows)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return measuresIn(csv.NewReader(file))
}

// measuresIn returns the measures of the row at the parts' mean view.
func measuresIn(rows *csv.Reader) (map[string]string, error) {
	all, err := rows.ReadAll()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(row []string) bool { return row[1] == "0" && row[2] == partsMean })
	if at < 0 {
		return nil, fmt.Errorf("there is no row at a mean view of %s tokens", partsMean)
	}
	measures := map[string]string{}
	for i, name := range all[0] {
		measures[name] = all[at][i]
	}
	return measures, nil
}

// publishParts writes the table of the parts.
func (b *bench) publishParts() error {
	return writeDocs(docsFile, map[string]string{"parts": b.parts})
}
