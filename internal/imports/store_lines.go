package imports

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// importing is the state of a transaction that stores one batch of lines.
type importing struct {
	s      store
	tx     pgx.Tx
	tenant uuid.UUID
	*stored
	lines []storedLine
	keys  map[string]uuid.UUID // of the sessions that exist, by id
}

// storedLine is a line with the place where it was stored.
type storedLine struct {
	*entry
	key uuid.UUID // of its session
	seq int64

	creates bool // it created its session
}

// storeLines stores lines and acknowledges them, all or none, and sets the outcome of each. The caller sets what
// is acknowledged with them in the import (Source, Total, Bytes, Digest, Report); the counts are added here.
//
// Errors: errTaken.
func (s store) storeLines(ctx context.Context, tenant uuid.UUID, i *stored, lines []entry) error {
	after := *i
	err := s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		// Holds the import for this attempt alone.
		err := postgres.ExecOne(ctx, tx, errTaken, `
			SELECT
			  FROM imports
			 WHERE tenant_id = $1 AND id = $2 AND attempt = $3 AND done = $4 AND finished_at IS NULL
			   FOR NO KEY UPDATE`, tenant, i.ID, i.Attempt, i.Done)
		if err != nil {
			return err
		}
		b := importing{
			s: s, tx: tx, tenant: tenant, stored: &after,
			lines: make([]storedLine, len(lines)), keys: map[string]uuid.UUID{},
		}
		for n := range lines {
			b.lines[n].entry = &lines[n]
		}
		if err := b.store(ctx); err != nil {
			return err
		}
		return b.acknowledge(ctx)
	})
	if err == nil {
		*i = after
	}
	return err
}

// lockSessions locks the sessions of all lines, and creates those that are not there, in the order of their ids: two
// imports with the same sessions in another order would wait for each other, at a lock or at an id that the other has
// taken.
func (b *importing) lockSessions(ctx context.Context) error {
	makers := map[string]*storedLine{} // the lines that create their session, by its id; nil for none
	for i := range b.lines {
		l := &b.lines[i]
		id, creates := l.of()
		if id != "" && makers[id] == nil {
			makers[id] = nil
			if creates {
				makers[id] = l
			}
		}
	}
	ids := slices.Sorted(maps.Keys(makers))
	missing, err := postgres.RowIn(ctx, b.tx, pgx.RowTo[bool], `
		SELECT count(*) < $3
		  FROM sessions
		 WHERE tenant_id = $1 AND id = ANY ($2)`, b.tenant, ids, len(ids))
	if err != nil || !missing {
		return errors.Join(err, b.lockAll(ctx, ids))
	}
	for _, id := range ids {
		if err := b.lockOrCreate(ctx, id, makers[id]); err != nil {
			return err
		}
	}
	return nil
}

// lockAll locks the sessions of a list of ids.
func (b *importing) lockAll(ctx context.Context, ids []string) error {
	found, err := postgres.RowsIn(ctx, b.tx, pgx.RowToStructByPos[struct {
		ID  string
		Key uuid.UUID
	}], `
		SELECT id, key
		  FROM sessions
		 WHERE tenant_id = $1 AND id = ANY ($2)
		 ORDER BY id
		   FOR NO KEY UPDATE`, b.tenant, ids)
	for _, f := range found {
		b.keys[f.ID] = f.Key
	}
	return err
}

// lockOrCreate creates a session as a line says, unless it exists or the line is nil, and locks it.
func (b *importing) lockOrCreate(ctx context.Context, id string, by *storedLine) error {
	if by != nil {
		change := session.Change{}
		if by.Session != nil {
			change = by.Session.Change
		} else {
			change.Format = &by.Message.Format
		}
		created, err := postgres.InsertSession(ctx, b.tx, b.at(id), change)
		if err != nil {
			return err
		}
		by.creates = created
	}
	return b.lockAll(ctx, []string{id})
}

// store stores the lines in their order. Consecutive messages of one session and format are stored together.
func (b *importing) store(ctx context.Context) error {
	err := b.lockSessions(ctx)
	sameLog := func(first, next storedLine, _ int) bool {
		a, b := first.Message, next.Message
		return a != nil && b != nil && a.Session == b.Session && a.Format == b.Format
	}
	for lines := range runsOf(b.lines, sameLog) {
		first := &lines[0]
		switch {
		case err != nil:
			return err
		case first.Session != nil:
			err = b.createSession(ctx, first)
		case first.End != nil:
			err = b.endSession(ctx, first)
		case first.Message != nil:
			err = b.storeMessages(ctx, lines)
		} // the outcome of another line is known already
	}
	return err
}

