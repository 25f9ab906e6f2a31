package compactor

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/zframe"
)

// finish decides whether what was made must replace what is served, and checks it. It returns a panic as an error.
func (p *Proposal) finish(ctx context.Context, w *windows) (err error) {
	defer failOpen(&err)
	if err := p.compare(ctx, w); err != nil {
		return err
	}
	p.Changed = p.Changed && p.Input.Policy.Enabled || p.forgets()
	if p.Changed {
		p.rendition, err = check(ctx, &p.Input, p.evicts, p.Made)
	}
	if p.Changed && err == nil {
		err = checkPins(p.rendition, p.Plan)
	}
	return err
}

// forgets reports whether the served view must go, whatever takes its place: see postgres.Store.Rebuild.
func (p *Proposal) forgets() bool { return p.Snapshot.Base != nil && p.Snapshot.Base.Forgotten }

// compare sets Changed, whether what was made must replace what is served, and Kept, how much of the view's beginning
// keeps its bytes. From the log that shows only when the two are compared. A checkpoint of another policy is replaced
// even by the same bytes: the next compaction can start from the new one.
func (p *Proposal) compare(ctx context.Context, w *windows) error {
	p.Changed, p.Kept = p.Plan.Changed(), p.Plan.Kept
	base := p.Snapshot.Base
	if p.From == FromCheckpoint || base == nil {
		p.Changed = p.Changed && !p.dividedForLess()
		return nil
	}
	served, err := p.served(ctx, w, base)
	if err != nil {
		return err
	}
	p.Kept = keptOf(served.common, p.Made)
	same := served.same() && sameEngine(base) && bytes.Equal(base.Policy, p.Input.Policy.Document())
	p.Changed = !same || p.Plan.Noted
	return nil
}

// dividedForLess reports whether the plan saves less than it costs that messages of the tail become several in the
// view.
func (p *Proposal) dividedForLess() bool { return p.Saved() < 0 && p.Plan.Before >= p.Plan.After }

// comparison compares a rendition with what is served, piece by piece.
type comparison struct {
	made   []byte
	common int  // bytes with which both begin
	other  bool // they differ behind these, or nobody knows what is served there
}

// add takes the next piece of what is served, and reports whether both are the same so far.
func (c *comparison) add(served []byte) bool {
	if c.other {
		return false
	}
	rest := c.made[c.common:]
	n := 0
	for n < min(len(rest), len(served)) && rest[n] == served[n] {
		n++
	}
	c.common += n
	c.other = n < len(served)
	return !c.other
}

func (c *comparison) same() bool { return !c.other && c.common == len(c.made) }

// served compares what was made with what the view shows of the same messages, as far as that is known: not after a
// checkpoint that cannot be read, and not from the first message on that was capped at ingestion. What came after the
// checkpoint is divided by steps, too: to a model, that is the same.
func (p *Proposal) served(ctx context.Context, w *windows, base *postgres.Checkpoint) (c comparison, err error) {
	c.made = p.Made.Body
	newest, err := loaded(base)
	if err != nil || p.Made.Through < newest.Through {
		return comparison{other: true}, nil
	}
	if !c.add(newest.Body) {
		return c, nil
	}
	err = w.each(ctx, newest.Through, func(m *postgres.LogMessage) bool {
		if m.Seq > p.Made.Through {
			return false
		}
		if m.ViewTokens > 0 {
			c.other = true
			return false
		}
		for _, e := range compact.Divide(m.Format, compact.Entry{Seq: m.Seq, Body: m.Body}) {
			if !c.add([]byte{','}) || !c.add(e.Body) {
				return false
			}
		}
		return true
	})
	return c, err
}

// keptOf returns the tokens of the units in the bytes with which a rendition and the served view both begin.
func keptOf(common int, made *compact.Checkpoint) (tokens int64) {
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

// Placed returns the view that the proposal makes, as the store would have it, without the messages after it.
func (p *Proposal) Placed() (*postgres.View, error) {
	units, err := json.Marshal(p.Made.Units)
	return &postgres.View{
		Version: postgres.Version{LastSeq: p.Made.Through}, Format: p.Input.Format, Through: p.Made.Through,
		Tokens: p.Made.Tokens, Body: zframe.Compress(p.Made.Body), Size: len(p.Made.Body), Units: units,
	}, err
}
