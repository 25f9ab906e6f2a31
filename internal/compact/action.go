package compact

import (
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// Do is what is done to a result. The values are a ladder: from one checkpoint to the next a result only moves down.
type Do uint8

// The ladder, from the whole result to the least that can stand in its place.
const (
	Keep        Do = iota
	Cap            // head and tail of an oversized result
	Bookend        // head and tail, the shorter the older
	Stub           // a newer result of the same call has taken its place
	Placeholder    // a line with the tool's name and the result's beginning
	Clear          // a line
)

var doNames = [...]string{"keep", "cap", "bookend", "stub", "placeholder", "clear"}

func (d Do) String() string {
	if int(d) < len(doNames) {
		return doNames[d]
	}
	return fmt.Sprintf("Do(%d)", uint8(d))
}

// MarshalText writes the action's name.
func (d Do) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads an action's name.
func (d *Do) UnmarshalText(text []byte) error {
	i := slices.Index(doNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("compact: no action is named %q", text)
	}
	*d = Do(i)
	return nil
}

// Action is an entry of the loss manifest: what was done to one part, and what that saved.
type Action struct {
	Seq          int64  `json:"seq"`
	Part         int    `json:"part"`
	Do           Do     `json:"do"`
	Stage        string `json:"stage"`
	Reason       string `json:"reason"`
	TokensBefore int    `json:"tokens_before"`
	TokensAfter  int    `json:"tokens_after"`
	Ref          string `json:"ref"` // brings the whole result back
}

// Result is a tool result on its way out of the view: what must be persisted before the rendition may be committed.
type Result struct {
	Ref       session.ResultRef
	Seq       int64
	Part      int
	Tool      string
	CallID    string
	Category  string
	MediaType string
	Stored    []byte // its decoded text, or its JSON if it has none
	SHA256    [32]byte
	Lines     int
	Tokens    int
}

// StageReport says what a stage did in one run.
type StageReport struct {
	Stage       string `json:"stage"`
	Entered     bool   `json:"entered"` // false: it is switched off, or the view was within its target before it
	Actions     int    `json:"actions"`
	TokensSaved int64  `json:"tokens_saved"`
}

// Plan is what one compaction does. Its exported fields are for its reader; Render needs the plan that Make returned.
type Plan struct {
	Through int64         `json:"through"` // the last seq that the checkpoint will cover
	Before  int64         `json:"tokens_before"`
	After   int64         `json:"tokens_after"` // of the view, the untouched rest of the tail included, overhead aside
	Actions []Action      `json:"actions"`      // the sum of their savings is Before - After
	Results []Result      `json:"-"`            // what leaves the view for the first time
	Stages  []StageReport `json:"stages"`

	history *history
	covered int    // how many messages the checkpoint will cover
	edits   []edit // by position
	text    []byte // the replacements, one after another
}

// edit replaces the value of a result by a range of Plan.text.
type edit struct {
	result     int
	start, end int
}

// Changed reports whether the plan changes a byte of the view.
func (p *Plan) Changed() bool { return len(p.Actions) > 0 }
