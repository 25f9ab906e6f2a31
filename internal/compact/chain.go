package compact

import (
	"encoding/json"

	"github.com/varve-dev/varve/internal/compact/manifest"
)

// place is a part of a message of the log.
type place struct {
	seq  int64
	part int
}

// Forget drops what a plan refers to but its results, and keeps what it says of them and of all else: its manifest and
// its sums. It must be called after the checkpoint was made, and the plan may then only be continued.
func (p *Plan) Forget() {
	for i := range p.Results {
		p.Results[i].Stored = nil
	}
	p.state, p.history = nil, nil
	p.eviction = nil
	p.edits, p.text = nil, nil
}

// Continue adds what an earlier plan has done, whose checkpoint is the base of this one: together they are the plan of
// one compaction that took in the messages of both. The manifests become one, by seq and part; what was done to a part
// twice is one action. A message that the earlier plan did not cover is counted once.
func (p *Plan) Continue(earlier *Plan) error {
	p.Before += earlier.Before - earlier.After
	if len(earlier.Actions) > 0 {
		p.Kept = min(p.Kept, earlier.Kept)
	}
	for k := range p.Stages {
		was, report := &earlier.Stages[k], &p.Stages[k]
		report.Entered = report.Entered || was.Entered
		report.Actions += was.Actions
		report.TokensSaved += was.TokensSaved
		if report.Error == "" {
			report.Error = was.Error
		}
	}
	p.Noted = p.Noted || earlier.Noted
	p.earlier = make(map[place]bool, len(earlier.Actions))
	for i := range earlier.Actions {
		a := &earlier.Actions[i]
		p.earlier[place{a.Seq, a.Part}] = true
	}
	p.Results = append(earlier.Results, p.Results...)
	merged, err := merge(p.Actions, earlier.Actions)
	p.Actions = merged
	return err
}

// merge merges two lists of actions as their readers do with the manifests of checkpoints.
func merge(newer, older []Action) (merged []Action, err error) {
	if len(older) == 0 {
		return newer, nil
	}
	stored := make([]json.RawMessage, 2)
	for i, list := range [][]Action{newer, older} {
		if stored[i], err = json.Marshal(list); err != nil {
			return nil, err
		}
	}
	lists, err := manifest.Parse(stored)
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(manifest.Merge(lists))
	if err != nil {
		return nil, err
	}
	return merged, json.Unmarshal(document, &merged)
}
