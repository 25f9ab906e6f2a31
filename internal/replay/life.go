package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// life is a session that lives again under a contender: messages are appended one by one, and it is compacted as a
// worker would do it.
type life struct {
	*index
	session *Session
	by      Contender
	window  int
	view    view
	after   func()        // is called after each compaction that changed the view
	write   compact.Write // writes summaries; nil: Extract

	rule    due.Session
	context int64 // tokens of the view as the worker counts them
	base    *compact.Checkpoint
	tail    []compact.Entry
	cut     map[int32][]byte // messages that were cut when they were appended, as the view has them
	items   []item           // of a yardstick that trims
	calls   compactor.OpenCalls
	waits   time.Duration // a job waits until nothing was appended for this long; 0: there is none
	asked   due.Threshold // what that job was asked for by
	last    time.Time     // of the newest message
	text    []byte
}

// view is what the model is sent: what compactions made, then messages of the log.
type view struct {
	tokens      int64          // estimated
	tail        int            // the first message that is after what compactions made
	held        bits           // the strings before that
	capped      map[int32]bits // the strings of the messages after it that were cut when they were appended
	kept        int64          // tokens of the beginning that has been the same since the last request
	before      int64          // tokens of the views before compactions, summed up
	outlived    int64          // of those, of the beginnings that kept their bytes
	compactions int
}

func newLife(s *Session, by Contender, window int) *life {
	return &life{
		index: s.index, session: s, by: by, window: window, after: func() {},
		view: view{capped: map[int32]bits{}}, cut: map[int32][]byte{},
		rule: due.Session{Window: int64(window), Calibration: 1, Rule: by.Policy.DueRule(), Armed: due.Trigger},
	}
}

// holds reports whether the view has a string.
func (l *life) holds(n int32) bool {
	if l.view.held.has(n) {
		return true
	}
	places := l.places[n]
	for i := len(places) - 1; i >= 0; i-- {
		m := places[i]
		if int(m) >= len(l.tail)+l.view.tail {
			continue // it is not appended yet
		}
		if int(m) < l.view.tail {
			return false
		}
		if capped, ok := l.view.capped[m]; !ok || capped.has(n) {
			return true
		}
	}
	return false
}

// append appends message i and compacts the session if that makes it due.
func (l *life) append(ctx context.Context, i int) error {
	at := l.messages[i].at
	if err := l.pass(ctx, at); err != nil {
		return err
	}
	l.last = at
	m := &l.session.Messages[i]
	e := compact.Entry{Seq: m.Seq, Tokens: m.Tokens, Body: m.Body}
	if err := l.cap(&e, i); err != nil {
		return err
	}
	l.tail = append(l.tail, e)
	l.rule.Seq = m.Seq
	l.rule.Bytes += int64(len(e.Body))
	added := e.Tokens
	if e.ViewTokens > 0 {
		added = e.ViewTokens
	}
	l.context += int64(added)
	l.view.tokens += int64(added)
	reached, isDue := l.rule.Due(l.context)
	if !isDue {
		return nil
	}
	return l.compact(ctx, reached, 0)
}

// pass lets the time until the next message pass.
func (l *life) pass(ctx context.Context, until time.Time) error {
	if l.waits == 0 || until.Sub(l.last) < l.waits {
		return nil
	}
	return l.compact(ctx, l.asked, l.waits)
}

// cap cuts the results of a message if the policy does that at insertion.
func (l *life) cap(e *compact.Entry, i int) error {
	p := &l.by.Policy
	if !p.Cap.Enabled || !p.Cap.AtInsertion {
		return nil
	}
	capped, err := compact.CapAtIngest(p, l.session.Format, e.Seq, e.Body, l.calls.Tool)
	if capped == nil || err != nil {
		return err
	}
	e.ViewTokens = capped.Tokens
	l.cut[int32(i)] = capped.Body
	l.view.capped[int32(i)] = l.stringsIn(capped.Body)
	return nil
}