// runsOf splits a list into runs: an element belongs to the run of first if it continues it as its element n.
func runsOf[T any](list []T, continues func(first, next T, n int) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			n := 1
			for n < len(list) && continues(list[0], list[n], n) {
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

func (b *importing) at(id string) session.Address { return session.Address{Tenant: b.tenant, ID: id} }

// createSession completes the session that its line created, unless one with its id existed.
func (b *importing) createSession(ctx context.Context, l *storedLine) error {
	l.key = b.keys[l.Session.ID]
	if !l.creates {
		l.set(protocol.LineExists, "")
		return nil
	}
	b.Sessions++
	l.set(protocol.LineCreated, "")
	// What InsertSession does not set: the time of creation and the history of token counts.
	tokens := l.Session.Tokens
	if tokens == nil {
		tokens = &session.TokenHistory{Calibration: 1}
	}
	return postgres.Exec(ctx, b.tx, `
		UPDATE sessions
		   SET created_at = coalesce($3, created_at), calibration = $4, last_usage = $5,
		       counted_tokens = $6, exact_tokens = $7, unseen_tokens = $8
		 WHERE tenant_id = $1 AND key = $2`,
		b.tenant, l.key, l.Session.CreatedAt,
		tokens.Calibration, tokens.Last, tokens.Counted, tokens.Exact, tokens.Unseen)
}

// endSession sets a session's last seq to that of its newest removal, which is larger than the seq of its last message.
func (b *importing) endSession(ctx context.Context, l *storedLine) error {
	l.key = b.keys[l.End.Session]
	if l.key == uuid.Nil {
		return nil // the session's line was rejected, and it has no message
	}
	return postgres.Exec(ctx, b.tx, `
		UPDATE sessions
		   SET pinned = CASE WHEN pinned = last_seq THEN $3 ELSE pinned END,
		       last_seq = $3,
		       gap_seq = $3,
		       unbound_seq = $3
		 WHERE tenant_id = $1 AND key = $2 AND last_seq < $3`, b.tenant, l.key, l.End.LastSeq)
}

// acknowledge records the outcomes of the lines and adds them to the import's counts.
func (b *importing) acknowledge(ctx context.Context) error {
	for i := range b.lines {
		switch b.lines[i].Outcome {
		case protocol.LineStored:
			b.Messages++
		case protocol.LineDuplicate:
			b.Duplicates++
		case protocol.LineRejected:
			b.Rejected++
		}
	}
	if err := b.writeLines(ctx); err != nil {
		return err
	}
	b.Done += countOf(b.lines)
	return postgres.Exec(ctx, b.tx, `
		UPDATE imports
		   SET source = $3, done = $4, total = $5, bytes = $6, digest = $7, sessions = $8, messages = $9,
		       duplicates = $10, rejected = $11, report = $12, updated_at = now()
		 WHERE tenant_id = $1 AND id = $2`,
		b.tenant, b.ID, b.Source, b.Done, b.Total, b.Bytes, b.Digest, b.Sessions, b.Messages,
		b.Duplicates, b.Rejected, b.Report)
}

// writeLines writes one row for each run of consecutive lines with the same outcome.
func (b *importing) writeLines(ctx context.Context) error {
	batch := &pgx.Batch{}
	place := b.Done + 1
	for lines := range runsOf(b.lines, sameOutcome) {
		first := lines[0]
		batch.Queue(`
			INSERT INTO import_lines (tenant_id, import_id, n, lines, line, outcome, session_key, seq, detail)
			VALUES ($1, $2, $3, $4, $5, $6, nullif($7, $8::uuid), nullif($9::bigint, 0), $10)`,
			b.tenant, b.ID, place, countOf(lines), first.Line, string(first.Outcome),
			first.key, uuid.Nil, first.seq, postgres.Text(first.Detail))
		place += countOf(lines)
	}
	return b.tx.SendBatch(ctx, batch).Close()
}

// countOf returns how many lines of the file these are.
func countOf(lines []storedLine) (n int64) {
	for i := range lines {
		n += 1 + lines[i].More
	}
	return n
}

// sameOutcome reports whether a line has the same outcome, at the next place of the log, as the line n lines before it.
func sameOutcome(first, next storedLine, n int) bool {
	seq := first.seq
	if seq > 0 {
		seq += int64(n)
	}
	same := next.Outcome == first.Outcome && next.Detail == first.Detail
	return same && first.More+next.More == 0 && next.Line == first.Line+int64(n) &&
		next.key == first.key && next.seq == seq
}
