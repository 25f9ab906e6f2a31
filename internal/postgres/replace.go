package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// ErrMoved reports that a log has changed since a replacement of its messages was made.
var ErrMoved = errors.New("the log has changed since it was compared")

// Outline returns what the views of a session have of its log, from seq from on, at most limit messages; ErrNotFound.
// Without head, the leading system messages are left out.
func (s *Store) Outline(ctx context.Context, at session.Address, from int64, limit int, head bool) (
	o session.Outline, err error,
) {
	var pinned int64
	err = s.inSnapshot(ctx, at.Tenant, func(tx pgx.Tx) error {
		o.Key.Tenant = at.Tenant
		err := tx.QueryRow(ctx, `
			SELECT key, format, last_seq, pinned
			  FROM sessions
			 WHERE tenant_id = $1 AND id = $2`, at.Tenant, at.ID).Scan(&o.Key.Key, &o.Format, &o.LastSeq, &pinned)
		if err != nil {
			return NotFound(err)
		}
		if !head {
			from = max(from, pinned+1)
		}
		o.Entries, err = RowsIn(ctx, tx, pgx.RowToStructByPos[session.Entry], `
			SELECT seq, format, coalesce(client_id, ''), `+messageBytes+`, digest
			  FROM messages
			 WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3 AND removed_at IS NULL
			 ORDER BY seq
			 LIMIT $4`, at.Tenant, o.Key.Key, from, limit)
		return err
	})
	return o, err
}

// Named returns the seq of the message in a session's views that has a client id; ErrNotFound.
func (s *Store) Named(ctx context.Context, at session.Address, clientID string) (int64, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (int64, error) {
		return RowIn(ctx, tx, pgx.RowTo[int64], `
			SELECT seq
			  FROM messages
			 WHERE tenant_id = $1 AND session_key = $2 AND client_id = $3 AND `+namedSQL+` AND removed_at IS NULL`,
			at.Tenant, key.Key, clientID)
	})
}

// namedSQL holds for the message that has a client id now, as the index messages_client_id has it.
const namedSQL = `client_id IS NOT NULL AND (superseded_by IS NULL OR superseded_by = removed_seq)`

// Answered reports whether a request was answered before, and decodes that answer; ErrIdempotencyReused.
func (s *Store) Answered(ctx context.Context, tenant uuid.UUID, id *session.Idempotency, answer any) (bool, error) {
	if id == nil {
		return false, nil
	}
	return ReadTx(ctx, s, tenant, func(tx pgx.Tx) (bool, error) { return replay(ctx, tx, tenant, id, answer) })
}

// Replace supersedes messages and appends others in their place, in one transaction. A checkpoint that covers a
// superseded message loses its body, and the session goes back to the newest one that covers none, or to its log, until
// it is compacted again.
//
// Errors: ErrMoved, ErrNotFound, *StaleError, ErrTooManyMessages, ErrLogTooLarge, ErrClientIDReused,
// ErrIdempotencyReused, ErrSessionBusy.
func (s *Store) Replace(
	ctx context.Context, r session.Replacement,
) (done session.Replaced, replayed bool, err error) {
	do := func(tx pgx.Tx, row lockedSession) (session.Replaced, error) { return s.replace(ctx, tx, row, r) }
	return onceInSession(ctx, s, r.Session, r.Idempotency, do)
}

// replace does what Replace does, under the session's lock.
func (s *Store) replace(
	ctx context.Context, tx pgx.Tx, row lockedSession, r session.Replacement,
) (session.Replaced, error) {
	switch {
	case !r.IsEmpty() && r.ExpectedSeq != nil && *r.ExpectedSeq != row.lastSeq:
		return session.Replaced{}, &session.StaleError{Expected: *r.ExpectedSeq, Current: row.lastSeq}
	case r.Seen != row.lastSeq:
		return session.Replaced{}, ErrMoved
	}
	done := session.Replaced{Compaction: session.CompactionNone, UsageIgnored: r.UsageIgnored, Warnings: r.Warnings}
	w := replacing{Store: s, tx: tx, row: row, done: done}
	if err := w.replace(ctx, r); err != nil {
		return session.Replaced{}, err
	}
	w.done.LastSeq = w.row.lastSeq
	w.done.ContextTokens, w.done.TotalTokens = w.row.contextTokens, w.row.totalTokens
	if r.From == 0 { // it only appended
		return w.done, nil
	}
	if err := Exec(ctx, tx, `
		UPDATE sessions
		   SET unbound_seq = last_seq
		 WHERE tenant_id = $1 AND key = $2`, row.Tenant, row.Key.Key); err != nil {
		return session.Replaced{}, err
	}
	return w.done, recordSession(ctx, tx, r.Session, audit.MessagesReplace, about{
		"from_seq": r.From, "superseded": w.done.Superseded, "appended": w.done.Appended,
	})
}

// replacing is a replacement under the session's lock.
type replacing struct {
	*Store
	tx   pgx.Tx
	row  lockedSession
	done session.Replaced
}

