package view

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Fit makes views fit the window: Parts returns the refs of the results and calls of a message of the log, by its seq.
// A nil Fit makes views as they are.
type Fit struct {
	Parts func(seq int64) ([]readback.Part, error)
}

// limit returns how many tokens the view of a session may have, overhead aside.
func (r *Request) limit(v *postgres.View) int64 {
	limit := int64(math.MaxInt64)
	if r.MaxTokens > 0 {
		limit = r.MaxTokens
	}
	if r.Fit != nil {
		limit = min(limit, v.Room)
	}
	return limit
}

// makeFitting does what Make does for a reader whose view must fit the window. What the reader gets is counted, in the
// format that it gets. If it is too large, the oldest units are left out, and then the largest parts of what remains
// are cut: see choose and shorten. Where that is not enough, because the reader's format needs more tokens than the
// session's, the next try aims lower.
//
// Errors: *BrokenError, *session.WindowExceededError, *session.CannotFitError, those of Fit.Parts.
func (r *Request) makeFitting(ctx context.Context, o *opened) (*postgres.View, Notes, error) {
	f, err := newFitter(ctx, r, o)
	if err != nil {
		return nil, Notes{}, err
	}
	limit := r.limit(o.stored)
	if o.size <= limit {
		made, err := f.try(ctx, math.MaxInt64)
		if err != nil || made.view.Tokens <= limit {
			return made.view, made.notes, err
		}
	}
	for aim := limit; ; {
		made, err := f.try(ctx, f.estimated(aim))
		if err != nil {
			return nil, Notes{}, err
		}
		over := made.view.Tokens - limit
		switch {
		case over <= 0:
			return made.view, made.notes, nil
		case made.smallest || aim == 0:
			return nil, Notes{}, f.cannotFit(limit, made.view.Tokens)
		}
		aim = max(aim-max(over, limit/20, 1), 0)
	}
}

// fitter makes views of a stored one that are smaller and smaller. It counts by the estimate.
type fitter struct {
	*Request
	*opened
	units    []unit    // the separate system prompt, those of the checkpoint, those of the tail
	messages [][]entry // of the units
	user     int       // the unit of the user's newest message, or nobody
	total    int64
	scale    float64 // the tokens of the session for each estimated one, at least 1
	known    map[int64][]readback.Part
	exact    *exact // nil for the estimate alone
}

// entry is a message of a view.
type entry struct {
	wire.Stored
	unit  int
	first int64 // the messages of the log that it renders
	last  int64
	facts wire.Facts
	made  []byte // of this try
	now   int64  // tokens of this try
}

func newFitter(ctx context.Context, r *Request, o *opened) (*fitter, error) {
	f := &fitter{Request: r, opened: o, units: o.allUnits(), user: nobody, known: map[int64][]readback.Part{}}
	if r.mayHide(o.stored) {
		f.exact = &exact{ctx: ctx, calibration: max(o.stored.Guess, 1)}
	}
	if len(o.head) > 0 {
		head := unit{tail: o.head, last: o.head[len(o.head)-1].Seq}
		head.FirstSeq, head.Pinned = o.head[0].Seq, true
		f.units = slices.Insert(f.units, 0, head)
	}
	f.messages = make([][]entry, len(f.units))
	for i := range slices.Backward(f.units) { // the newest, which stay, are counted first
		u := &f.units[i]
		err := f.inspect(i, u)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, &BrokenError{err}
		}
		f.total += u.Tokens
		if f.user == nobody && !u.Pinned && !u.tied && u.isFromUser(o.stored.Format) {
			f.user = i
		}
	}
	f.scale = max(1, float64(o.size)/float64(max(f.total, 1)))
	return f, nil
}

// inspect reads the messages of a unit. Those of a checkpoint have their own seqs if the unit has as many messages as
// the log has there.
func (f *fitter) inspect(i int, u *unit) error {
	list, err := u.messages(f.stored.Format)
	if err != nil {
		return err
	}
	u.Tokens = 0
	for n, m := range list {
		e := entry{Stored: m, unit: i, first: u.FirstSeq, last: u.last}
		switch {
		case u.Joined == nil:
			e.first, e.last = m.Seq, m.Seq
		case u.last-u.FirstSeq+1 == int64(len(list)):
			e.first, e.last = u.FirstSeq+int64(n), u.FirstSeq+int64(n)
		}
		if e.facts, err = f.exact.inspect(m.Format, m.Body); err != nil {
			e.facts = wire.Facts{} // its rendition is refused, if it is wrong
		}
		u.Tokens += int64(e.facts.Tokens)
		f.messages[i] = append(f.messages[i], e)
	}
	return nil
}

