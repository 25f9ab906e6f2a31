package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/varve-dev/varve/internal/session"
)

// CreateWith creates a session and appends its first messages, both or neither. There may be no messages.
//
// Errors: ErrExists if its id is taken, ErrTooManyMessages, ErrIdempotencyReused.
func (s *Store) CreateWith(
	ctx context.Context, a session.Append, change session.Change,
) (session.Session, bool, error) {
	return Once(ctx, s, a.Session.Tenant, a.Idempotency, func(tx pgx.Tx) (session.Session, uuid.UUID, error) {
		created, err := InsertSession(ctx, tx, a.Session, change)
		if err == nil && !created {
			err = fmt.Errorf("session %q: %w", a.Session.ID, session.ErrExists)
		}
		if err != nil {
			return session.Session{}, uuid.Nil, err
		}
		if len(a.Messages) > 0 {
			if err := s.appendFirst(ctx, tx, a); err != nil {
				return session.Session{}, uuid.Nil, err
			}
		}
		made, err := readSession(ctx, tx, a.Session)
		if err != nil {
			return made, uuid.Nil, err
		}
		return made, made.Key, recordCreated(ctx, tx, a.Session, change, made)
	})
}

func (s *Store) appendFirst(ctx context.Context, tx pgx.Tx, a session.Append) error {
	row, err := lockSession(ctx, tx, a.Session)
	if err != nil {
		return err
	}
	if err := refuse(row, a); err != nil {
		return err
	}
	_, err = s.appendDue(ctx, tx, row, a, newAppendParams(a))
	return err
}

// foundItems is how many messages WithItemID finds at most.
const foundItems = 16

// WithItemID reads the newest of a session's messages, removed ones aside, that may have the provider's item id: a few,
// newest first. An index finds them. In a session from before there was one, the bytes of all messages are searched if
// it finds none. ErrNotFound if there is no such session.
func (s *Store) WithItemID(ctx context.Context, at session.Address, id string) ([]session.Message, error) {
	var key uuid.UUID
	var since pgtype.Timestamptz
	found, err := s.readComplete(ctx, at.Tenant, func(tx pgx.Tx) (log logOf[session.Message], err error) {
		if key, err = sessionKey(ctx, tx, at); err != nil {
			return log, err
		}
		since, err = RowIn(ctx, tx, pgx.RowTo[pgtype.Timestamptz], `SELECT items_since FROM installation`)
		if err != nil {
			return log, err
		}
		return readLog(ctx, tx, session.Key{Tenant: at.Tenant, Key: key}, ofMessage, scanMessage, `
			SELECT `+messageColumns+`
			  FROM messages
			 WHERE tenant_id = $1
			   AND session_key = $2
			   AND seq > 0
			   AND removed_at IS NULL
			   AND item_id = $3
			 ORDER BY seq DESC
			 LIMIT $4`, at.Tenant, key, id, foundItems)
	})
	first := FirstIDOf(since.Time) // of a session that is not old
	isOld := since.InfinityModifier == pgtype.Finite && bytes.Compare(key[:], first[:]) < 0
	if err != nil || len(found) > 0 || !isOld {
		return found, err
	}
	return s.containing(ctx, at, []byte(`"`+id+`"`)) // ids of items have nothing that JSON escapes
}

