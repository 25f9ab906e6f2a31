package compact

// Plan is what one compaction does.
type Plan struct {
	Through int64         `json:"through"`       // the last seq that the checkpoint will cover
	Before  int64         `json:"tokens_before"` // of the view, results that were capped at ingest counted whole
	After   int64         `json:"tokens_after"`  // of the view with the untouched rest of the tail, overhead aside
	Kept    int64         `json:"kept_tokens"`   // of the beginning of the view that keeps its bytes
	Actions []Action      `json:"actions"`       // the sum of their savings is Before - After
	Results []Result      `json:"-"`             // the parts that leave the view for the first time
	Stages  []StageReport `json:"stages"`
	Entered []int64       `json:"-"` // by stage: the message that first needed it, 0 for none

	state    *runState
	history  *history
	covered  int       // number of messages that the checkpoint will cover
	eviction *eviction // the messages that one message replaces, nil for none
	edits    []edit    // by position
	text     []byte    // the replacements, one after another
}

// edit replaces the value of a part by a range of Plan.text.
type edit struct {
	part  int
	start int
	end   int
	lead  int // bytes at its beginning that are not the text: some providers accept only objects
	trail int // the same at its end
}

// Changed reports whether the plan changes a byte of the view.
func (p *Plan) Changed() bool { return len(p.Actions) > 0 }

// enter adds an action to the manifest and to its stage's report.
func (p *Plan) enter(a Action) {
	p.Actions = append(p.Actions, a)
	saved := int64(a.TokensBefore - a.TokensAfter)
	p.After -= saved
	for k := range p.Stages {
		if report := &p.Stages[k]; report.Stage == a.Stage {
			report.Actions++
			report.TokensSaved += saved
		}
	}
}

// keptTokens returns the tokens before the first message that changes.
func (p *Plan) keptTokens() (sum int64) {
	end := p.covered
	if len(p.edits) > 0 {
		end = p.history.parts[p.edits[0].part].message
	}
	if p.eviction != nil {
		end = min(end, p.eviction.begin)
	}
	if len(p.Actions) == 0 {
		end = len(p.history.messages)
	}
	for m := range end {
		sum += int64(p.history.messages[m].now)
	}
	return sum
}
