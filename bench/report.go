package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// goal is a number to reach: of the ratio to the floor where there is one, else of the value.
type goal struct {
	bound  float64
	atMost bool
}

func atLeast(bound float64) *goal { return &goal{bound: bound} }
func atMost(bound float64) *goal  { return &goal{bound: bound, atMost: true} }

// String is the goal as the table and the file show it.
func (g *goal) String() string {
	if g == nil {
		return ""
	}
	if g.atMost {
		return fmt.Sprintf("<= %g", g.bound)
	}
	return fmt.Sprintf(">= %g", g.bound)
}

// row is one line of the table.
type row struct {
	Name  string
	Value float64
	Unit  string
	Floor float64 // in the same unit; 0 for none
	Ratio float64 // value to floor
	Goal  *goal
}

func (r row) beside(floor float64) row {
	r.Floor, r.Ratio = floor, r.Value/floor
	return r
}

func (r row) met() bool {
	judged := r.Value
	if r.Floor > 0 {
		judged = r.Ratio
	}
	if r.Goal.atMost {
		return judged <= r.Goal.bound
	}
	return judged >= r.Goal.bound
}

func (r row) verdict() string {
	switch {
	case r.Goal == nil:
		return ""
	case r.met():
		return "yes"
	}
	return "NO"
}

// MarshalJSON leaves out what there is none of.
func (r row) MarshalJSON() ([]byte, error) {
	out := struct {
		Name  string   `json:"name"`
		Value float64  `json:"value"`
		Unit  string   `json:"unit"`
		Floor *float64 `json:"floor"`
		Ratio *float64 `json:"ratio"`
		Goal  string   `json:"goal,omitempty"`
		Met   *bool    `json:"met,omitempty"`
	}{Name: r.Name, Value: r.Value, Unit: r.Unit, Goal: r.Goal.String()}
	if r.Floor > 0 {
		out.Floor, out.Ratio = &r.Floor, &r.Ratio
	}
	if r.Goal != nil {
		met := r.met()
		out.Met = &met
	}
	return json.Marshal(out)
}

func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	b.progress("  %s %s, ratio %s %s %s", number(r.Value), r.Unit, number(r.Ratio), r.Goal, r.verdict())
}

// report prints the tables and, if it is asked for, writes the file and the documentation.
func (b *bench) report(w io.Writer) error {
	if err := b.printRows(w); err != nil {
		return err
	}
	if err := b.printLives(w); err != nil {
		return err
	}
	for _, line := range b.notes {
		fmt.Fprintln(w, line)
	}
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

func (b *bench) printRows(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(rowHeads, "\t"))
	for _, r := range b.rows {
		fmt.Fprintln(table, strings.Join(r.cells(), "\t"))
	}
	return table.Flush()
}

var rowHeads = []string{"what", "value", "unit", "floor", "ratio", "goal", "met"}

func (r row) cells() []string {
	return []string{r.Name, number(r.Value), r.Unit, number(r.Floor), number(r.Ratio), r.Goal.String(), r.verdict()}
}

func (b *bench) printLives(w io.Writer) error {
	if len(b.lives) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n%s\t\n", strings.Join(lifeHeads, "\t"))
	for i := range b.lives {
		fmt.Fprintf(table, "%s\t\n", strings.Join(b.lives[i].cells(), "\t"))
	}
	return table.Flush()
}

var lifeHeads = []string{"window", "profile", "data set", "crossed", "compactions", "tokens", "view at the end", "of the log", "prefix kept", "on target"}

func (l *life) cells() []string {
	return []string{
		fmt.Sprintf("%dk", l.Window/1000), l.Profile, l.Set, fmt.Sprintf("%d of %d", l.Crossed, l.Sessions), fmt.Sprint(l.Compactions), fmt.Sprint(l.Before),
		fmt.Sprint(l.After), percent(l.Share), percent(l.KeptShare), fmt.Sprint(l.OnTarget),
	}
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// number shows three digits that matter; nothing for a number that is not there.
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