// estimated returns how many estimated tokens make a number of the session's.
func (f *fitter) estimated(tokens int64) int64 { return int64(float64(tokens) / f.scale) }

// try is a view that may fit.
type try struct {
	view     *postgres.View
	notes    Notes
	smallest bool // nothing more can be left out or cut
}

// try makes a view of about aim tokens.
func (f *fitter) try(ctx context.Context, aim int64) (t try, err error) {
	c, border := f.choose(aim)
	t.notes.Omitted = omittedBy(c, f.units)
	var kept []*entry
	for i := range f.units {
		for n := range f.messages[i] {
			if e := &f.messages[i][n]; c.keeps(i, &f.units[i]) {
				e.made, e.now = e.Body, int64(e.facts.Tokens)
				kept = append(kept, e)
			}
		}
	}
	t.notes.Cut, t.smallest, err = f.shorten(kept, border, c.tokens-aim)
	if err != nil {
		return t, err
	}
	stored := make([]wire.Stored, len(kept))
	for i, e := range kept {
		stored[i] = wire.Stored{Format: e.Format, Body: e.made, Seq: e.Seq}
	}
	rendition, err := f.render(ctx, f.opened, stored, t.notes.Bounded())
	if err != nil {
		return t, err
	}
	t.notes.Repairs, t.notes.ToolNames = rendition.Repairs, rendition.ToolNames
	t.view = viewOf(f.stored, f.Target(f.stored.Format), rendition)
	tokens, err := f.count(rendition)
	t.view.Tokens = int64(math.Ceil(float64(tokens) * f.scale))
	return t, err
}

func (f *fitter) count(made *wire.Rendition) (tokens int, err error) {
	target := f.Target(f.stored.Format)
	for _, body := range made.Bodies {
		facts, err := f.exact.inspect(target, body)
		if err != nil {
			return 0, err
		}
		tokens += facts.Tokens
	}
	return tokens, nil
}

// choose returns which units a view of about aim tokens has: as many of the newest as fit, and always the user's newest
// message. The first unit that is too large is kept, too, as the border, if its results can be cut to what is left, and
// so are the units just before it as long as they take little of that. If not even the newest unit can be cut so,
// border is nobody, and everything that is kept must be cut.
func (f *fitter) choose(aim int64) (c cut, border int) {
	all := []cut{{anchor: nobody, tokens: f.total}}
	for c := range cuts(f.units, f.stored.Format, f.total, f.user) {
		all = append(all, c)
	}
	if len(all) > 1 {
		all = all[1:]
	}
	fits := slices.IndexFunc(all, func(c cut) bool { return c.tokens <= aim })
	if fits == 0 {
		return all[0], nobody
	}
	n := len(all) - 1
	if fits > 0 {
		n = fits - 1
	}
	border = all[n].first
	left := aim - (all[n].tokens - f.units[border].Tokens)
	cuttable := f.cuttable(border)
	if all[n].tokens-aim > cuttable {
		return all[max(n, fits)], nobody
	}
	at := n
	for n > 0 && all[n-1].tokens <= all[at].tokens+left/4 && all[n-1].tokens-aim <= cuttable {
		n--
	}
	return all[n], border
}

// cuttable returns how many tokens can be cut off the results of a unit of which enough is kept to be read.
func (f *fitter) cuttable(i int) (tokens int64) {
	if f.units[i].Pinned {
		return 0
	}
	for n := range f.messages[i] {
		e := &f.messages[i][n]
		for p := range e.facts.Parts {
			if piece := pieceOf(e, p); piece != nil && e.facts.Parts[p].Kind == wire.Result {
				tokens += int64(max(piece.tokens-readable, 0))
			}
		}
	}
	return tokens
}

// cannotFit returns the error of a view whose smallest try has more tokens than the limit.
func (f *fitter) cannotFit(limit, smallest int64) error {
	if limit < f.stored.Room {
		return &session.CannotFitError{MaxTokens: limit, Minimum: smallest}
	}
	var largest []*entry
	for i := range f.messages {
		for n := range f.messages[i] {
			if e := &f.messages[i][n]; e.made != nil {
				largest = append(largest, e)
			}
		}
	}
	slices.SortStableFunc(largest, func(a, b *entry) int { return cmp.Compare(b.now, a.now) })
	err := &session.WindowExceededError{Room: limit, Minimum: smallest}
	for _, e := range largest[:min(len(largest), maxNamed)] {
		err.Largest = append(err.Largest, e.first)
	}
	return err
}

// maxNamed is how many messages an error names.
const maxNamed = 3
