package main

import (
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// replay lets a session live: messages are appended one by one, and it is compacted as soon as that is due.
type replay struct {
	format  session.Format
	policy  policy.Policy
	window  int
	base    *compact.Checkpoint
	tail    []compact.Entry
	context int64 // tokens of the view
	floor   int64
	crossed bool // it has reached its trigger
	calls   compactor.OpenCalls
	done    []compaction
}

// compaction is one that changed its view: tokens before and after, and of the beginning that kept its bytes.
type compaction struct{ before, after, kept int64 }

func newReplay(f session.Format, p policy.Policy, window int) *replay {
	return &replay{format: f, policy: p, window: window}
}

func (r *replay) append(e compact.Entry) error {
	added, err := r.insert(&e)
	if err != nil {
		return err
	}
	r.tail = append(r.tail, e)
	r.context += int64(added)
	if _, isDue := r.rule().Due(r.context); !isDue {
		return nil
	}
	r.crossed = true
	return r.compact()
}

// insert caps the results of a message if the policy does that at insertion, and returns its tokens in the view.
func (r *replay) insert(e *compact.Entry) (tokens int, err error) {
	if !r.policy.Cap.Enabled || !r.policy.Cap.AtInsertion {
		return e.Tokens, nil
	}
	capped, err := compact.CapAtIngest(&r.policy, r.format, e.Seq, e.Body, r.calls.Tool)
	if capped == nil || err != nil {
		return e.Tokens, err
	}
	e.ViewTokens = capped.Tokens
	return capped.Tokens, nil
}

// rule returns what decides whether the session is due: it is compacted each time, so that its trigger is always armed.
func (r *replay) rule() due.Session {
	return due.Session{
		Window: int64(r.window), Calibration: 1, Rule: r.policy.DueRule(),
		Floor: r.floor, Armed: due.Trigger,
	}
}

func (r *replay) target() float64 { return r.policy.Target * float64(r.window) }

func (r *replay) input() compact.Input {
	return compact.Input{Format: r.format, Policy: r.policy, WindowTokens: r.window, Base: r.base, Tail: r.tail}
}

// compact makes the next checkpoint, if that changes anything.
func (r *replay) compact() error {
	plan, made, err := compact.Run(r.input(), nil)
	if err != nil {
		return err
	}
	if plan.Changed() {
		r.done = append(r.done, compaction{before: r.context, after: plan.After, kept: plan.Kept})
		r.base, r.context = made, plan.After
		for len(r.tail) > 0 && r.tail[0].Seq <= made.Through {
			r.tail = r.tail[1:]
		}
	}
	r.floor = r.rule().FloorAfter(r.context)
	return nil
}

func entries(c *compacttest.Conversation) []compact.Entry {
	list := make([]compact.Entry, len(c.Messages))
	for i, body := range c.Messages {
		list[i] = compact.Entry{Seq: int64(i + 1), Tokens: c.Tokens[i], Body: body}
	}
	return list
}
