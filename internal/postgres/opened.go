package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Entry is a message of a view with what was extracted when it came in.
type Entry struct {
	Seq        int64
	Tokens     int64
	Format     session.Format
	Role       string
	StartsUnit bool
	Calls      []string
	Answers    []string
	Body       []byte
}

// OpenedView is a view message by message, for who bounds it or says it in another format. View's System and Tail are
// empty.
type OpenedView struct {
	View
	Pinned  int64    // leading system messages of the log
	Units   []byte   // of the checkpoint, as package compact wrote them
	Open    []string // ids of calls that the checkpoint does not answer
	Head    []Entry  // the leading system messages, where they stand apart
	Entries []Entry  // the tail

	checkpointTokens int64
}

// Newest stands for the number of a session's newest checkpoint.
const Newest = -1

// OpenView reads a view that begins with the session's newest checkpoint, with an older one, or (0) the log itself, in
// which nothing was capped when it was appended. ErrNotFound if there is no such session; ErrPruned if the checkpoint has
// no body any more; ErrLogTooLarge if the log does not fit into memory.
func (s *Store) OpenView(ctx context.Context, at session.Address, checkpoint int) (v OpenedView, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = InTenant(ctx, s.pool, at.Tenant, snapshot, func(tx pgx.Tx) error {
		if err := v.readBase(ctx, tx, at, checkpoint); err != nil {
			return err
		}
		columns := cappedColumns
		if checkpoint == 0 {
			columns = loggedColumns
			if err := fits(ctx, tx, session.Key{Tenant: at.Tenant, Key: v.Key}); err != nil {
				return err
			}
		}
		if v.Head, err = v.read(ctx, tx, at, columns, 0, v.apart()); err != nil {
			return err
		}
		v.Entries, err = v.read(ctx, tx, at, columns, max(v.Through, v.apart()), v.LastSeq)
		return err
	})
	if err == nil && checkpoint != Newest {
		v.Tokens = v.checkpointTokens + tokensOf(v.Head) + tokensOf(v.Entries) // the session counts those of its newest view
	}
	return v, err
}

func tokensOf(entries []Entry) (tokens int64) {
	for i := range entries {
		tokens += entries[i].Tokens
	}
	return tokens
}

// What a view shows of a message, and what was appended.
const (
	cappedColumns = `coalesce(view_tokens, tokens), coalesce(view_body, body)`
	loggedColumns = `tokens, body`
)

// readBase reads the session and the checkpoint.
func (v *OpenedView) readBase(ctx context.Context, tx pgx.Tx, at session.Address, checkpoint int) error {
	var format int16
	err := tx.QueryRow(ctx, `
		SELECT s.key, s.last_seq, s.format, s.model, s.context_tokens, s.pinned,
		       coalesce(c.n, 0), coalesce(c.through_seq, 0), coalesce(c.tokens, 0), coalesce(c.body_size, 0), c.body, c.units, c.open_calls
		  FROM sessions s
		  LEFT JOIN LATERAL (
		       SELECT n, through_seq, tokens, body_size, body, units, open_calls
		         FROM checkpoints
		        WHERE tenant_id = $1 AND session_key = s.key AND n = CASE WHEN $3 < 0 THEN s.checkpoint_n ELSE $3 END
		       OFFSET 0) c ON true
		 WHERE s.tenant_id = $1 AND s.id = $2`, [16]byte(at.Tenant), at.ID, checkpoint).
		Scan((*[16]byte)(&v.Key), &v.LastSeq, &format, &v.Model, &v.Tokens, &v.Pinned,
			&v.Checkpoint, &v.Through, &v.checkpointTokens, &v.Size, &v.Body, &v.Units, &v.Open)
	if err != nil {
		return notFound(err)
	}
	v.Format = formatName(format)
	if checkpoint > 0 && (v.Checkpoint != checkpoint || v.Body == nil) {
		return pruned(checkpoint)
	}
	return nil
}

// apart is how many leading messages stand apart from the view's messages.
func (v *OpenedView) apart() int64 {
	if v.Format == session.Anthropic || v.Format == session.Gemini {
		return v.Pinned
	}
	return 0
}

func (v *OpenedView) read(ctx context.Context, tx pgx.Tx, at session.Address, columns string, after, through int64) ([]Entry, error) {
	if after >= through {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
		SELECT seq, format, role, starts_unit, calls, answers, `+columns+`
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND seq <= $4 AND removed_at IS NULL
		 ORDER BY seq`, [16]byte(at.Tenant), [16]byte(v.Key), after, through)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Entry, err error) {
		var format int16
		err = row.Scan(&e.Seq, &format, &e.Role, &e.StartsUnit, &e.Calls, &e.Answers, &e.Tokens, &e.Body)
		e.Format = formatName(format)
		return e, err
	})
}
