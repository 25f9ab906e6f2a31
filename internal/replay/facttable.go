package replay

import "slices"

// FactRow is what became of planted facts under one contender in one window.
type FactRow struct {
	Contender string                 `json:"contender"`
	Window    int                    `json:"window"`
	After     []FactShare            `json:"after"` // 1, 2, 5, 10, 20 compactions
	ByKind    map[string][]FactShare `json:"by_kind"`
}

// FactShare is how many facts are left after some compactions: shares in percent.
type FactShare struct {
	Compactions int     `json:"compactions"`
	Facts       int     `json:"facts"` // that were compacted that often
	Held        float64 `json:"held"`  // by the view
	Recalled    float64 `json:"recalled"`
	OfResults   int     `json:"of_results"` // of the facts, those that only a result held
	ResultsHeld float64 `json:"results_held"`
}

// afters are the numbers of compactions after which facts are counted.
var afters = []int{1, 2, 5, 10, 20}

// factRows sums the facts up, in the order in which the contenders first occur in each window.
func factRows(outcomes []Outcome) (rows []FactRow) {
	var order []cell
	fates := map[cell][]*Fate{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Seed == 0 {
			continue
		}
		at := cell{o.Contender, o.Window}
		order = appendNew(order, at)
		for k := range o.Facts {
			fates[at] = append(fates[at], &o.Facts[k])
		}
	}
	slices.SortStableFunc(order, func(a, b cell) int { return a.window - b.window })
	for _, at := range order {
		row := FactRow{Contender: at.contender, Window: at.window, ByKind: map[string][]FactShare{}}
		row.After = factShares(fates[at])
		for _, kind := range FactKinds() {
			row.ByKind[kind] = factShares(slices.DeleteFunc(slices.Clone(fates[at]), func(f *Fate) bool {
				return f.Kind != kind
			}))
		}
		rows = append(rows, row)
	}
	return rows
}

func factShares(list []*Fate) (shares []FactShare) {
	for _, n := range afters {
		var held, recalled, ofResults Ratio
		for _, f := range list {
			if len(f.Views) < n {
				continue
			}
			held.count(f.Views[n-1])
			recalled.count(f.Recall[n-1])
			if f.OfResult {
				ofResults.count(f.Views[n-1])
			}
		}
		shares = append(shares, FactShare{
			Compactions: n, Facts: int(held.All), Held: held.Share(), Recalled: recalled.Share(),
			OfResults: int(ofResults.All), ResultsHeld: ofResults.Share(),
		})
	}
	return shares
}

// count counts one of all, and whether it was kept.
func (r *Ratio) count(kept bool) {
	if r.All++; kept {
		r.Kept++
	}
}