// containing reads the newest of a session's messages, removed ones aside, whose bytes contain text. PostgreSQL
// searches those whose bytes are in their rows; those in packs are read, a page in a transaction.
func (s *Store) containing(ctx context.Context, at session.Address, text []byte) ([]session.Message, error) {
	var log logOf[session.Message]
	var packed int64 // the last seq in a pack, 0 for none
	err := s.inSnapshot(ctx, at.Tenant, func(tx pgx.Tx) error {
		key, err := sessionKey(ctx, tx, at)
		if err != nil {
			return err
		}
		log, err = readLog(ctx, tx, session.Key{Tenant: at.Tenant, Key: key}, ofMessage, scanMessage, `
			SELECT `+messageColumns+`
			  FROM messages
			 WHERE tenant_id = $1
			   AND session_key = $2
			   AND seq > 0
			   AND removed_at IS NULL
			   AND position($3::bytea IN body) > 0
			 ORDER BY seq DESC
			 LIMIT $4`, at.Tenant, key, text, foundItems)
		if err != nil {
			return err
		}
		packed, err = RowIn(ctx, tx, pgx.RowTo[int64], `
			SELECT coalesce(max(last_seq), 0)
			  FROM message_packs
			 WHERE tenant_id = $1 AND session_key = $2`, at.Tenant, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	found, err := log.complete(ctx, s)
	if err != nil || packed == 0 {
		return found, err
	}
	inPacks, err := s.packedContaining(ctx, at, text, packed)
	return newestOf(append(found, inPacks...)), err
}

// packedContaining does what containing does for the messages up to seq last.
func (s *Store) packedContaining(
	ctx context.Context, at session.Address, text []byte, last int64,
) (found []session.Message, err error) {
	page := Range{After: last + 1, Descending: true, Limit: exportMessages, Bytes: exportBytes}
	for page.After > 1 && len(found) < foundItems {
		_, messages, err := s.Messages(ctx, at, page)
		if err != nil || len(messages) == 0 {
			return found, err
		}
		for i := range messages {
			if m := &messages[i]; bytes.Contains(m.Body, text) {
				m.Body = bytes.Clone(m.Body) // without the rest of its pack
				found = append(found, *m)
			}
		}
		page.After = messages[len(messages)-1].Seq
	}
	return found, nil
}

// newestOf returns the newest of messages, newest first and each once, as many as WithItemID finds.
func newestOf(messages []session.Message) []session.Message {
	slices.SortFunc(messages, func(a, b session.Message) int { return cmp.Compare(b.Seq, a.Seq) })
	messages = slices.CompactFunc(messages, func(a, b session.Message) bool { return a.Seq == b.Seq })
	return messages[:min(len(messages), foundItems)]
}

// ViewWithSources is a view with what is needed to tell which message of the log each of its messages renders. The
// messages behind the checkpoint are read by SourcePage.
type ViewWithSources struct {
	session.Session
	Through int64           // the last seq that the checkpoint covers
	Body    []byte          // the checkpoint's messages, joined by commas, as zframe blocks
	Size    int             // of Body, decompressed
	Units   json.RawMessage // of the checkpoint, as package compact wrote them
	Damage  error           // why the checkpoint is an older one than the session's newest: see View.Damage
	RawFrom int64           // seq of the newest message of the user or, if that is later, of the last but three

	// Seqs are those of the messages that the checkpoint covers, without removed ones.
	Seqs []int64
}

// From returns the first seq that the log has as it is, after the messages of the checkpoint.
func (v *ViewWithSources) From() int64 { return min(v.RawFrom, v.Through+1) }

// ViewWithSources reads a view without the messages behind its checkpoint. A damaged checkpoint is done without, as
// ViewInto does.
//
// Errors: ErrNotFound, *session.DamagedError.
func (s *Store) ViewWithSources(ctx context.Context, at session.Address) (v ViewWithSources, err error) {
	var newest Version
	err = s.inSnapshot(ctx, at.Tenant, func(tx pgx.Tx) error {
		v.Damage = nil
		if v.Session, err = readSession(ctx, tx, at); err != nil {
			return err
		}
		newest = Version{Key: v.Key, Checkpoint: v.Checkpoint}
		if err := v.readCheckpoint(ctx, tx, at); err != nil {
			return err
		}
		v.Seqs, err = RowsIn(ctx, tx, pgx.RowTo[int64], `
			SELECT seq
			  FROM messages
			 WHERE tenant_id = $1 AND session_key = $2 AND seq > 0 AND seq <= $3 AND removed_at IS NULL
			 ORDER BY seq`, at.Tenant, v.Key, v.Through)
		return err
	})
	if err == nil && v.Damage != nil {
		CountDamage(v.Damage)
		v.Damage = errors.Join(v.Damage, s.askToHeal(ctx, at, newest))
	}
	return v, err
}

// SourcePage reads a piece of the log behind a view's checkpoint: no message before From, none that came after the view
// was read. The bodies are those that the view shows; from RawFrom on they are as they were appended.
//
// Errors: *session.DamagedError.
func (s *Store) SourcePage(
	ctx context.Context, tenant uuid.UUID, v *ViewWithSources, r Range,
) ([]session.Message, error) {
	if r.Descending && r.After == 0 {
		r.After = session.MaxSessionMessages + 1
	}
	return s.readComplete(ctx, tenant, func(tx pgx.Tx) (logOf[session.Message], error) {
		key := session.Key{Tenant: tenant, Key: v.Key}
		return readLog(ctx, tx, key, v.place, scanMessage, sourcePageSQL(r.Descending), tenant, v.Key,
			v.From(), v.LastSeq, r.After, r.Limit, r.Bytes, v.RawFrom)
	})
}

// sourcePageSQL returns the statement of SourcePage. Only messages that are in packs have NULL as their body.
//
//	$1 tenant  $2 session key  $3 first seq  $4 last seq
//	$5 after   $6 limit        $7 bytes      $8 first seq as it was appended
func sourcePageSQL(descending bool) string {
	beyond, direction := `>`, `ASC`
	if descending {
		beyond, direction = `<`, `DESC`
	}
	return `
		SELECT seq, role, format, tokens, coalesce(client_id, ''),
		       CASE WHEN seq >= $8 THEN body ELSE coalesce(view_body, body) END,
		       created_at, removed_at, 0, CASE WHEN seq >= $8 OR view_body IS NULL THEN digest END, 0
		  FROM (SELECT *, row_number() OVER before AS place,
		               sum(` + messageBytes + `) OVER before - ` + messageBytes + ` AS bytes_before
		          FROM messages
		         WHERE tenant_id = $1
		           AND session_key = $2
		           AND seq >= $3
		           AND seq <= $4
		           AND seq > 0
		           AND seq ` + beyond + ` $5
		           AND removed_at IS NULL
		        WINDOW before AS (ORDER BY seq ` + direction + `)
		         ORDER BY seq ` + direction + `
		         LIMIT $6) m
		 WHERE bytes_before <= $7 OR place <= 2
		 ORDER BY seq ` + direction
}

func (v *ViewWithSources) place(m *session.Message) place {
	return place{seq: m.Seq, body: &m.Body, digest: m.Digest, shown: m.Seq < v.RawFrom}
}

var sourcesSQL = statement("view_sources", "{checkpoint}", joinCheckpoint(`$3`))

// readCheckpoint reads the newest checkpoint or, if that is damaged, the newest before it that is whole, if any.
func (v *ViewWithSources) readCheckpoint(ctx context.Context, tx pgx.Tx, at session.Address) error {
	whole, err := v.readOne(ctx, tx, at, v.Checkpoint)
	if err != nil || whole {
		return err
	}
	v.Damage = session.DamagedCheckpoint(v.Checkpoint, errOtherDigest)
	older, err := RowsIn(ctx, tx, pgx.RowTo[int], wholeCheckpointsSQL, at.Tenant, v.Key, v.Checkpoint)
	if err != nil {
		return err
	}
	for _, n := range append(older, 0) {
		v.Checkpoint = n
		if whole, err = v.readOne(ctx, tx, at, n); err != nil || whole {
			break
		}
	}
	return err
}

func (v *ViewWithSources) readOne(ctx context.Context, tx pgx.Tx, at session.Address, n int) (whole bool, err error) {
	var sealed bool
	err = tx.QueryRow(ctx, sourcesSQL, at.Tenant, v.Key, n).
		Scan(&sealed, &whole, &v.Through, &v.Body, &v.Size, &v.Units, &v.RawFrom)
	return err == nil && whole && (sealed || isReadable(v.Body, v.Size) == nil), err
}
