// Package compact decides when and how a view shrinks. It is pure: no I/O, no clock, no log, so the same input gives
// the same bytes.
//
// Start at Run, which reads a checkpoint and the messages after it and returns a Plan and the checkpoint that it makes,
// and at stages, the list of what runs. The caller persists Plan.Results before it commits the checkpoint. A policy
// (policy.Policy) says how much is kept. Files: history.go, subject.go and units.go
// (messages, their parts, what calls are about, how they pair), scene.go and protect.go (what a stage sees), one file a
// stage, settle.go, omit.go and leave.go (from a proposal to what stands in the view), words.go (every text that stands in
// a part's place), plan.go, record.go and parts.go (what is said about it), render.go, state.go and stateread.go (what a
// checkpoint remembers), insertion.go (the cap while a message is appended). What stages decide and cut with is in the
// packages rule, text, resource and summary; conformance holds those to the systems that they come from.
//
// # Why an incremental compaction equals one from the log
//
// A stage decides from original figures only, which the state keeps, and proposes an action for every part of the
// session, as if nothing had been done to it yet; what is carried out is the lower of that and of what stands there, on
// the ladder of Do. That gives the same bytes on both ways because no proposal ever moves up as a session grows:
//
//   - a stage is entered if the view was over its limit at any message of the history, not only at the last one, so
//     what was entered once stays entered (scene.needed);
//   - a part's distance from the end, the number of units, messages and turns after it and the number of newer results
//     for its resource only grow; a stub names the result that made it superfluous, which never changes;
//   - a proposal says since which message it is right, so that of two on one rung the earlier stays, and what is
//     collapsed before it is cut is always cut from what that left;
//   - units are counted as they began, so that a late answer does not turn old ones into recent ones;
//   - every step of the ladder is cut from the one above it and is no longer than that one (policy.MinCutChars), so whether a
//     replacement is small enough to be used depends on the original alone.
//
// Summaries are the exception: one that was made of a summary is another one.
package compact

import (
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// EngineVersion is the version of the engine's decisions and wording; another version may make other bytes.
const EngineVersion = 2

// Input is what a compaction starts from.
type Input struct {
	Format         session.Format
	Policy         policy.Policy
	WindowTokens   int         // the model's context window
	OverheadTokens int         // tokens that are sent besides these messages
	Base           *Checkpoint // nil: start from the log
	Tail           []Entry     // the messages after Base.Through, by seq
}

// Entry is one message of the log.
type Entry struct {
	Seq        int64
	Tokens     int // estimated when it was appended
	Body       []byte
	ViewTokens int // of what stands in the view, if results were capped at insertion; 0: the same

	// Part is the number of its first part. A message of another format may stand in the view as several: they have one
	// Seq, and all but the first have a Part that goes on behind those before it.
	Part int
}

// Checkpoint is the compacted rendition of a session's messages up to Through.
type Checkpoint struct {
	Through   int64  // the last seq it covers
	Tokens    int64  // estimated tokens of Body
	Body      []byte // the messages, joined by commas
	State     []byte // what the next compaction has to know of them, see state.go
	Units     []Unit
	OpenCalls []string // ids of the calls that no result in Body answers
}

// Unit is a run of messages that belong together: an assistant message, its calls, their results and what came between;
// or one message that stands for others.
type Unit struct {
	Offset   int   `json:"offset"` // of its first message in the checkpoint's body
	FirstSeq int64 `json:"first_seq"`
	Messages int   `json:"messages"` // of the log
	Tokens   int64 `json:"tokens"`
	Pinned   bool  `json:"pinned"` // a leading system message, a summary or a notice: never left out
}

// stages are all stages in the order in which they run. Each is entered only while the view is over its limit, the
// target unless it has one of its own, and proposes; see scene.
var stages = []stage{
	{"cap", func(p *policy.Policy) bool { return p.Cap.Enabled }, capOver, capOversized},
	{"dedupe", func(p *policy.Policy) bool { return p.Dedupe.Enabled }, nil, stubSuperseded},
	{"stale", func(p *policy.Policy) bool { return p.Stale.Enabled }, nil, stubStale},
	{"arguments", func(p *policy.Policy) bool { return p.Arguments.Enabled }, nil, omitArguments},
	{"trim", func(p *policy.Policy) bool { return p.Trim.Enabled }, trimOver, trimByDistance},
	{"budget", func(p *policy.Policy) bool { return p.Budget.Enabled }, nil, keepBudget},
	{"whitespace", func(p *policy.Policy) bool { return p.Whitespace.Enabled }, nil, collapseWhitespace},
	{"summarise", func(p *policy.Policy) bool { return p.Summarise.Enabled }, nil, summariseOldest},
	{"truncate", func(p *policy.Policy) bool { return p.Truncate.Enabled }, truncateOver, dropOldest},
}

// Run makes a plan, has write write the summary if one is planned (nil: Extract), and renders.
func Run(in Input, write Write) (*Plan, *Checkpoint, error) {
	plan, err := newPlan(in, write)
	if err != nil {
		return nil, nil, err
	}
	made, err := Render(in, plan)
	return plan, made, err
}

// decide decides what to do with every part of the session. The plan holds on to the input's bytes.
func newPlan(in Input, write Write) (*Plan, error) {
	if in.WindowTokens < 1 {
		return nil, fmt.Errorf("compact: window of %d tokens", in.WindowTokens)
	}
	words, err := wordsOf(&in.Policy.Wording)
	if err != nil {
		return nil, fmt.Errorf("compact: wording: %w", err)
	}
	h, err := readHistory(in)
	if err != nil {
		return nil, err
	}
	s := newRunState(in, h)
	s.words, s.write, s.failed = words, write, map[string]error{}
	if write == nil {
		s.write = extract
	}
	p := &Plan{Actions: []Action{}, Stages: make([]StageReport, len(stages)), Entered: make([]int64, len(stages)), scene: s}
	for i, stage := range stages {
		p.Entered[i] = s.runStage(i)
		p.Stages[i] = StageReport{Stage: stage.name, Entered: p.Entered[i] > 0}
		if err := s.failed[stage.name]; err != nil {
			p.Stages[i].Error = err.Error()
		}
	}
	settle(s, p)
	return p, nil
}

var errOrder = errors.New("compact: the messages are not in the order of their seqs")
