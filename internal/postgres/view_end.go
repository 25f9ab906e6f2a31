package postgres

import (
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// End is how the newest messages of a long tail are read, and what is known of those before them.
type End struct {
	First int64 // the seq of the first message that is read
	Bytes int64 // of the messages that are read

	Messages int64         // how many stand before First in the tail; 0: what is below is empty
	Tokens   int64         // of these messages
	Pinned   []TailMessage // the pinned head, if it is among them
	Anchor   []TailMessage // the newest message of the user among them, where a view must begin with one
	Doubt    bool          // Anchor may be in a unit with other messages
	Early    []string      // ids of results just before First, whose calls may come after it
}

const (
	sizesAtOnce = 128 // of how many messages EndOf reads the sizes first

	// endMargin is how many more messages the end has than its tokens need. The first of them may belong to a unit that
	// began before.
	endMargin = 16
)

// stateSQL holds for messages that load tools or have a provider's own compaction, which views have wherever they are:
// they have wire.FlagState.
const stateSQL = `
		   AND flags & 57344 = 57344`

// EndOf returns the end of a newest view's tail that has at least a number of tokens, and some messages more. It reads
// the sizes of messages only.
func (s *Store) EndOf(ctx context.Context, at session.Address, v *View, tokens int64) (End, error) {
	hasState, err := QueryRow(ctx, s, at.Tenant, pgx.RowTo[bool], `SELECT EXISTS (SELECT`+presentSQL+stateSQL+`)`,
		at.Tenant, v.Key, v.beforeTail(), v.LastSeq)
	if err != nil {
		return End{}, err
	}
	if hasState {
		tokens = math.MaxInt64
	}
	for limit := sizesAtOnce; ; limit *= 8 {
		sizes, err := QueryRows(ctx, s, at.Tenant, pgx.RowToStructByPos[messageSize], `
			SELECT seq, coalesce(view_tokens, tokens),
			       coalesce(octet_length(coalesce(view_body, body)), 0)`+presentSQL+`
			 ORDER BY seq DESC
			 LIMIT $5`, at.Tenant, v.Key, v.beforeTail(), v.LastSeq, limit)
		if err != nil {
			return End{}, err
		}
		if n := inEnd(sizes, tokens); n <= len(sizes) || len(sizes) < limit {
			return endOf(sizes[:min(n, len(sizes))], v.LastSeq), nil
		}
	}
}

// messageSize is how large a message is.
type messageSize struct{ Seq, Tokens, Bytes int64 }

// inEnd returns how many of the newest messages an end of a number of tokens has, at least.
func inEnd(sizes []messageSize, tokens int64) int {
	for i, m := range sizes {
		if tokens -= m.Tokens; tokens <= 0 {
			return i + 1 + endMargin
		}
	}
	return math.MaxInt
}

func endOf(sizes []messageSize, last int64) End {
	end := End{First: last + 1}
	for _, m := range sizes {
		end.First = m.Seq
		end.Bytes += m.Bytes
	}
	return end
}

// FillEnd does for the end of a view's tail what FillView does for all of it. The view has its End afterwards, unless
// another one stands in for it.
//
// Errors: those of FillView.
func (s *Store) FillEnd(ctx context.Context, at session.Address, v *View, end End) error {
	v.End = nil
	err := s.readLeftOut(ctx, at, v, func(tx pgx.Tx) (err error) {
		end.First = max(end.First, v.beforeTail()+1) // a checkpoint may have been made meanwhile
		if v.Loose, err = v.readFrom(ctx, tx, at, end.First, math.MaxInt32); err != nil {
			return err
		}
		if err := end.readBefore(ctx, tx, at, v); err != nil {
			return err
		}
		v.End = &end
		return v.checkCount(ctx, tx, at, len(v.Loose)+int(end.Messages))
	})
	for _, list := range [][]TailMessage{v.Loose, end.Pinned, end.Anchor} {
		for i := range list {
			if err == nil {
				err = list[i].check()
			}
		}
	}
	return err
}

// readFrom reads messages of the tail from a seq on.
func (v *View) readFrom(
	ctx context.Context, tx pgx.Tx, at session.Address, first int64, limit int,
) ([]TailMessage, error) {
	return RowsIn(ctx, tx, scanTail(false), `
		SELECT seq, coalesce(view_tokens, tokens), coalesce(view_body, body), shape`+presentSQL+`
		 ORDER BY seq
		 LIMIT $5`, at.Tenant, v.Key, first-1, v.LastSeq, limit)
}

// readBefore reads what is known of the messages of the tail before its end.
func (end *End) readBefore(ctx context.Context, tx pgx.Tx, at session.Address, v *View) error {
	if err := end.count(ctx, tx, at, v); err != nil || end.Messages == 0 {
		return err
	}
	if err := end.readPinned(ctx, tx, at, v); err != nil {
		return err
	}
	if provider.Of(v.Format).FirstUser {
		if err := end.readAnchor(ctx, tx, at, v); err != nil {
			return err
		}
	}
	margin, err := v.callsBefore(ctx, tx, at, end.First)
	end.Early = margin.unasked()
	return err
}

// count counts the messages of the tail before its end. Without a removal they follow one another without a gap.
func (end *End) count(ctx context.Context, tx pgx.Tx, at session.Address, v *View) error {
	before := v.beforeTail()
	err := tx.QueryRow(ctx, `
		SELECT CASE WHEN s.gap_seq > s.through_seq
		            THEN (SELECT count(*)
		                    FROM messages
		                   WHERE tenant_id = $1 AND session_key = $2 AND removed_at IS NULL AND seq > $3 AND seq < $4)
		            ELSE greatest($4 - $3 - 1, 0) END,
		       s.context_tokens
		       - coalesce((SELECT tokens
		                     FROM checkpoints
		                    WHERE tenant_id = $1 AND session_key = $2 AND n = s.checkpoint_n), 0)
		       - coalesce((SELECT sum(coalesce(view_tokens, tokens))
		                     FROM messages
		                    WHERE tenant_id = $1 AND session_key = $2 AND removed_at IS NULL AND seq <= $5), 0)
		  FROM sessions s
		 WHERE s.tenant_id = $1 AND s.key = $2`, at.Tenant, v.Key, before, end.First, v.Separate()).
		Scan(&end.Messages, &end.Tokens)
	for i := range v.Loose {
		end.Tokens -= v.Loose[i].Tokens
	}
	return err
}

// readPinned reads the pinned head as far as it stands in the tail before its end.
func (end *End) readPinned(ctx context.Context, tx pgx.Tx, at session.Address, v *View) (err error) {
	if pinned := min(v.Pinned, end.First-1) - v.beforeTail(); pinned > 0 {
		end.Pinned, err = v.readFrom(ctx, tx, at, v.beforeTail()+1, int(pinned))
	}
	end.Pinned = slices.DeleteFunc(end.Pinned, func(m TailMessage) bool { return m.Seq > v.Pinned })
	return err
}

// readAnchor reads the user's newest message before the end. Where calls wait for their results there, or what follows
// belongs to it, it may be in a unit with other messages.
func (end *End) readAnchor(ctx context.Context, tx pgx.Tx, at session.Address, v *View) error {
	found, err := RowsIn(ctx, tx, pgx.RowTo[int64], `
		SELECT seq`+presentSQL+`
		   AND role = 'user'
		   AND starts_unit
		 ORDER BY seq DESC
		 LIMIT 1`, at.Tenant, v.Key, v.beforeTail(), end.First-1)
	if err != nil || len(found) == 0 {
		return err
	}
	if end.Anchor, err = v.readFrom(ctx, tx, at, found[0], 1); err != nil {
		return err
	}
	next, err := RowsIn(ctx, tx, pgx.RowTo[bool], `
		SELECT starts_unit OR role IN ('assistant', 'model')`+presentSQL+`
		 ORDER BY seq
		 LIMIT 1`, at.Tenant, v.Key, found[0], v.LastSeq)
	if err != nil {
		return err
	}
	before, err := v.callsBefore(ctx, tx, at, found[0]+1)
	end.Doubt = slices.Contains(next, false) || before.waits()
	return err
}

// calls are the ids of the calls and of the results of messages that follow one another, oldest first.
type calls []struct{ Calls, Answers []string }

// callsBefore returns the calls and results of some messages of the tail before a seq.
func (v *View) callsBefore(ctx context.Context, tx pgx.Tx, at session.Address, before int64) (calls, error) {
	found, err := RowsIn(ctx, tx, pgx.RowToStructByPos[struct{ Calls, Answers []string }], `
		SELECT coalesce(calls, '{}'), coalesce(answers, '{}')`+presentSQL+`
		 ORDER BY seq DESC
		 LIMIT $5`, at.Tenant, v.Key, v.beforeTail(), before-1, units.EarlyReach)
	slices.Reverse(found)
	return found, err
}

// unasked returns the ids of results that answer no call of the messages before them.
func (c calls) unasked() (ids []string) {
	asked := map[string]bool{}
	for _, m := range c {
		for _, id := range m.Calls {
			asked[id] = true
		}
		for _, id := range m.Answers {
			if !asked[id] {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// waits reports whether a call has no result in these messages.
func (c calls) waits() bool {
	waiting := map[string]int{}
	for _, m := range c {
		for _, id := range m.Calls {
			waiting[id]++
		}
		for _, id := range m.Answers {
			if waiting[id]--; waiting[id] <= 0 {
				delete(waiting, id)
			}
		}
	}
	return len(waiting) > 0
}
