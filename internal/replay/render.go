package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table is a part of the report as text.
type Table struct {
	Title string
	Head  []string
	Lines [][]string
}

// Tables returns the report as tables: those at equal mean size, those of the windows, and those of the facts.
func (r *Report) Tables() (list []Table) {
	for _, rows := range grouped(slices.Concat(r.Equal, r.Same)) {
		shown := columns
		if rows[0].Window > 0 { // nothing is compared with the baseline in one window
			shown = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.title == besideBaseline })
		}
		content := rows[0].size() + ": content that the view has, in % (how many)"
		list = append(list, r.tableOf(rows[0].title(), shown, rows),
			r.tableOf(content, contentColumns(rows), rows), r.tableOf(
				"Calls whole by the kind of string, far and late; costs by price card", kindColumns(), rows))
	}
	return append(list, factTables(r.Facts)...)
}

// WriteText writes the report as aligned tables.
func (r *Report) WriteText(w io.Writer) error {
	for _, t := range r.Tables() {
		fmt.Fprintf(w, "%s\n\n", t.Title)
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, cells := range append([][]string{t.Head}, t.Lines...) {
			fmt.Fprintln(out, strings.Join(cells, "\t")+"\t")
		}
		fmt.Fprintln(out)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// column is a column of a table.
type column struct {
	title string
	cell  func(*Row) string
}

// besideBaseline is the title of the column with the differences to the baseline.
const besideBaseline = "beside %s (95 %%)"

// columns are the columns of the main tables. Costs are in thousands of input tokens that no cache holds.
var columns = []column{
	{"policy", func(r *Row) string { return r.Contender }},
	{"far calls", func(r *Row) string { return tenths(r.Far) }},
	{besideBaseline, func(r *Row) string { return r.Against.String() }},
	{"late calls", func(r *Row) string { return tenths(r.Calls) }},
	{"far edits", func(r *Row) string { return tenths(r.FarEdits) }},
	{"read-backs", func(r *Row) string { return tenths(r.ReadBacks) }},
	{"cost", func(r *Row) string { return thousands(r.Cost["anthropic"]) }},
	{"with read-backs", func(r *Row) string { return thousands(r.FullCost["anthropic"]) }},
	{"user", func(r *Row) string { return tenths(r.UserEach) }},
	{"at the end", func(r *Row) string { return tenths(r.UserEnd) }},
	{"demands", func(r *Row) string { return tenths(r.Demands) }},
	{"over", func(r *Row) string { return tenths(r.Over) }},
	{"peak", func(r *Row) string { return fmt.Sprintf("%.0f", r.Peak) }},
	{"compactions", func(r *Row) string { return tenths(r.Compactions) }},
	{"mean view", func(r *Row) string { return fmt.Sprintf("%.0f", r.MeanView) }},
	{"prefix", func(r *Row) string { return tenths(r.Prefix) }},
}

// kindColumns returns the columns of calls by kind and of costs by price card.
func kindColumns() []column {
	list := columns[:1:1]
	for _, k := range kindNames {
		list = append(list,
			column{"far " + k, func(r *Row) string { return ofKind(r.FarBy, k) }},
			column{"late", func(r *Row) string { return ofKind(r.CallsBy, k) }})
	}
	for _, card := range Cards() {
		list = append(list,
			column{card.Name, func(r *Row) string { return thousands(r.Cost[card.Name]) }},
			column{"with read-backs", func(r *Row) string { return thousands(r.FullCost[card.Name]) }})
	}
	return list
}

// contentColumns returns the columns of content that any of the rows has.
func contentColumns(rows []Row) []column {
	list := columns[:1:1]
	for c := range contents {
		name := c.String()
		if all := rows[0].ContentAll[name]; all > 0 {
			list = append(list, column{fmt.Sprintf("%s (%.0f)", name, all), func(r *Row) string {
				if beside := r.Beside[name]; beside != nil {
					return tenths(r.Content[name]) + " " + beside.String()
				}
				return ofKind(r.Content, name)
			}})
		}
	}
	return list
}

// ofKind returns the share of a kind, "-" if no call uses a string of it.
func ofKind(by map[string]float64, kind string) string {
	if v, ok := by[kind]; ok {
		return tenths(v)
	}
	return "-"
}

func tenths(v float64) string    { return fmt.Sprintf("%.1f", v) }
func thousands(v float64) string { return fmt.Sprintf("%.0fk", v/1000) }

func (r *Report) tableOf(title string, columns []column, rows []Row) Table {
	t := Table{Title: title}
	for _, c := range columns {
		if c.title == besideBaseline {
			c.title = fmt.Sprintf(besideBaseline, r.Baseline)
		}
		t.Head = append(t.Head, c.title)
	}
	for i := range rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(&rows[i]))
		}
		t.Lines = append(t.Lines, cells)
	}
	return t
}

