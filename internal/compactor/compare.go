package compactor

import (
	"bytes"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/view"
)

// compare sets Changed, whether what was made must replace what is served, and Kept, how much of the view's beginning
// keeps its bytes. From the log that shows only when the two are compared. A checkpoint of another policy is replaced
// even by the same bytes: the next compaction can start from the new one.
func (p *Proposal) compare() {
	p.Changed, p.Kept = p.Plan.Changed(), p.Plan.Kept
	base := p.Snapshot.Base
	if p.From == FromCheckpoint || base == nil {
		p.Changed = p.Changed && !p.dividedForLess()
		return
	}
	served, known := p.served(base)
	p.Kept = keptOf(served, p.Made)
	same := known && sameEngine(base) && bytes.Equal(base.Policy, p.Input.Policy.Document())
	p.Changed = !same || !bytes.Equal(served, p.Made.Body)
}

// dividedForLess reports whether the plan saves less than it costs that messages of the tail become several in the
// view.
func (p *Proposal) dividedForLess() bool { return p.Saved() < 0 && p.Plan.Before >= p.Plan.After }

// served returns what the view shows of the messages that were made anew, as far as that is known: not after a
// checkpoint that cannot be read, and not from the first message on that was capped at ingestion. What came after the
// checkpoint is divided by steps, too: to a model, that is the same.
func (p *Proposal) served(base *postgres.Checkpoint) (body []byte, known bool) {
	newest, err := loaded(base)
	if err != nil || p.Made.Through < newest.Through {
		return nil, false
	}
	body = newest.Body
	for i := range p.Snapshot.Tail {
		m := &p.Snapshot.Tail[i]
		if m.Seq <= newest.Through || m.Seq > p.Made.Through {
			continue
		}
		if m.ViewTokens > 0 {
			return body, false
		}
		for _, e := range compact.Divide(m.Format, compact.Entry{Seq: m.Seq, Body: m.Body}) {
			body = append(append(body, ','), e.Body...)
		}
	}
	return body, true
}

// keptOf returns the tokens of the units with which a rendition and the served view both begin.
func keptOf(served []byte, made *compact.Checkpoint) (tokens int64) {
	common := 0
	for common < min(len(served), len(made.Body)) && served[common] == made.Body[common] {
		common++
	}
	units, _ := view.Units(made.Body, made.Units) // the engine puts them into the body one after another
	for _, u := range units {
		if u.Offset+len(u.Joined) > common {
			break
		}
		tokens += u.Tokens
	}
	return tokens
}

// View returns the tokens of the view before the compaction, the separate system prompt included.
func (p *Proposal) View() int64 { return p.Snapshot.ContextTokens }

// Saved returns by how many tokens the view shrinks; negative if a compaction from the log brings some back.
func (p *Proposal) Saved() int64 {
	return p.Snapshot.ContextTokens - p.Snapshot.SeparateTokens - p.Plan.After
}

// Tokens returns the tokens of what the plan was made of and of the view that it makes, the separate system prompt
// included. From the log, before is more than the view has.
func (p *Proposal) Tokens() (before, after int64) {
	return p.Plan.Before + p.Snapshot.SeparateTokens, p.Plan.After + p.Snapshot.SeparateTokens
}

// Parts returns all parts of the view that a policy could change, with the reason why each changes or stays.
func (p *Proposal) Parts() []compact.Action { return p.Plan.Parts() }
