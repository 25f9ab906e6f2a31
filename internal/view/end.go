package view

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// ErrShortEnd reports that a bounded view may have more units than the end of the log shows: see Request.FillEnd.
var ErrShortEnd = errors.New("the end of the log that was read is too short")

// BoundsEnd reports whether a view that was left out is bounded so that its reader may need no more than the end of the
// log.
func (r *Request) BoundsEnd(v *postgres.View) bool {
	return r.MaxTokens > 0 && r.Fit == nil && v.Tokens > r.MaxTokens
}

// maxBytesPerToken is how many bytes of a view a token has, pictures aside.
const maxBytesPerToken = 8

// LargestWhole returns the bytes of a view that is read whole for a reader who wants largest at most and may bound it.
func (r *Request) LargestWhole(largest int64) int64 {
	if r.MaxTokens > 0 && r.Fit == nil {
		return min(largest, maxBytesPerToken*r.MaxTokens+leastWhole)
	}
	return largest
}

// leastWhole is the size of a view that is read whole whatever its bound is.
const leastWhole = 128 << 10

// FillEnd does what Fill does for a newest view that BoundsEnd, but reads only the end of the log, of about a number of
// tokens. If Make returns ErrShortEnd then, more of the log is needed. A view that stands in for a damaged one may
// still be left out.
//
// Errors: those of Admit and of postgres.Store.FillEnd.
func (r *Request) FillEnd(
	ctx context.Context, store *postgres.Store, at session.Address, v *postgres.View, tokens int64,
) error {
	end, err := store.EndOf(ctx, at, v, tokens)
	if err != nil {
		return err
	}
	if err := r.Admit(memoryPerByte * (end.Bytes + int64(v.Size))); err != nil {
		return err
	}
	return r.heavy(end.Bytes+int64(v.Size), func() error { return store.FillEnd(ctx, at, v, end) })
}

// FromEnd fills a newest view that BoundsEnd with the end of its log and calls answer, which makes the view. While that
// returns ErrShortEnd, the end is read longer. It reports false if the view must be read whole.
//
// Errors: those of FillEnd and of answer.
func (r *Request) FromEnd(
	ctx context.Context, store *postgres.Store, at session.Address, v *postgres.View, answer func() error,
) (answered bool, err error) {
	for tokens := r.MaxTokens + r.MaxTokens/4; ; tokens *= 4 {
		if err := r.FillEnd(ctx, store, at, v, tokens); err != nil {
			return false, err
		}
		if v.LeftOut || v.Damage != nil {
			return false, nil
		}
		if err := answer(); !errors.Is(err, ErrShortEnd) {
			return true, err
		}
	}
}

// known tells which of the units of a view are known to be units: all, if its end is nil.
type known struct {
	end    *postgres.End
	first  int  // of the units from here on, it is known
	anchor int  // the unit of the end's anchor
	doubt  bool // a newer message of the user than the anchor may begin a unit, or the anchor may not
}

// isShortFor reports whether a cut that fits may not be the one that leaves the least out.
func (k *known) isShortFor(c cut) bool {
	return k.end != nil && (c.first <= k.first || k.doubts(c))
}

// doubts reports whether the anchor of a cut may be another one, or none.
func (k *known) doubts(c cut) bool { return k.end != nil && k.doubt && c.anchor == k.anchor }

// fewest returns the tokens that the view of a cut has at least.
func (k *known) fewest(c cut, all []unit) int64 {
	if k.doubts(c) && c.anchor != nobody {
		return c.tokens - all[c.anchor].Tokens
	}
	return c.tokens
}

// knownUnits returns what allUnits does. If there are messages that were not read, those units stand for them that have
// no messages, and what is known of the others. Error: ErrShortEnd.
func (o *opened) knownUnits() ([]unit, known, error) {
	k := known{end: o.stored.End, anchor: nobody}
	if k.end == nil || k.end.Messages == 0 {
		k.end = nil
		return o.allUnits(), k, nil
	}
	t := o.readTail()
	first := 0
	for first < len(t.starts) && (t.sure == 0 || t.starts[first] < t.sure) {
		first++
	}
	if first == len(t.starts) || t.unsure >= t.starts[first] {
		return nil, k, ErrShortEnd
	}
	k.doubt = provider.Of(o.stored.Format).FirstUser && (k.end.Doubt || t.user < t.starts[first])
	list, err := o.unread(t.starts[first])
	if err != nil {
		return nil, k, err
	}
	for i := range list {
		if len(k.end.Anchor) > 0 && list[i].tail != nil && list[i].FirstSeq == k.end.Anchor[0].Seq {
			k.anchor = len(o.units) + i
		}
	}
	all := append(o.units, list...)
	k.first = len(all)
	all = append(all, o.unitsOf(t)[first:]...)
	return withLast(all, o.stored.LastSeq), k, nil
}

// unread returns the units before message first of the end: one for each message that is pinned or the anchor, and one
// without messages for those between.
func (o *opened) unread(first int) ([]unit, error) {
	read, err := o.readBefore()
	if err != nil {
		return nil, err
	}
	g := gaps{messages: int(o.stored.End.Messages) + first - len(read), tokens: o.stored.End.Tokens}
	for _, tokens := range o.tokens[:first] {
		g.tokens += tokens
	}
	for i := range read {
		g.tokens -= read[i].Tokens
	}
	next := max(o.stored.Through, o.stored.Separate()) + 1
	var list []unit
	for _, u := range read {
		list = append(g.append(list, next, u.FirstSeq), u)
		next = u.FirstSeq + 1
	}
	return g.append(list, next, o.tail[first].Seq), nil
}

// readBefore returns the messages before the end that were read.
func (o *opened) readBefore() (list []unit, err error) {
	end := o.stored.End
	for _, m := range slices.Concat(end.Pinned, end.Anchor) {
		if len(list) > 0 && list[len(list)-1].FirstSeq == m.Seq {
			continue // the anchor is pinned
		}
		one := compact.Unit{
			FirstSeq: m.Seq, Messages: 1, Tokens: m.Tokens, Pinned: m.Seq <= o.stored.Pinned,
		}
		u := unit{Unit: Unit{Unit: one}}
		if u.tail, _, err = loose([]postgres.TailMessage{m}); err != nil {
			return nil, fmt.Errorf("a message before the end: %w", err)
		}
		list = append(list, u)
	}
	return list, nil
}

// gaps counts the messages that were not read.
type gaps struct {
	messages int
	tokens   int64
}

// append appends a unit for the messages from one seq up to another, if there are any. It has all tokens: no cut begins
// between two gaps.
func (g *gaps) append(list []unit, from, to int64) []unit {
	if from == to {
		return list
	}
	gap := compact.Unit{FirstSeq: from, Messages: min(g.messages, int(to-from)), Tokens: g.tokens}
	g.messages -= gap.Messages
	g.tokens = 0
	return append(list, unit{Unit: Unit{Unit: gap}})
}

func setOf(ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
