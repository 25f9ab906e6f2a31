package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// goal is a number to reach: of the ratio to the floor where there is one, else of the value.
type goal struct {
	bound   float64
	isLimit bool // the number must not be larger
}

func atLeast(bound float64) *goal { return &goal{bound: bound} }
func atMost(bound float64) *goal  { return &goal{bound: bound, isLimit: true} }

// String returns the goal as the table and the file show it.
func (g *goal) String() string {
	switch {
	case g == nil:
		return ""
	case g.isLimit:
		return fmt.Sprintf("<= %g", g.bound)
	}
	return fmt.Sprintf(">= %g", g.bound)
}

// row is one line of the table.
type row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Floor float64 `json:"floor,omitempty"` // in the same unit; 0 for none
	Ratio float64 `json:"ratio,omitempty"` // value to floor
	Goal  *goal   `json:"-"`
	Wants string  `json:"goal,omitempty"` // the goal as a text
	Met   *bool   `json:"met,omitempty"`
}

func (r row) beside(floor float64) row {
	r.Floor, r.Ratio = floor, r.Value/floor
	return r
}

// judged returns the row with what became of its goal.
func (r row) judged() row {
	if r.Goal == nil {
		return r
	}
	number := r.Value
	if r.Floor > 0 {
		number = r.Ratio
	}
	met := number >= r.Goal.bound
	if r.Goal.isLimit {
		met = number <= r.Goal.bound
	}
	r.Wants, r.Met = r.Goal.String(), &met
	return r
}

func (r row) verdict() string {
	switch {
	case r.Met == nil:
		return ""
	case *r.Met:
		return "yes"
	}
	return "NO"
}

func (b *bench) add(r row) {
	r = r.judged()
	b.rows = append(b.rows, r)
	b.progress("  %s %s, ratio %s %s %s", number(r.Value), r.Unit, number(r.Ratio), r.Goal, r.verdict())
}

// report prints the tables and, if it is asked for, writes the file and the documentation.
func (b *bench) report(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s", b.rowsTable(), b.livesTable(func(*life) bool { return true }))
	if b.publish {
		if err := b.writeDocs(docsFile); err != nil {
			return err
		}
	}
	if b.output == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		Measurements []row    `json:"measurements"`
		Profiles     []life   `json:"profiles"`
		Notes        []string `json:"notes"`
	}{b.rows, b.lives, b.notes}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.output, append(text, '\n'), 0o644)
}

// writeDocs replaces the generated tables of a page. What was not measured, because there are no recorded conversations
// for example, stays as it is.
func (b *bench) writeDocs(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, table := range []struct{ name, text string }{
		{"measurements", b.rowsTable()},
		{"profiles", b.livesTable(func(l *life) bool { return l.Set == allSets })},
		{"data-sets", b.livesTable(func(l *life) bool { return l.Set != allSets })},
	} {
		if table.text == "" {
			continue
		}
		if page, err = replaceSection(page, table.name, table.text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, page, 0o644)
}

// replaceSection replaces what stands between the two comments that name a section.
func replaceSection(page []byte, name, text string) ([]byte, error) {
	begin, end := "<!-- bench: "+name+" -->\n", "<!-- end: "+name+" -->"
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("there is no section %q between %q and %q", name, begin, end)
	}
	return fmt.Appendf(nil, "%s%s\n%s\n%s%s", before, begin, text, end, after), nil
}

// rowsTable returns the measurements and the notes below them.
func (b *bench) rowsTable() string {
	rows := [][]string{{"what", "value", "unit", "floor", "ratio", "goal", "met"}}
	for _, r := range b.rows {
		rows = append(rows, []string{
			r.Name, number(r.Value), r.Unit, number(r.Floor), number(r.Ratio), r.Goal.String(), r.verdict(),
		})
	}
	table := markdown(rows)
	if len(b.notes) > 0 {
		table += "\n* " + strings.Join(b.notes, "\n* ") + "\n"
	}
	return table
}

// livesTable returns the lives that are wanted.
func (b *bench) livesTable(wanted func(*life) bool) string {
	rows := [][]string{{
		"window", "profile", "data set", "crossed", "compactions", "tokens", "view at the end", "of the log",
		"prefix kept", "on target",
	}}
	for i := range b.lives {
		if l := &b.lives[i]; wanted(l) {
			rows = append(rows, []string{
				fmt.Sprintf("%dk", l.Window/1000), l.Profile, l.Set, fmt.Sprintf("%d of %d", l.Crossed, l.Sessions),
				fmt.Sprint(l.Compactions), fmt.Sprint(l.Before), fmt.Sprint(l.After), percent(l.Share),
				percent(l.KeptShare), fmt.Sprint(l.OnTarget),
			})
		}
	}
	return markdown(rows)
}

// markdown returns a table whose first row is its head, "" for one without other rows.
func markdown(rows [][]string) string {
	if len(rows) < 2 {
		return ""
	}
	var text strings.Builder
	for i, cells := range rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintf(&text, "|%s\n", strings.Repeat(" --- |", len(cells)))
		}
	}
	return text.String()
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

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
