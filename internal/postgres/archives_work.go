package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// ArchiveWork is an archive that a worker makes, or restores.
type ArchiveWork struct {
	session.Key
	ID      uuid.UUID
	attempt uuid.UUID
	Back    bool
	Cold    bool // the session is frozen, or thawed
	Store   persist.Kind
	Parts   int   // that a complete archive has
	Stored  int64 // bytes of those
	count   int64 // of rows that a complete archive has
	digest  []byte
	tables  map[string]int64 // rows by table of the archive that was read
	rows    string           // the sum of the session's rows when it was begun
}

// StartArchive begins an attempt to make an archive, or to restore it, from the beginning: nobody else's attempt
// continues. ErrNotFound if there is nothing to do any more.
func (s *Store) StartArchive(ctx context.Context, key session.Key, id uuid.UUID, back bool) (*ArchiveWork, error) {
	w := &ArchiveWork{Key: key, ID: id, Back: back, attempt: uuid.New()}
	state := session.Archiving
	if back {
		state = session.Restoring
	}
	err := s.Seeing(AllSessions).underFamilyLock(ctx, key, func(tx pgx.Tx, _ lockedSession) error {
		err := tx.QueryRow(ctx, `
			UPDATE session_archives
			   SET attempt = $5, done = 0
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND state = $4
			RETURNING NOT (SELECT archived FROM sessions WHERE tenant_id = $1 AND key = $2),
			          store, parts, stored, rows, digest`, key.Tenant, key.Key, id, state, w.attempt).
			Scan(&w.Cold, &w.Store, &w.Parts, &w.Stored, &w.count, &w.digest)
		if err != nil {
			return NotFound(err)
		}
		if back {
			_, err := deleteArchived(ctx, tx, key)
			return err
		}
		if w.rows, err = sumOfRows(ctx, tx, key); err != nil {
			return err
		}
		w.Store = s.results.ForArchives()
		err = Exec(ctx, tx, `
			UPDATE session_archives
			   SET store = $3, objects = '{}', sizes = '{}', view_end = NULL
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key, w.Store)
		if err != nil {
			return err
		}
		return Exec(ctx, tx, `
			DELETE FROM archive_parts
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	})
	return w, err
}

// ArchiveCursor is how far the rows of a session are read.
type ArchiveCursor struct {
	table int
	after []string // the key of the last row; nil at the beginning of the table
}

// archivedRow is a row on its way into an archive.
type archivedRow struct {
	texts []*string
	key   []string
	whole bool
	bytes *persist.Row // where its column body is, if that may lie outside
}

// FillPart reads the next rows of a session into a part until it is full, and reports whether there are no more.
//
// Errors: ErrResultStore, *session.DamagedError.
func (s *Store) FillPart(ctx context.Context, w *ArchiveWork, at *ArchiveCursor, part *frozen.Writer) (bool, error) {
	for !part.Full() {
		if at.table == len(archivedTables) {
			return true, nil
		}
		of, rows, err := s.archivedPage(ctx, w.Key, at)
		if err != nil {
			return false, err
		}
		if len(rows) == 0 {
			*at = ArchiveCursor{table: at.table + 1}
			continue
		}
		if err := s.addBytes(ctx, w.Key, of, rows); err != nil {
			return false, err
		}
		for i := range rows {
			codings := archivedTables[at.table].codings
			if !rows[i].whole {
				codings = nil
			}
			if err := part.Add(of, rows[i].texts, codings); err != nil {
				return false, err
			}
			rows[i].texts = nil
		}
		at.after = rows[len(rows)-1].key
	}
	return false, nil
}

// archivedPage reads the next rows of a table, with where their bytes are if these may lie outside.
func (s *Store) archivedPage(ctx context.Context, key session.Key, at *ArchiveCursor) (
	of frozen.Table, rows []archivedRow, err error,
) {
	t := &archivedTables[at.table]
	err = s.Seeing(AllSessions).inSnapshot(ctx, key.Tenant, func(tx pgx.Tx) error {
		if err := Exec(ctx, tx, asText); err != nil {
			return err
		}
		columns, err := t.columns(ctx, tx)
		if err != nil {
			return err
		}
		var sql string
		sql, of = t.pageSQL(columns, at.after)
		args := []any{key.Tenant, key.Key}
		for _, value := range at.after {
			args = append(args, value)
		}
		rows, err = RowsIn(ctx, tx, t.scan, sql, args...)
		return err
	})
	return of, rows, err
}

func (t *archivedTable) scan(row pgx.CollectableRow) (r archivedRow, err error) {
	dest := []any{&r.texts, &r.key, &r.whole}
	if t.mayBeOutside() {
		r.bytes = &persist.Row{}
		c := r.bytes
		dest = append(dest, &c.Codec, &c.Body, &c.Store, &c.Prefix, &c.Object, &c.ObjectAt, &c.ObjectSize)
	}
	return r, row.Scan(dest...)
}

// addBytes reads the bytes of chunks and packs, wherever they lie, and adds them to their rows as the last column.
func (s *Store) addBytes(ctx context.Context, key session.Key, of frozen.Table, rows []archivedRow) error {
	if rows[0].bytes == nil {
		return nil
	}
	places := make([]persist.Row, len(rows))
	for i := range rows {
		places[i] = *rows[i].bytes
	}
	found, err := s.results.Load(ctx, key.Tenant, places)
	if persist.IsMissing(err) {
		err = &session.DamagedError{What: "what lies outside", Cause: err}
	}
	if err != nil {
		return err
	}
	digest := slices.Index(of.Columns, "digest")
	for i := range rows {
		rows[i].texts = append(rows[i].texts, new(`\x`+hex.EncodeToString(found[i].Bytes)))
		if of.Name == "message_packs" && places[i].Object != nil { // PostgreSQL could not compare
			sum := sha256.Sum256(found[i].Bytes)
			rows[i].whole = *rows[i].texts[digest] == `\x`+hex.EncodeToString(sum[:])
		}
	}
	return nil
}

// AddPart puts a part of an archive into the store and notes it. ErrEnded if the attempt is not the archive's any more.
func (s *Store) AddPart(ctx context.Context, w *ArchiveWork, n int, part frozen.Part) error {
	object, err := s.results.PutObject(ctx, w.Key, w.Store, part.Body)
	if err != nil {
		return err
	}
	err = s.Seeing(AllSessions).InTenant(ctx, w.Tenant, func(tx pgx.Tx) error {
		if err := w.goOn(ctx, tx, part.Rows); err != nil {
			return err
		}
		if object == nil {
			return Exec(ctx, tx, `
				INSERT INTO archive_parts (tenant_id, session_key, n, body)
				VALUES ($1, $2, $3, $4)`, w.Tenant, w.Key.Key, n, part.Body)
		}
		return Exec(ctx, tx, `
			UPDATE session_archives
			   SET objects = objects || $3::uuid, sizes = sizes || $4::integer,
			       view_end = coalesce(view_end, nullif($5::integer, 0))
			 WHERE tenant_id = $1 AND session_key = $2`,
			w.Tenant, w.Key.Key, object, len(part.Body), part.ViewEnd)
	})
	if errors.Is(err, session.ErrEnded) && object != nil {
		s.ForgetObjects(ctx, w.Tenant, []AwayObject{{w.Store, w.Key.Key, *object}})
	}
	return err
}

// goOn counts rows that are done, and keeps another attempt from beginning until the transaction ends; ErrEnded. It
// reads again whether the archive is that of a cold session: somebody may have asked for it meanwhile.
//
// The session's row comes before that of its archive, as for everybody else: the foreign keys of what is restored would
// lock it later, and an erasure, which has it, waits for the archive's row.
func (w *ArchiveWork) goOn(ctx context.Context, tx pgx.Tx, rows int64) error {
	archived, err := RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT archived
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2
		   FOR KEY SHARE`, w.Tenant, w.Key.Key)
	if errors.Is(err, session.ErrNotFound) {
		return session.ErrEnded
	}
	if err != nil {
		return err
	}
	w.Cold = !archived
	return ExecOne(ctx, tx, session.ErrEnded, `
		UPDATE session_archives
		   SET done = done + $5
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND attempt = $4`,
		w.Tenant, w.Key.Key, w.ID, w.attempt, rows)
}

// EachPart calls do with each part of an archive, and returns their number and the digest of their digests.
//
// Errors: ErrNotFound if the archive is gone; *session.DamagedError if the parts of a complete archive are not what was
// written, maybe after do was called; ErrResultStore, and those of do.
func (s *Store) EachPart(
	ctx context.Context, w *ArchiveWork, do func(body []byte) error,
) (parts int, digest []byte, err error) {
	var objects []uuid.UUID
	var sizes []int
	err = s.query(ctx, w.Tenant, `
		SELECT objects, sizes
		  FROM session_archives
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3`,
		[]any{w.Tenant, w.Key.Key, w.ID}, one(&objects, &sizes))
	if err != nil {
		return 0, nil, err
	}
	sum := sha256.New()
	for ; len(objects) == 0 || parts < len(objects); parts++ {
		var body []byte
		if len(objects) > 0 {
			body, err = s.results.GetPart(ctx, w.Key, w.Store, objects[parts], 0, sizes[parts])
		} else {
			body, err = QueryRow(ctx, s, w.Tenant, pgx.RowTo[[]byte], `
				SELECT body
				  FROM archive_parts
				 WHERE tenant_id = $1 AND session_key = $2 AND n = $3`, w.Tenant, w.Key.Key, parts)
			if errors.Is(err, session.ErrNotFound) {
				break
			}
		}
		if err == nil {
			is := sha256.Sum256(body)
			sum.Write(is[:])
			err = do(body)
		}
		if errors.Is(err, frozen.ErrFormat) {
			err = &session.DamagedError{What: "the archive", Cause: err}
		}
		if err != nil {
			return parts, nil, err
		}
	}
	digest = sum.Sum(nil)
	if w.digest != nil && !bytes.Equal(digest, w.digest) {
		return parts, digest, &session.DamagedError{What: "the archive"}
	}
	return parts, digest, nil
}

// CheckArchive reads all parts of an archive, and returns their number, the digest of their digests and the rows that
// they have by table. It calls told with each part.
//
// Errors: *session.DamagedError, ErrResultStore.
func (s *Store) CheckArchive(ctx context.Context, w *ArchiveWork, told ...func(body []byte)) (
	parts int, digest []byte, tables map[string]int64, err error,
) {
	tables = map[string]int64{}
	parts, digest, err = s.EachPart(ctx, w, func(body []byte) error {
		for _, tell := range told {
			tell(body)
		}
		return frozen.Read(body, func(of *frozen.Table, _ frozen.Row) error {
			tables[of.Name]++
			return nil
		})
	})
	return parts, digest, tables, err
}

// ExpectWhole reads all parts of a complete archive, and calls told with each.
//
// Errors: *session.DamagedError if they are not what was written; ErrResultStore.
func (s *Store) ExpectWhole(ctx context.Context, w *ArchiveWork, told ...func(body []byte)) error {
	parts, _, tables, err := s.CheckArchive(ctx, w, told...)
	if err != nil {
		return err
	}
	rows := int64(0)
	for _, n := range tables {
		rows += n
	}
	if parts != w.Parts || rows != w.count {
		return &session.DamagedError{What: "the archive"}
	}
	w.tables = tables
	return nil
}

// VerifyArchive reads a complete archive, also one that a worker restores the session from. It returns the session's
// id, and how many bytes the archive has.
//
// Errors: ErrNotFound if the session has none; *session.DamagedError, ErrResultStore.
func (s *Store) VerifyArchive(ctx context.Context, key session.Key) (id string, stored int64, err error) {
	w := &ArchiveWork{Key: key}
	read := func() error {
		return s.Seeing(AllSessions).query(ctx, key.Tenant, `
			SELECT s.id, a.id, a.store, a.parts, a.rows, a.digest, a.stored
			  FROM session_archives a
			  JOIN sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
			 WHERE a.tenant_id = $1 AND a.session_key = $2 AND a.state IN ('archived', 'restoring')`,
			[]any{key.Tenant, key.Key}, one(&id, &w.ID, &w.Store, &w.Parts, &w.count, &w.digest, &stored))
	}
	if err := read(); err != nil {
		return "", 0, err
	}
	was := w.ID
	err = s.ExpectWhole(ctx, w)
	if err != nil {
		gone := read() // it was restored or erased meanwhile
		if gone == nil && w.ID != was {
			gone = session.ErrNotFound // and archived again
		}
		if gone != nil {
			return "", 0, gone
		}
	}
	return id, stored, err
}

// FailArchive notes why an attempt has failed. A session that was thawed is cold again, so that the next request tries
// at once; the objects of what was restored are returned. ErrEnded if another attempt has taken over; ErrNotFound.
func (s *Store) FailArchive(ctx context.Context, w *ArchiveWork, why string) (objects []AwayObject, err error) {
	err = s.Seeing(AllSessions).underFamilyLock(ctx, w.Key, func(tx pgx.Tx, _ lockedSession) error {
		if err := w.goOn(ctx, tx, 0); err != nil {
			return err
		}
		again := w.Cold && w.Back
		if again {
			if objects, err = deleteArchived(ctx, tx, w.Key); err != nil {
				return err
			}
		}
		return Exec(ctx, tx, `
			UPDATE session_archives
			   SET state = CASE WHEN $3 THEN 'archived' ELSE state END,
			       attempt = CASE WHEN $3 THEN NULL ELSE attempt END,
			       error = $4, failed_at = now()
			 WHERE tenant_id = $1 AND session_key = $2`, w.Tenant, w.Key.Key, again, Text(why))
	})
	return objects, err
}

// AwayObject is an object that something no longer names.
type AwayObject struct {
	Store  persist.Kind
	Prefix uuid.UUID // the session under whose prefix it lies
	Object uuid.UUID
}

// ForgetObjects deletes those of some objects that nothing names any more. What it cannot delete, a collection finds
// later.
func (s *Store) ForgetObjects(ctx context.Context, tenant uuid.UUID, objects []AwayObject) {
	prefixes, ids := make([]uuid.UUID, len(objects)), make([]uuid.UUID, len(objects))
	for i := range objects {
		prefixes[i], ids[i] = objects[i].Prefix, objects[i].Object
	}
	unnamed, err := s.unnamed(ctx, tenant, prefixes, ids)
	if err != nil {
		return
	}
	for _, o := range objects {
		if slices.Contains(unnamed, o.Object) {
			_ = s.results.Forget(ctx, session.Key{Tenant: tenant, Key: o.Prefix}, o.Store, []uuid.UUID{o.Object})
		}
	}
}

// modelUse is what language models cost for a session, by the answers that are kept.
const modelUseSQL = `
	SELECT jsonb_build_object('calls', count(*), 'input', coalesce(sum(input_tokens), 0),
	                          'output', coalesce(sum(output_tokens), 0), 'cost', coalesce(sum(cost_micros), 0))
	  FROM model_answers
	 WHERE tenant_id = $1 AND session_key = $2 AND answer IS NOT NULL`

func modelUseOf(ctx context.Context, tx pgx.Tx, key session.Key) (json.RawMessage, error) {
	return RowIn(ctx, tx, pgx.RowTo[json.RawMessage], modelUseSQL, key.Tenant, key.Key)
}
