package view

import (
	"bytes"
	"cmp"
	"math"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Binds reports whether the view is for a model whose thinking holds only behind all that stood before it.
func (r *Request) Binds(v *postgres.View) bool {
	return provider.SendsThinking(r.Target(v.Format)) && provider.BindsThinking(cmp.Or(r.Model, v.Model))
}

// Bounded reports whether the view lacks anything of the session's.
func (n *Notes) Bounded() bool { return n.Omitted.Messages > 0 || len(n.Cut) > 0 }

// mayUnbind reports whether thinking may have to be left out because the view is not what it was. Messages are named by
// their seqs if these are not all there.
func (r *Request) mayUnbind(v *postgres.View) bool {
	return (v.Unbound > 0 || v.LeftOut || bytes.IndexByte(v.TailShapes, '\x1c') >= 0 ||
		bytes.IndexByte(v.SystemShapes, '\x1c') >= 0) && r.Binds(v)
}

// mayForget reports whether items of Responses may lack the reasoning that led to them, because messages were removed.
func (r *Request) mayForget(v *postgres.View) bool {
	return v.Format == session.OpenAIResponses && bytes.IndexByte(v.TailShapes, '\x1c') >= 0
}

// behindRemoved returns the messages of the tail of a view of Responses that are directly behind one that was removed.
func behindRemoved(v *postgres.View, tail []wire.Stored) (seqs []int64) {
	if v.Format != session.OpenAIResponses {
		return nil
	}
	next := v.Through + 1
	for i := range tail {
		isAfterUnread := v.IsStretch && i == 0 || v.End != nil && v.End.Messages > 0 && tail[i].Seq <= v.End.First
		if tail[i].Seq > next && !isAfterUnread {
			seqs = append(seqs, tail[i].Seq)
		}
		next = tail[i].Seq + 1
	}
	return seqs
}

// unbound returns which messages of a view have something else before them than when they were written: all of a
// bounded one, those through the last one when the checkpoint was made, and those from a removed message to its
// removal, of which both seqs are missing.
func unbound(v *postgres.View, messages []wire.Stored, bounded bool) []wire.Seqs {
	if bounded {
		return []wire.Seqs{{After: 0, Through: math.MaxInt64}}
	}
	var ranges []wire.Seqs
	if v.Unbound > 0 {
		ranges = append(ranges, wire.Seqs{After: 0, Through: v.Unbound})
	}
	var gap wire.Seqs
	missing := func(first, last int64) {
		if gap.Through == 0 {
			gap.After = first - 1
		}
		gap.Through = last
	}
	next := v.Through + 1
	for i := range messages {
		if seq := messages[i].Seq; seq >= next {
			if seq > next {
				missing(next, seq-1)
			}
			next = seq + 1
		}
	}
	if next <= v.LastSeq {
		missing(next, v.LastSeq)
	}
	if gap.Through > 0 {
		ranges = append(ranges, gap)
	}
	return ranges
}