func (l *life) stringsIn(body []byte) bits {
	found := newBits(l.strings)
	l.text = normalise(l.text[:0], body)
	l.matcher.scan(l.text, found)
	return found
}

// compact makes the next checkpoint if the worker would make it now.
func (l *life) compact(ctx context.Context, reached due.Threshold, age time.Duration) error {
	if l.by.yardstick == clearKeep3 || l.by.yardstick == hindsight {
		l.trim()
		l.rule.Floor = l.rule.FloorAfter(l.context)
		return nil
	}
	p, wait, err := compactor.Rehearse(ctx, compactor.Rehearsal{
		Input: l.input(), Context: l.context, Reached: reached, Age: age, Write: l.write, CPU: l.session.CPU,
	})
	if err != nil {
		return fmt.Errorf("%s, window %d, %s: %w", l.by.Name, l.window, l.session.Name, err)
	}
	if l.waits = 0; wait > 0 {
		l.wait(reached, age+wait)
		return nil
	}
	l.rule.Armed, l.rule.IdleAsked = due.Trigger, false
	switch p.Decision.Verdict {
	case compactor.Now:
		if err := l.commit(p); err != nil {
			return err
		}
		l.floor(p)
	case compactor.Postponed:
		l.rule.Floor = l.rule.FloorAfterPostponed(l.context)
	default:
		l.floor(p)
	}
	return nil
}

func (l *life) input() compact.Input {
	return compact.Input{
		Format: l.session.Format, Policy: l.by.Policy, WindowTokens: l.window, Base: l.base, Tail: l.tail,
	}
}

// wait has a job wait that a threshold asked for, until nothing was appended for that long.
func (l *life) wait(reached due.Threshold, idle time.Duration) {
	l.asked, l.waits = reached, idle
	if reached == due.Idle {
		l.rule.IdleAsked = true
		return
	}
	l.rule.Armed = reached.Next()
}

// floor sets from where the session must grow after a compaction, and how long.
func (l *life) floor(p *compactor.Proposal) {
	l.rule.Floor = l.rule.FloorAfter(l.context)
	if n := p.FreedAfter(); n > 0 {
		l.rule.Floor.Seq = l.rule.Seq + int64(n)
	}
}

// commit makes what a compaction made the view.
func (l *life) commit(p *compactor.Proposal) error {
	v, made := &l.view, p.Made
	tokens, kept := p.Plan.After, p.Kept
	covered := 0
	for covered < len(l.tail) && l.tail[covered].Seq <= made.Through {
		covered++
	}
	if l.by.Policy.Tokens.Tokenizer.IsFormula() {
		var err error
		if tokens, err = l.estimate(made.Body, l.tail[covered:]); err != nil {
			return err
		}
		kept = int64(float64(kept) * float64(tokens) / float64(max(1, p.Plan.After)))
	}
	v.before += v.tokens
	v.outlived += kept
	v.kept = min(v.kept, kept)
	v.tokens = tokens
	v.compactions++
	for i := range covered {
		delete(v.capped, int32(v.tail+i))
		delete(l.cut, int32(v.tail+i))
	}
	v.tail += covered
	v.held = l.stringsIn(made.Body)
	l.base, l.context = made, p.Plan.After
	l.tail = l.tail[covered:]
	l.rule.Bytes = int64(len(made.Body))
	for i := range l.tail {
		l.rule.Bytes += int64(len(l.tail[i].Body))
	}
	l.after()
	return nil
}

// estimate returns the estimated tokens of a view whose policy counts in another way.
func (l *life) estimate(body []byte, tail []compact.Entry) (tokens int64, err error) {
	list := append(append([]byte{'['}, body...), ']')
	for span := range rawjson.Elements(list, 0) {
		found, err := wire.Inspect(l.session.Format, span.Of(list))
		if err != nil {
			return 0, err
		}
		tokens += int64(found.Tokens)
	}
	for i := range tail {
		tokens += int64(max(tail[i].ViewTokens, 0))
		if tail[i].ViewTokens == 0 {
			tokens += int64(tail[i].Tokens)
		}
	}
	return tokens, nil
}