func (w *replacing) replace(ctx context.Context, r session.Replacement) error {
	if err := w.supersede(ctx, r); err != nil {
		return err
	}
	removal := w.row.lastSeq // if any
	for _, a := range r.Appends {
		if err := w.append(ctx, a); err != nil {
			return err
		}
	}
	if r.From == 0 {
		return nil
	}
	if err := w.carryPins(ctx, removal); err != nil || len(r.Appends) > 0 {
		return err
	}
	threshold, isDue := w.row.due(w.row.contextTokens)
	if !isDue {
		return nil
	}
	compaction, err := w.askForCompaction(ctx, w.tx, w.row, threshold, causes[threshold])
	w.done.Compaction = compaction
	return err
}

var supersedeSQL = statement("supersede")

// supersede takes the messages out of all views, and their client ids from them for those that come.
func (w *replacing) supersede(ctx context.Context, r session.Replacement) error {
	next := w.row.lastSeq + 1
	if r.From > 0 {
		next++
	}
	ids, seqs := namesOf(r.Appends, next)
	released, err := w.release(ctx, ids, seqs)
	if err != nil || r.From == 0 && released == 0 {
		return err
	}
	if r.From > 0 {
		if err := w.supersedeFrom(ctx, r.From); err != nil {
			return err
		}
		if _, err := w.release(ctx, ids, seqs); err != nil {
			return err
		}
	}
	// The new ones are the pinned head if nothing before them stays that is not in it.
	err = Exec(ctx, w.tx, `
		UPDATE sessions s
		   SET pinned = last_seq
		 WHERE tenant_id = $1 AND key = $2
		   AND NOT EXISTS (
		       SELECT
		         FROM messages
		        WHERE tenant_id = $1 AND session_key = $2 AND seq > s.pinned AND superseded_by IS NULL)`,
		w.row.Tenant, w.row.Key.Key)
	if err != nil {
		return err
	}
	return w.lockAgain(ctx)
}

func (w *replacing) supersedeFrom(ctx context.Context, from int64) error {
	if w.row.lastSeq >= session.MaxSessionMessages {
		return session.ErrTooManyMessages
	}
	var covered bool
	err := w.tx.QueryRow(ctx, supersedeSQL, pgx.NamedArgs{
		"tenant": w.row.Tenant, "session": w.row.Key.Key, "from": from, "removed_seq": w.row.lastSeq + 1,
	}).Scan(&covered, &w.done.Superseded)
	if err != nil || !covered {
		return NotFound(err)
	}
	reason := fmt.Sprintf("the messages from %d on were superseded", from)
	if err := w.lockAgain(ctx); err != nil {
		return err
	}
	row := w.row
	row.lastSeq--
	return w.takeBack(ctx, w.tx, row, from, math.MaxInt64, reason)
}

// lockAgain reads the session's row again, which has changed.
func (w *replacing) lockAgain(ctx context.Context) (err error) {
	w.row, err = lockSessionKey(ctx, w.tx, w.row.Key)
	return err
}

// namesOf returns the client ids of messages that are appended from seq next on, and the seqs of these messages.
func namesOf(appends []session.Append, next int64) (ids []string, seqs []int64) {
	for _, a := range appends {
		for i := range a.Messages {
			if id := a.Messages[i].ClientID; id != "" {
				ids, seqs = append(ids, id), append(seqs, next)
			}
			next++
		}
	}
	return ids, seqs
}

// release takes client ids from messages that are removed, for those with these seqs.
func (w *replacing) release(ctx context.Context, ids []string, seqs []int64) (int64, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	tag, err := w.tx.Exec(ctx, `
		UPDATE messages m
		   SET superseded_by = n.seq
		  FROM unnest($3::text[], $4::bigint[]) n (id, seq)
		 WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.client_id = n.id AND `+namedSQL+`
		   AND m.removed_at IS NOT NULL`, w.row.Tenant, w.row.Key.Key, ids, seqs)
	return tag.RowsAffected(), err
}

// append adds messages behind the last one.
func (w *replacing) append(ctx context.Context, a session.Append) error {
	if err := refuse(w.row, a); err != nil {
		return err
	}
	appended, err := w.appendDue(ctx, w.tx, w.row, a, newAppendParams(a))
	if Violates(err, "messages_client_id") {
		return fmt.Errorf("a message that stays has the client_id of a new one: %w", session.ErrClientIDReused)
	}
	if err != nil {
		return err
	}
	if w.done.FirstSeq == nil {
		w.done.FirstSeq = &appended.FirstSeq
	}
	w.done.Appended += int64(len(a.Messages))
	w.done.Tokens += appended.Tokens
	if appended.Compaction != session.CompactionNone {
		w.done.Compaction = appended.Compaction
	}
	return w.lockAgain(ctx)
}

// carryPins gives the pins of superseded messages to those that have their client ids and their bytes.
func (w *replacing) carryPins(ctx context.Context, removal int64) error {
	return Exec(ctx, w.tx, `
		UPDATE session_pins p
		   SET seq = n.seq, ref = left(p.ref, 1) || n.seq || substr(p.ref, 2 + length(p.seq::text))
		  FROM messages m
		  JOIN messages n ON n.tenant_id = $1 AND n.session_key = $2 AND n.seq = m.superseded_by AND n.digest = m.digest
		 WHERE p.tenant_id = $1 AND p.session_key = $2
		   AND m.tenant_id = $1 AND m.session_key = $2 AND m.seq = p.seq AND m.removed_seq = $3`,
		w.row.Tenant, w.row.Key.Key, removal)
}
