package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// column is a column of the text tables.
type column struct {
	title string
	cell  func(*Row) string
}

// columns are the columns of the text tables. Costs are in thousands of input tokens that no cache holds.
var columns = []column{
	{"policy", func(r *Row) string { return r.Contender }},
	{"far calls", func(r *Row) string { return tenths(r.Far) }},
	{"late calls", func(r *Row) string { return tenths(r.Calls) }},
	{"far edits", func(r *Row) string { return tenths(r.FarEdits) }},
	{"read-backs", func(r *Row) string { return tenths(r.ReadBacks) }},
	{"cost k", func(r *Row) string { return thousands(r.Cost["anthropic"]) }},
	{"+ back k", func(r *Row) string { return thousands(r.FullCost["anthropic"]) }},
	{"openai k", func(r *Row) string { return thousands(r.Cost["openai-0.1"]) }},
	{"user", func(r *Row) string { return tenths(r.UserEach) }},
	{"at end", func(r *Row) string { return tenths(r.UserEnd) }},
	{"demands", func(r *Row) string { return tenths(r.Demands) }},
	{"over", func(r *Row) string { return tenths(r.Over) }},
	{"peak", func(r *Row) string { return fmt.Sprintf("%.0f", r.Peak) }},
	{"compactions", func(r *Row) string { return tenths(r.Compactions) }},
	{"mean view", func(r *Row) string { return fmt.Sprintf("%.0f", r.MeanView) }},
	{"prefix", func(r *Row) string { return tenths(r.Prefix) }},
	{"far beside default (95 %)", func(r *Row) string { return r.Against.String() }},
}

func tenths(v float64) string    { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }
func thousands(v float64) string { return fmt.Sprintf("%.0f", v/1000) }

// WriteText writes the report as aligned tables.
func (r *Report) WriteText(w io.Writer) error {
	for rows := range r.tables() {
		fmt.Fprintf(w, "%s\n\n", rows[0].title())
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, c := range columns {
			fmt.Fprintf(out, "%s\t", c.title)
		}
		fmt.Fprintln(out)
		for i := range rows {
			for _, c := range columns {
				fmt.Fprintf(out, "%s\t", c.cell(&rows[i]))
			}
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// tables yields the rows of one table after another.
func (r *Report) tables() func(func([]Row) bool) {
	return func(yield func([]Row) bool) {
		for all := slices.Concat(r.Equal, r.Same); len(all) > 0; {
			n := 1
			for n < len(all) && all[n].title() == all[0].title() {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// title returns the title of the row's table.
func (r *Row) title() string {
	what := fmt.Sprintf("Mean view of %.0f tokens", r.MeanView)
	if r.Window > 0 {
		what = fmt.Sprintf("Window of %d tokens", r.Window)
	}
	return fmt.Sprintf("%s: %d sessions, %.0f late calls, %.0f of them far, %.0f far edits", what, r.Sessions,
		r.LateCalls, r.FarCalls, r.EditCalls)
}

// String returns the difference and its interval, "" for none.
func (i *Interval) String() string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf("%+.1f (%+.1f … %+.1f)", i.Difference, i.Low, i.High)
}
