package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// importing stores one batch of lines.
type importing struct {
	s      *Store
	tx     pgx.Tx
	tenant uuid.UUID
	*session.Import
	lines []importLine
}

// importLine is a line with the place in the log that it was stored at.
type importLine struct {
	*session.ImportLine
	key uuid.UUID // of the session that it is about
	seq int64
}

// StoreImportLines stores lines and acknowledges them, all or none, and tells each what became of it. The import is to
// say what is acknowledged with them: Source, Total, Bytes, Digest, Report; the counts are added here. ErrImportTaken.
func (s *Store) StoreImportLines(ctx context.Context, tenant uuid.UUID, i *session.Import, lines []session.ImportLine) error {
	after := *i
	err := s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		if err := lockImport(ctx, tx, tenant, i); err != nil {
			return err
		}
		b := importing{s: s, tx: tx, tenant: tenant, Import: &after, lines: make([]importLine, len(lines))}
		for n := range lines {
			b.lines[n].ImportLine = &lines[n]
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

// lockImport holds the import for this attempt alone.
func lockImport(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, i *session.Import) error {
	err := tx.QueryRow(ctx, `
		SELECT
		  FROM imports
		 WHERE tenant_id = $1 AND id = $2 AND attempt = $3 AND done = $4 AND finished_at IS NULL
		   FOR NO KEY UPDATE`, [16]byte(tenant), [16]byte(i.ID), i.Attempt, i.Done).Scan()
	if errors.Is(err, pgx.ErrNoRows) {
		return session.ErrImportTaken
	}
	return err
}

// store goes through the lines: messages of one session and format that follow each other are stored together.
func (b *importing) store(ctx context.Context) error {
	for rest := b.lines; len(rest) > 0; {
		n, err := 1, error(nil)
		switch first := &rest[0]; {
		case first.Session != nil:
			err = b.session(ctx, first)
		case first.End != nil:
			err = b.end(ctx, first)
		case first.Message != nil:
			for n < len(rest) && sameLog(rest[n], rest[0]) {
				n++
			}
			err = b.messages(ctx, rest[:n])
		}
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func sameLog(a, b importLine) bool {
	return a.Message != nil && a.Message.Session == b.Message.Session && a.Message.Format == b.Message.Format
}

func (b *importing) at(id string) session.Address { return session.Address{Tenant: b.tenant, ID: id} }

// session makes a session, unless it is there.
func (b *importing) session(ctx context.Context, l *importLine) error {
	key, err := SessionKey(ctx, b.tx, b.at(l.Session.ID))
	if err == nil {
		l.key = key
		l.Set(session.LineExists, "")
		return nil
	}
	if !errors.Is(err, session.ErrNotFound) {
		return err
	}
	created, err := insertSession(ctx, b.tx, b.at(l.Session.ID), l.Session.Change)
	if err != nil {
		return err
	}
	if key, err = SessionKey(ctx, b.tx, b.at(l.Session.ID)); err != nil {
		return err
	}
	l.key = key
	if !created {
		l.Set(session.LineExists, "")
		return nil
	}
	b.Sessions++
	l.Set(session.LineCreated, "")
	return b.restoreSession(ctx, l)
}

// restoreSession gives a new session what insertSession does not know of.
func (b *importing) restoreSession(ctx context.Context, l *importLine) error {
	usage := l.Session.Tokens
	if usage == nil {
		usage = &session.TokenHistory{Calibration: 1}
	}
	_, err := b.tx.Exec(ctx, `
		UPDATE sessions
		   SET created_at = coalesce($3, created_at), calibration = $4, last_usage = $5, counted_tokens = $6, exact_tokens = $7
		 WHERE tenant_id = $1 AND key = $2`,
		[16]byte(b.tenant), [16]byte(l.key), l.Session.CreatedAt, usage.Calibration, usage.Last, usage.Counted, usage.Exact)
	return err
}

// end moves a session's last seq behind the removal that took it.
func (b *importing) end(ctx context.Context, l *importLine) error {
	row, err := lockSession(ctx, b.tx, b.at(l.End.Session))
	if errors.Is(err, session.ErrNotFound) {
		return nil // its line was rejected, and it has no message
	}
	if err != nil {
		return err
	}
	l.key = row.Key.Key
	_, err = b.tx.Exec(ctx, `
		UPDATE sessions
		   SET pinned = CASE WHEN pinned = last_seq THEN $3 ELSE pinned END,
		       last_seq = $3
		 WHERE tenant_id = $1 AND key = $2 AND last_seq < $3`, [16]byte(b.tenant), [16]byte(l.key), l.End.LastSeq)
	return err
}

// acknowledge writes what became of the lines, and that they are done.
func (b *importing) acknowledge(ctx context.Context) error {
	for i := range b.lines {
		switch b.lines[i].Outcome {
		case session.LineStored:
			b.Messages++
		case session.LineDuplicate:
			b.Duplicates++
		case session.LineRejected:
			b.Rejected++
		}
	}
	if err := b.writeLines(ctx); err != nil {
		return err
	}
	b.Done += int64(len(b.lines))
	_, err := b.tx.Exec(ctx, `
		UPDATE imports
		   SET source = $3, done = $4, total = $5, bytes = $6, digest = $7, sessions = $8, messages = $9, duplicates = $10, rejected = $11,
		       report = $12, updated_at = now()
		 WHERE tenant_id = $1 AND id = $2`,
		[16]byte(b.tenant), [16]byte(b.ID), b.Source, b.Done, b.Total, b.Bytes, b.Digest, b.Sessions, b.Messages, b.Duplicates, b.Rejected, b.Report)
	return err
}

// writeLines writes the runs of lines that went the same way.
func (b *importing) writeLines(ctx context.Context) error {
	batch := &pgx.Batch{}
	for i, n := 0, 0; i < len(b.lines); i += n {
		first := b.lines[i]
		for n = 1; i+n < len(b.lines) && follows(b.lines[i+n], first, int64(n)); n++ {
		}
		batch.Queue(`
			INSERT INTO import_lines (tenant_id, import_id, n, lines, line, outcome, session_key, seq, detail)
			VALUES ($1, $2, $3, $4, $5, $6, nullif($7, $8::uuid), nullif($9::bigint, 0), $10)`,
			[16]byte(b.tenant), [16]byte(b.ID), b.Done+int64(i)+1, n, first.Line, string(first.Outcome), [16]byte(first.key), [16]byte(uuid.Nil),
			first.seq, Text(first.Detail))
	}
	return b.tx.SendBatch(ctx, batch).Close()
}

// follows reports whether a line went the way of the one n lines before it.
func follows(l, first importLine, n int64) bool {
	seq := first.seq
	if seq > 0 {
		seq += n
	}
	return l.Outcome == first.Outcome && l.key == first.key && l.Detail == first.Detail && l.Line == first.Line+n && l.seq == seq
}
