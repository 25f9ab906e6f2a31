package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Options say how outcomes are compared.
type Options struct {
	Baseline  string // the contender that the others are compared with; "": Default
	MeanViews []int  // tokens of the late views at which contenders are compared; nil: 20k, 32k, 48k
	Windows   []int  // that have a table; nil: all
	Resamples int    // of the bootstrap; 0: 400
	Seed      uint64 // of the bootstrap
}

// Report compares contenders.
type Report struct {
	Baseline string `json:"baseline"` // the contender that the others are compared with

	Equal []Row `json:"equal"` // at equal mean size of the late views, interpolated over the windows
	Same  []Row `json:"same"`  // in the same window

	Curves []Curve   `json:"curves"` // of the long sessions, over the windows
	Facts  []FactRow `json:"facts,omitempty"`
}

// Curve is how a contender's figures go with the size of its views.
type Curve struct {
	Contender string       `json:"contender"`
	Points    []CurvePoint `json:"points"` // by mean view
}

// CurvePoint is one window of a contender.
type CurvePoint struct {
	MeanView float64 `json:"mean_view"`
	Far      float64 `json:"far"`
	FullCost float64 `json:"full_cost"` // of the first price card, read-backs included
}

// Row is one contender at one mean size, or in one window.
type Row struct {
	Contender string  `json:"contender"`
	Window    int     `json:"window,omitempty"` // 0 at equal mean size
	MeanView  float64 `json:"mean_view"`        // tokens of the late views
	Sessions  int     `json:"sessions"`
	Values
	Against *Interval            `json:"far_against,omitempty"`     // of the far calls' difference to the baseline
	Beside  map[string]*Interval `json:"content_against,omitempty"` // the same of content
}

// Values are the figures of a row: shares in percent, and sums over the sessions. Those of calls are over late
// requests, all others over all requests.
type Values struct {
	Far         float64            `json:"far"`
	Calls       float64            `json:"calls"`
	FarEdits    float64            `json:"far_edits"`
	FarBy       map[string]float64 `json:"far_by"`
	CallsBy     map[string]float64 `json:"calls_by"`
	Content     map[string]float64 `json:"content,omitempty"`     // by its name
	ContentAll  map[string]float64 `json:"content_all,omitempty"` // of how many
	ReadBacks   float64            `json:"read_backs"`
	Cost        map[string]float64 `json:"cost"`
	FullCost    map[string]float64 `json:"full_cost"` // read-backs included
	UserEnd     float64            `json:"user_end"`
	UserEach    float64            `json:"user_each"`
	Demands     float64            `json:"demands"`
	Compactions float64            `json:"compactions"`
	Prefix      float64            `json:"prefix"`
	Over        float64            `json:"over"`
	Peak        float64            `json:"peak"`
	FarCalls    float64            `json:"far_calls"` // how many there are
	LateCalls   float64            `json:"late_calls"`
	EditCalls   float64            `json:"edit_calls"`
}

// Interval is a difference with its 95 % interval.
type Interval struct {
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
}

// longTokens is how many tokens a session must have to be compared at equal mean size.
const longTokens = 60_000

func (o Options) withDefaults() Options {
	o.Baseline = cmp.Or(o.Baseline, Default)
	o.Resamples = cmp.Or(o.Resamples, 400)
	if o.MeanViews == nil {
		o.MeanViews = []int{20_000, 32_000, 48_000}
	}
	return o
}

// Summarise compares the contenders that have outcomes, in the order in which they first occur.
func Summarise(outcomes []Outcome, o Options) *Report {
	o = o.withDefaults()
	t := newTable(outcomes)
	samples := draws(len(t.sessions), o)
	r := &Report{Baseline: o.Baseline}
	for _, mean := range o.MeanViews {
		r.Equal = append(r.Equal, t.equal(float64(mean), o, samples)...)
	}
	for _, window := range t.windows {
		if o.Windows != nil && !slices.Contains(o.Windows, window) {
			continue
		}
		r.Same = append(r.Same, t.same(window)...)
	}
	for _, name := range t.contenders {
		r.Curves = append(r.Curves, curveOf(name, t.curve(name)))
	}
	r.Facts = factRows(outcomes)
	return r
}

