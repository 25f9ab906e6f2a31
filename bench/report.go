package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// notSet stands in the place of a goal that is not known yet.
const notSet = "not set"

// row is one line of the table.
type row struct {
	Name   string    `json:"name"`
	Value  float64   `json:"value"`
	Unit   string    `json:"unit"`
	Floor  float64   `json:"floor,omitempty"`  // in the same unit, or the other checkout's value; 0 for none
	Ratio  float64   `json:"ratio,omitempty"`  // value to floor
	Spread []float64 `json:"spread,omitempty"` // the smallest and the largest ratio of a pair of rounds
	Goal   string    `json:"goal,omitempty"`   // ">= 0.8" of the ratio if there is a floor, else of the value
	Met    string    `json:"met,omitempty"`    // yes or NO
}

// beside returns the row with its floor, unless that is 0.
func (r row) beside(floor float64) row {
	r.Floor = floor
	if floor > 0 {
		r.Ratio = r.Value / floor
	}
	return r
}

// pairs returns the row with what rounds that took turns gave: medians, and the median and spread of their ratios.
func (r row) pairs(ours, floor []float64) row {
	ratios := make([]float64, len(ours))
	for i := range ratios {
		ratios[i] = ours[i] / floor[i]
	}
	slices.Sort(ratios)
	n := len(ratios)
	r.Value = median(ours)
	r.Floor = median(floor)
	r.Ratio = (ratios[(n-1)/2] + ratios[n/2]) / 2
	r.Spread = []float64{ratios[0], ratios[n-1]}
	return r
}

// judged returns the row with what became of its goal.
func (r row) judged() row {
	var relation string
	var bound float64
	if n, _ := fmt.Sscanf(r.Goal, "%s %g", &relation, &bound); n < 2 {
		return r // no goal, or one that is not set
	}
	number := r.Value
	if r.Floor > 0 {
		number = r.Ratio
	}
	r.Met = "NO"
	if number == bound || number < bound == (relation == "<=") {
		r.Met = "yes"
	}
	return r
}

func (r row) cells() []string {
	spread := ""
	if len(r.Spread) > 0 {
		spread = fmt.Sprintf("%.3f to %.3f", r.Spread[0], r.Spread[1])
	}
	ratio := ""
	if r.Floor > 0 {
		ratio = fmt.Sprintf("%.3f", r.Ratio)
	}
	return []string{r.Name, r.Unit, number(r.Value), number(r.Floor), ratio, spread, r.Goal, r.Met}
}

var (
	rowsHead    = []string{"what", "unit", "value", "floor", "ratio", "spread of the pairs", "goal", "met"}
	againstHead = []string{"what", "unit", "new", "old", "new/old", "spread of the pairs"}
)

func (b *bench) add(rows ...row) {
	for _, r := range rows {
		b.rows = append(b.rows, r.judged())
		b.progress("  %s", strings.Join(b.rows[len(b.rows)-1].cells()[1:], " "))
	}
}

// report prints the tables and, if it is asked for, writes the file and the documentation.
func (b *bench) report(w io.Writer) error {
	if b.against != "" && len(b.rows) == 0 {
		return errors.New("-against measures append, view, compaction, engine: none was chosen, or -run matches none")
	}
	notes := strings.Join(b.notes, "\n")
	fmt.Fprintf(w, "%s\n%s\n%s\n%s\n", b.rowsTable(b.rows), notes, b.replayTables(), summaryTables(b.summaries))
	if err := errors.Join(b.publishReplay(), b.publishSummaries(), b.publishLastViews(), b.publishParts()); err != nil {
		return err
	}
	if b.publish {
		judged := slices.DeleteFunc(slices.Clone(b.rows), func(r row) bool { return r.Met == "" })
		if err := writeDocs(docsFile, map[string]string{"measurements": b.rowsTable(judged)}); err != nil {
			return err
		}
	}
	if b.output == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		Measurements []row    `json:"measurements"`
		Notes        []string `json:"notes"`
	}{b.rows, b.notes}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.output, append(text, '\n'), 0o644)
}

// rowsTable returns a table of measurements.
func (b *bench) rowsTable(rows []row) string {
	head := rowsHead
	if b.against != "" {
		head = againstHead
	}
	var lines [][]string
	for _, r := range rows {
		lines = append(lines, r.cells()[:len(head)])
	}
	return table(head, lines)
}

// table returns a Markdown table, "" if it has no lines.
func table(head []string, lines [][]string) string {
	if len(lines) == 0 {
		return ""
	}
	var text strings.Builder
	for _, cells := range append([][]string{head, slices.Repeat([]string{"---"}, len(head))}, lines...) {
		text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return text.String()
}

// writeDocs replaces the generated sections of a page. What was not measured, because there are no recorded
// conversations for example, stays as it is.
func writeDocs(path string, sections map[string]string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for name, text := range sections {
		if text == "" {
			continue
		}
		if page, err = replaceSection(page, name, text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, page, 0o644)
}

// replaceSection replaces the text between the two comments that name a section.
func replaceSection(page []byte, name, text string) ([]byte, error) {
	begin, end := "<!-- bench: "+name+" -->\n", "<!-- end: "+name+" -->"
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("there is no section %q between %q and %q", name, begin, end)
	}
	return fmt.Appendf(nil, "%s%s\n%s\n%s%s", before, begin, text, end, after), nil
}

// number shows three significant digits; "" for a number that is not there.
func number(v float64) string {
	switch {
	case v == 0:
		return ""
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
