package compact

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/varve-dev/varve/internal/compact/memory"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/wire"
)

// stage decides one thing about parts. It reads a run's state, proposes actions, and does not know the other stages.
type stage struct {
	name    string
	enabled func(*policy.Policy) bool
	over    func(*runState) float64 // entered while the view has more tokens than this; nil: than the target
	plan    func(*runState)
}

// stages are all stages in the order in which they run.
var stages = []stage{
	{"cap", func(p *policy.Policy) bool { return p.Cap.Enabled }, capOver, capOversized},
	{"dedupe", func(p *policy.Policy) bool { return p.Dedupe.Enabled }, nil, stubSuperseded},
	{"arguments", func(p *policy.Policy) bool { return p.Arguments.Enabled }, nil, omitArguments},
	{"trim", func(p *policy.Policy) bool { return p.Trim.Enabled }, trimOver, trimByDistance},
	{"budget", func(p *policy.Policy) bool { return p.Budget.Enabled || p.MediaBytes > 0 }, budgetOver, keepBudgets},
	{"whitespace", func(p *policy.Policy) bool { return p.Whitespace.Enabled }, nil, collapseWhitespace},
	{"hard", func(p *policy.Policy) bool { return p.Protect.Yields }, hardOver, yieldAtHard},
	{"summarise", func(p *policy.Policy) bool { return p.Summarise.Enabled }, summariseOver, summariseOldest},
	{"truncate", mayTruncate, truncateOver, dropOldest},
}

// Run plans a compaction, calls write for the summary if one is planned (nil: Extract), and renders the checkpoint. The
// plan refers to the input's bytes. If ctx ends first, the error is that of ctx.
func Run(ctx context.Context, in Input, write Write) (*Plan, *Checkpoint, error) {
	plan, err := newPlan(ctx, in, write)
	if err != nil {
		return nil, nil, err
	}
	return plan, render(plan), nil
}

// newPlan decides what to do with every part of the session.
func newPlan(ctx context.Context, in Input, write Write) (*Plan, error) {
	if in.WindowTokens < 1 {
		return nil, fmt.Errorf("compact: the window must have at least 1 token, not %d", in.WindowTokens)
	}
	words, err := wordsOf(&in.Policy.Wording)
	if err != nil {
		return nil, fmt.Errorf("compact: wording: %w", err)
	}
	h, err := readHistory(ctx, in, len(stages))
	if err != nil {
		return nil, err
	}
	s := newRunState(h)
	s.remember()
	s.words, s.write = words, write
	if in.Older != nil {
		s.older = func(first, last int64) ([]summary.Message, error) { return transcribed(ctx, in, first, last) }
	}
	if !in.OnlyAnswers {
		if err := s.dropCompacted(); err != nil {
			return nil, err
		}
	}
	compacted := s.eviction != nil
	p := &Plan{
		Actions: []Action{}, Stages: make([]StageReport, len(stages)), Entered: make([]int64, len(stages)), state: s,
	}
	for i, stage := range stages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.Stages[i].Stage = stage.name
		p.Entered[i] = h.entered[i]
		if in.OnlyAnswers && !stage.answers() || compacted && stage.answers() {
			continue
		}
		p.Entered[i] = s.runStage(i)
		p.Stages[i].Entered = p.Entered[i] > 0
		if err := s.failed[stage.name]; err != nil {
			p.Stages[i].Error = err.Error()
		}
	}
	p.settle(s)
	return p, nil
}

// answers reports whether a stage runs when only answers are to be taken in.
func (s *stage) answers() bool { return s.name == "summarise" || s.name == "truncate" }

func newRunState(h *history) *runState {
	window := float64(h.in.WindowTokens)
	s := &runState{
		history: h, policy: h.in.Policy, window: window,
		sum:        make([]int64, len(h.messages)),
		protection: protection{newestUserKept: -1, free: make([]bool, len(h.parts))},
		proposals: proposals{
			proposed: make([]proposal, len(h.parts)),
			bare:     map[int]bool{},
			steps:    make([][]step, len(h.parts)),
			relief:   make([]int64, len(h.messages)),
		},
		contents:  make([]*wire.Content, len(h.parts)),
		omissions: map[int]omission{},
		sums:      map[int][32]byte{},
		drafts:    map[int]knownDraft{},

		messagesRead: map[decodedMessage]summary.Message{},
		reader:       &summary.Reader{},

		shown:      make([]memory.Names, len(h.messages)),
		quotations: map[int][]memory.Quote{},
		written:    map[writing]memory.Quote{},
		failed:     map[string]error{},
	}
	s.setPinned()
	s.setTarget()
	s.seen = s.seenWith()
	if s.policy.Protect.NewestUser {
		s.newestUserKept = h.newestUser()
	}
	total := int64(0)
	for m := range h.messages {
		total += int64(h.messages[m].tokens)
		s.sum[m] = total
	}
	for i := range h.parts {
		p := &h.parts[i]
		s.free[i] = p.paired && p.valueBytes() > 0 && !slices.Contains(s.policy.Protect.Tools, p.tool)
	}
	s.places = s.placesOfPins()
	s.hold()
	s.setStaying()
	s.release = s.releases()
	s.applyRatios()
	return s
}

// runStage runs a stage if the view was over its limit at any message of the history, not only at the last: a stage
// that was entered once stays entered. It returns the seq of the message that needed it first, 0 for none.
func (s *runState) runStage(number int) (entered int64) {
	stage := &stages[number]
	if !stage.enabled(&s.policy) {
		return 0
	}
	if s.since = s.needed(number); s.since == len(s.messages) {
		return 0
	}
	entered = s.entered[number]
	if entered == 0 {
		entered = s.messages[s.since].seq
	}
	s.stage = stage.name
	stage.plan(s)
	return entered
}

// firstOf returns the first of the messages that are of the same message of the log as message m.
func (h *history) firstOf(m int) int {
	for m > 0 && h.messages[m].continues && h.messages[m-1].seq == h.messages[m].seq {
		m--
	}
	return m
}

// needed returns the first message with which the view, compacted by the stages before, was over a stage's limit, or
// len(messages) if it never was.
func (s *runState) needed(number int) int {
	if at := s.entered[number]; at > 0 {
		return sort.Search(len(s.messages)-1, func(m int) bool { return s.messages[m].seq >= at })
	}
	limit := s.target
	if over := stages[number].over; over != nil {
		limit = over(s)
	}
	size := int64(s.in.OverheadTokens)
	for m := range s.messages {
		if size += int64(s.messages[m].tokens) - s.relief[m]; float64(size) > limit {
			return s.firstOf(m)
		}
	}
	return len(s.messages)
}