func curveOf(name string, c curve) Curve {
	points := make([]CurvePoint, len(c))
	for i := range c {
		points[i] = CurvePoint{c[i].mean, c[i].values.Far, c[i].values.FullCost[Cards()[0].Name]}
	}
	return Curve{Contender: name, Points: points}
}

// Behind returns in words where the baseline has less of the far calls whole, or of content, than one of these
// contenders at one of these mean sizes, and the whole interval of the difference, as it is printed, says so.
func (r *Report) Behind(contenders []string, means ...int) (reasons []string) {
	for i := range r.Equal {
		row := &r.Equal[i]
		compared := slices.Contains(contenders, row.Contender) && slices.Contains(means, int(row.MeanView))
		if row.Against == nil || !compared {
			continue
		}
		beside := map[string]*Interval{"far calls": row.Against}
		maps.Copy(beside, row.Beside)
		for _, what := range slices.Sorted(maps.Keys(beside)) {
			if d := beside[what]; d != nil && d.Low >= leastDifference {
				reasons = append(reasons, fmt.Sprintf("at a mean view of %.0f tokens %s has more of %s than %s: %s",
					row.MeanView, row.Contender, what, r.Baseline, d))
			}
		}
	}
	return reasons
}

// leastDifference is the least number of percentage points that is printed as one.
const leastDifference = 0.05

// table has outcomes by contender and window.
type table struct {
	contenders []string
	windows    []int
	sessions   []string // the long ones, that are compared at equal mean size
	cells      map[cell][]*Outcome
	long       map[cell]map[string]*Outcome
}

type cell struct {
	contender string
	window    int
}

func newTable(outcomes []Outcome) *table {
	t := &table{cells: map[cell][]*Outcome{}, long: map[cell]map[string]*Outcome{}}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Seed != 0 {
			continue
		}
		at := cell{o.Contender, o.Window}
		t.contenders = appendNew(t.contenders, o.Contender)
		t.windows = appendNew(t.windows, o.Window)
		if float64(o.LogTokens) >= lateShare*float64(o.Window) {
			t.cells[at] = append(t.cells[at], o)
		}
		if o.LogTokens >= longTokens {
			t.sessions = appendNew(t.sessions, o.Session)
			if t.long[at] == nil {
				t.long[at] = map[string]*Outcome{}
			}
			t.long[at][o.Session] = o
		}
	}
	slices.Sort(t.windows)
	return t
}

func appendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// same returns the rows of one window.
func (t *table) same(window int) (rows []Row) {
	for _, name := range t.contenders {
		if list := t.cells[cell{name, window}]; len(list) > 0 {
			p := sumUp(list, func(o *Outcome) *Sums { return &o.Share })
			rows = append(rows, Row{
				Contender: name, Window: window, Sessions: len(list), MeanView: p.mean, Values: p.values,
			})
		}
	}
	return rows
}

// equal returns the rows at one mean size of the view, the most far calls first.
func (t *table) equal(mean float64, o Options, samples [][]int) (rows []Row) {
	base := t.curve(o.Baseline)
	for _, name := range t.contenders {
		c := t.curve(name)
		if !c.reaches(mean) {
			continue
		}
		row := Row{Contender: name, MeanView: mean, Sessions: len(t.sessions), Values: c.at(mean)}
		if name != o.Baseline && base.reaches(mean) {
			row.Against = t.against(func(o *Outcome) Ratio { return o.Late.Far }, name, o.Baseline, mean, samples)
			row.Beside = map[string]*Interval{}
			for c := range contents {
				of := func(o *Outcome) Ratio { return o.content(c, func(o *Outcome) *Sums { return &o.Late }) }
				if row.ContentAll[c.String()] > 0 {
					row.Beside[c.String()] = t.against(of, name, o.Baseline, mean, samples)
				}
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.Far, a.Far) })
	return rows
}
