package replay

// Options say how outcomes are compared.
type Options struct {
	Baseline  string // the contender that the others are compared with; "": Default
	MeanViews []int  // tokens of the late views at which contenders are compared; nil: 20k, 32k, 48k
	Resamples int    // of the bootstrap; 0: 400
	Seed      uint64 // of the bootstrap
}

// Report compares contenders.
type Report struct {
	Equal []Row `json:"equal"` // at equal mean size of the late views, interpolated over the windows
	Same  []Row `json:"same"`  // in the same window
}

// Row is one contender at one mean size, or in one window.
type Row struct {
	Contender string  `json:"contender"`
	Window    int     `json:"window,omitempty"`
	MeanView  float64 `json:"mean_view"`
	Sessions  int     `json:"sessions"`
	Values
	Against *Interval `json:"far_against,omitempty"` // of the far calls' difference to the baseline
}

// Values are the figures of a row: shares in percent, sums over the sessions.
type Values struct {
	Far         float64            `json:"far"`
	Calls       float64            `json:"calls"`
	FarEdits    float64            `json:"far_edits"`
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
}

// Interval is a difference with its 95 % interval.
type Interval struct{ Difference, Low, High float64 }

// Summarise compares the contenders that have outcomes.
func Summarise(outcomes []Outcome, o Options) *Report { return &Report{} }
