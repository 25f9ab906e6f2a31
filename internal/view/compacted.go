package view

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// leaveCompacted takes what the reader's provider has compacted itself out of a view. The message with that compaction
// stays whatever the view is bounded to.
//
// Errors: *BrokenError, ErrShortEnd.
func (o *opened) leaveCompacted(r *Request) error {
	target := r.Target(o.stored.Format)
	if !o.mayBeCompacted(target) {
		return nil
	}
	list, err := o.messages()
	if err != nil {
		return &BrokenError{err}
	}
	c, ok := wire.CompactionIn(target, list, r.Options(o.stored))
	switch {
	case !ok:
		return nil
	case o.stored.End != nil && o.stored.End.Messages > 0:
		return ErrShortEnd
	case c.From < c.To:
		o.compacted = &c.Left
	}
	next, err := o.leaveUnits(&c)
	if err != nil {
		return &BrokenError{err}
	}
	var tail []wire.Stored
	var tokens []int64
	for i := range o.tail {
		if at := next + i; c.From <= at && at < c.To {
			o.size -= o.tokens[i]
			continue
		} else if at == c.At {
			o.summary = o.tail[i].Seq
		}
		tail, tokens = append(tail, o.tail[i]), append(tokens, o.tokens[i])
	}
	o.tail, o.tokens = tail, tokens
	return nil
}

// leaveUnits takes the units of the checkpoint out that have nothing but compacted messages, and returns how many
// messages head and units have.
func (o *opened) leaveUnits(c *wire.Compaction) (next int, err error) {
	next = len(o.head)
	kept := o.units[:0:0]
	for i := range o.units {
		u := o.units[i]
		messages, err := u.messages(o.stored.Format)
		if err != nil {
			return 0, session.DamagedCheckpoint(o.stored.Checkpoint, err)
		}
		first := next
		if next += len(messages); c.From <= first && next <= c.To {
			o.size -= u.Tokens
			continue
		}
		u.Pinned = u.Pinned || first <= c.At && c.At < next
		kept = append(kept, u)
	}
	o.units = kept
	return next, nil
}

// mayBeCompacted reports whether a message of a view may have a compaction.
func (o *opened) mayBeCompacted(target session.Format) bool {
	may := func(m wire.Stored) bool { return wire.MayCompact(target, m.Body) }
	return slices.ContainsFunc(o.tail, may) ||
		slices.ContainsFunc(o.units, func(u unit) bool { return wire.MayCompact(target, u.Joined) })
}
