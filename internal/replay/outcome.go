package replay

// Outcome is what came of one session under one contender in one window: plain data, to be stored and summed up.
type Outcome struct {
	Session     string `json:"session"`
	Contender   string `json:"contender"`
	Window      int    `json:"window"`
	Seed        int    `json:"seed,omitempty"` // of the facts that were planted, 0 for none
	LogTokens   int64  `json:"log_tokens"`
	Compactions int    `json:"compactions"` // that changed the view
	Peak        int64  `json:"peak"`        // tokens of the largest view that was requested
	Prefix      Ratio  `json:"prefix"`      // tokens of the beginnings that outlived a compaction, of the views before

	All   Sums `json:"all"`   // of all requests
	Share Sums `json:"share"` // of the requests after 0.8 of the window
	Late  Sums `json:"late"`  // of the requests after 40,000 tokens of the log

	UserEnd    Ratio  `json:"user_end"`    // characters of the user's words in the last view, of all
	UserEach   Ratio  `json:"user_each"`   // after each compaction, of those until then, summed up
	DemandsEnd Ratio  `json:"demands_end"` // sentences of the user that demand something
	Facts      []Fate `json:"facts,omitempty"`

	Content [contents]Ratio `json:"content"` // what is measured after compactions
}

// Ratio is a sum of what was kept and of all.
type Ratio struct {
	Kept float64 `json:"kept"`
	All  float64 `json:"all"`
}

// Share returns the kept share in percent, 100 if there is nothing to keep.
func (r Ratio) Share() float64 {
	if r.All == 0 {
		return 100
	}
	return 100 * r.Kept / r.All
}

func (r *Ratio) add(o Ratio) {
	r.Kept += o.Kept
	r.All += o.All
}

// Sums are sums over requests. Costs are in input tokens that no cache holds.
type Sums struct {
	Requests  int                `json:"requests"`
	Tokens    int64              `json:"tokens"` // of the views
	Over      int                `json:"over"`   // requests larger than the window
	Calls     Ratio              `json:"calls"`  // calls that have all that they use
	Far       Ratio              `json:"far"`    // the same of calls that use what is 8,000 tokens back
	FarEdits  Ratio              `json:"far_edits"`
	CallsBy   map[string]Ratio   `json:"calls_by,omitempty"` // by kind of string: path, id, quoted, number
	FarBy     map[string]Ratio   `json:"far_by,omitempty"`
	Content   [contents]Ratio    `json:"content"`             // what is measured at requests
	ReadBacks int                `json:"read_backs"`          // distinct pairs of a missing source and a compaction
	Summaries int                `json:"summaries,omitempty"` // calls of the model that the policy names
	Cost      map[string]float64 `json:"cost"`                // by price card, those of that model included
	BackCost  map[string]float64 `json:"back_cost"`           // of the read-backs, by price card
}

// Fate is what became of a planted fact.
type Fate struct {
	Kind     string `json:"kind"`
	OfResult bool   `json:"of_result"` // only a result held it
	Views    []bool `json:"views"`     // whether the view held it after compaction 1, 2, … that followed it
	Recall   []bool `json:"recall"`    // whether the view held it or a ref that brings it back with one call
}

// Card is a provider's prices, in those of an input token that no cache holds.
type Card struct {
	Name       string  `json:"name"`
	Read       float64 `json:"read"`  // of a token that the cache holds
	Write      float64 `json:"write"` // of a token that it does not hold
	TTLSeconds int     `json:"ttl_seconds"`
}

// Cards returns the prices by which requests are charged.
func Cards() []Card {
	return []Card{
		{"anthropic", 0.1, 1.25, 300},
		{"openai-0.1", 0.1, 1, 600},
		{"openai-0.5", 0.5, 1, 600},
	}
}