// grouped returns the rows of one table after another.
func grouped(rows []Row) (list [][]Row) {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].title() == rows[0].title() {
			n++
		}
		list = append(list, rows[:n])
		rows = rows[n:]
	}
	return list
}

// title returns the title of the row's table.
func (r *Row) title() string {
	return fmt.Sprintf("%s: %d sessions, %.0f late calls, %.0f of them far, %.0f far edits", r.size(), r.Sessions,
		r.LateCalls, r.FarCalls, r.EditCalls)
}

// size says at which size of the view the row's table compares.
func (r *Row) size() string {
	if r.Window > 0 {
		return fmt.Sprintf("Window of %d tokens", r.Window)
	}
	return fmt.Sprintf("Mean view of %.0f tokens", r.MeanView)
}

// String returns the difference and its interval, "" for none.
func (i *Interval) String() string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf("%+.1f (%+.1f … %+.1f)", i.Difference, i.Low, i.High)
}

// factTables returns, for each window, what became of facts over the compactions, and by kind after 2 and after 5.
func factTables(rows []FactRow) (list []Table) {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Window == rows[0].Window {
			n++
		}
		list = append(list, factsOver(rows[:n]), factsBy(rows[:n], 2), factsBy(rows[:n], 5))
		rows = rows[n:]
	}
	return list
}

// factsOver returns the table over the compactions. A cell has the share in the view and the number of facts.
func factsOver(rows []FactRow) Table {
	t := Table{
		Title: fmt.Sprintf("Window of %d tokens: planted facts in the view after n compactions, in %% (facts)",
			rows[0].Window),
		Head: []string{"policy"},
	}
	for _, n := range afters {
		t.Head = append(t.Head, fmt.Sprint(n))
	}
	t.Head = append(t.Head, "of results after 5", "within one call after 5")
	for i := range rows {
		cells := []string{rows[i].Contender}
		for _, s := range rows[i].After {
			cells = append(cells, share(s.Held, s.Facts))
		}
		five := rows[i].After[slices.Index(afters, 5)]
		cells = append(cells, share(five.ResultsHeld, five.OfResults), share(five.Recalled, five.Facts))
		t.Lines = append(t.Lines, cells)
	}
	return t
}

// factsBy returns the table by kind after a number of compactions.
func factsBy(rows []FactRow, compactions int) Table {
	t := Table{
		Title: fmt.Sprintf("Window of %d tokens: the same by kind after %d", rows[0].Window, compactions),
		Head:  append([]string{"policy"}, FactKinds()...),
	}
	for i := range rows {
		cells := []string{rows[i].Contender}
		for _, kind := range FactKinds() {
			s := rows[i].ByKind[kind][slices.Index(afters, compactions)]
			cells = append(cells, share(s.Held, s.Facts))
		}
		t.Lines = append(t.Lines, cells)
	}
	return t
}

// share returns a share of a number of facts, "-" if there are none.
func share(v float64, n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f (%d)", v, n)
}
