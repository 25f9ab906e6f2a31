package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
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
	b.results = append(b.results, r)
	b.progress("  %s %s, ratio %s %s %s", number(r.Value), r.Unit, number(r.Ratio), r.Goal, r.verdict())
}

// report prints the table and writes the file.
func (b *bench) report(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tvalue\tunit\tfloor\tratio\tgoal\tmet")
	for _, r := range b.rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, number(r.Value), r.Unit, number(r.Floor), number(r.Ratio), r.Goal, r.verdict())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range b.notes {
		fmt.Fprintln(w, line)
	}
	text, err := json.MarshalIndent(b.rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.output, append(text, '\n'), 0o644)
}

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
