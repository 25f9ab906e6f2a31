package replay

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// WriteCSV writes the rows of the tables, those at equal mean size first: there the window is 0.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := []string{
		"policy", "window", "mean_view", "sessions", "far_calls", "late_calls", "far_edits", "far_low", "far_high",
		"read_backs", "user_each", "user_end", "demands", "over", "peak", "compactions", "prefix",
	}
	for _, k := range kindNames {
		head = append(head, "far_"+k, "late_"+k)
	}
	for _, c := range contentNames {
		head = append(head, c, c+" low", c+" high")
	}
	for _, card := range Cards() {
		head = append(head, "cost_"+card.Name, "full_cost_"+card.Name)
	}
	lines := [][]string{head}
	for _, row := range slices.Concat(r.Equal, r.Same) {
		lines = append(lines, row.record())
	}
	return out.WriteAll(lines)
}

// record returns the row as cells.
func (r *Row) record() []string {
	low, high := "", ""
	if r.Against != nil {
		low, high = decimal(r.Against.Low), decimal(r.Against.High)
	}
	cells := []string{
		r.Contender, strconv.Itoa(r.Window), decimal(r.MeanView), strconv.Itoa(r.Sessions), decimal(r.Far),
		decimal(r.Calls), decimal(r.FarEdits), low, high, decimal(r.ReadBacks), decimal(r.UserEach), decimal(r.UserEnd),
		decimal(r.Demands), decimal(r.Over), decimal(r.Peak), decimal(r.Compactions), decimal(r.Prefix),
	}
	for _, k := range kindNames {
		cells = append(cells, decimal(r.FarBy[k]), decimal(r.CallsBy[k]))
	}
	for _, c := range contentNames {
		low, high := "", ""
		if beside := r.Beside[c]; beside != nil {
			low, high = decimal(beside.Low), decimal(beside.High)
		}
		cells = append(cells, decimal(r.Content[c]), low, high)
	}
	for _, card := range Cards() {
		cells = append(cells, decimal(r.Cost[card.Name]), decimal(r.FullCost[card.Name]))
	}
	return cells
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
