package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Version is what a view depends on, bounds and encoding aside: two views of one version have the same messages.
type Version struct {
	Key        uuid.UUID
	Checkpoint int
	LastSeq    int64
}

// View is what a read returns: the newest checkpoint and the messages after it, as bytes that only need to be joined.
type View struct {
	Version
	Format  session.Format
	Through int64 // the last seq that the checkpoint covers
	Tokens  int64
	System  []byte // Anthropic: the leading system messages, joined by commas
	Body    []byte // the checkpoint's messages, joined by commas, as zframe blocks
	Size    int    // of Body, decompressed
	Tail    []byte // the messages after the checkpoint, joined by commas
}

// AnthropicFormat is session.Anthropic.Number() in SQL, held to it by a test.
const AnthropicFormat = `2`

// pinnedElsewhere is how many leading messages are not among the view's messages: Anthropic's system prompt stands apart.
const pinnedElsewhere = `CASE WHEN s.format = ` + AnthropicFormat + ` THEN s.pinned ELSE 0 END`

// newestCheckpoint joins the newest checkpoint of session s. Row-level security puts a filter between an outer join and
// its table, through which the planner does not see the keys: a plain LEFT JOIN would read all checkpoints of the tenant.
const newestCheckpoint = `LEFT JOIN LATERAL (
	      SELECT tokens, body, body_size, state, units, open_calls, policy, engine_version
	        FROM checkpoints
	       WHERE tenant_id = $1 AND session_key = s.key AND n = s.checkpoint_n
	      OFFSET 0) c ON true`

// ViewSQL reads everything that a view consists of. Bodies are NULL if the caller has this very version already, and the
// checkpoint's if he holds that. The tail is a range with two bounds, so that the planner takes it for the short piece of
// the log that it is; and the lower one must not be a coalesce, behind which row-level security hides the index.
//
//	$1 tenant  $2 session id  $3, $4, $5 the version that the caller has: key, checkpoint, last seq
//	$6, $7 the checkpoint whose body he holds: key, number
const ViewSQL = `
	SELECT s.key, s.checkpoint_n, s.last_seq, s.format, s.context_tokens, s.through_seq, s.checkpoint_size,
	       CASE WHEN NOT ` + known + ` AND NOT (s.key = $6 AND s.checkpoint_n = $7) THEN (
	           SELECT body
	             FROM checkpoints
	            WHERE tenant_id = $1 AND session_key = s.key AND n = s.checkpoint_n)
	       END,
	       CASE WHEN NOT ` + known + ` AND ` + pinnedElsewhere + ` > 0 THEN (
	           SELECT string_agg(m.body, ','::bytea)
	             FROM (SELECT body
	                     FROM messages
	                    WHERE tenant_id = $1 AND session_key = s.key AND seq > 0 AND seq <= s.pinned
	                    ORDER BY seq) m)
	       END,
	       CASE WHEN NOT ` + known + ` THEN (
	           SELECT string_agg(m.body, ','::bytea)
	             FROM (SELECT coalesce(view_body, body) AS body
	                     FROM messages
	                    WHERE tenant_id = $1 AND session_key = s.key
	                      AND seq > greatest(s.through_seq, ` + pinnedElsewhere + `) AND seq <= s.last_seq
	                    ORDER BY seq) m)
	       END
	  FROM sessions s
	 WHERE s.tenant_id = $1 AND s.id = $2`

const known = `(s.key = $3 AND s.checkpoint_n = $4 AND s.last_seq = $5)`

// View reads a session's view in one query, whose cost is that of the view and not of the history. If the session still
// is at the version known, only the version comes back. ErrNotFound.
func (s *Store) View(ctx context.Context, at session.Address, known Version) (v View, err error) {
	err = s.ViewInto(ctx, at, known, &v)
	return v, err
}

// ViewInto is View for a caller who reads many: it reuses the memory of the view that v was before. ErrNotFound; then v
// is not to be read.
func (s *Store) ViewInto(ctx context.Context, at session.Address, known Version, v *View) error {
	held := s.bodies.get(at)
	var format int16
	err := Query(ctx, s.pool, at.Tenant, ViewSQL, viewArgs(at, known, held), one((*[16]byte)(&v.Key), &v.Checkpoint, &v.LastSeq, &format, &v.Tokens,
		&v.Through, &v.Size, (*reused)(&v.Body), (*reused)(&v.System), (*reused)(&v.Tail)))
	if err != nil {
		return err
	}
	v.Format = formatName(format)
	switch {
	case v.Version == known || v.Checkpoint == 0:
	case v.Key == held.key && v.Checkpoint == held.n:
		v.Body = append(v.Body[:0], held.body...)
	default:
		s.bodies.put(at, v)
	}
	return nil
}

// reused is scanned into the memory that it has. NULL leaves it empty.
type reused []byte

// ScanBytes copies what pgx lends.
func (r *reused) ScanBytes(src []byte) error {
	*r = append((*r)[:0], src...)
	return nil
}

func viewArgs(at session.Address, known Version, held heldBody) []any {
	return []any{[16]byte(at.Tenant), at.ID, [16]byte(known.Key), known.Checkpoint, known.LastSeq, [16]byte(held.key), held.n}
}

// Entry is a message of a tail with what was extracted when it came in.
type Entry struct {
	Seq        int64
	Tokens     int64
	StartsUnit bool
	Calls      []string
	Answers    []string
	Body       []byte
}

// Bounded is a view with what is needed to leave its oldest units out.
type Bounded struct {
	View
	Pinned    int64    // leading system messages of the log; Anthropic's are not among Units and Entries
	Units     []byte   // of the checkpoint, as package compact wrote them
	OpenCalls []string // of the checkpoint: ids of calls that it does not answer
	Entries   []Entry  // the tail
}

const entrySQL = `
	SELECT seq, coalesce(view_tokens, tokens), starts_unit, calls, answers, coalesce(view_body, body)
	  FROM messages
	 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3
	 ORDER BY seq`

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	err = row.Scan(&e.Seq, &e.Tokens, &e.StartsUnit, &e.Calls, &e.Answers, &e.Body)
	return e, err
}

// BoundedView reads a view for a caller who wants no more than so many tokens; ErrNotFound.
func (s *Store) BoundedView(ctx context.Context, at session.Address) (b Bounded, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = InTenant(ctx, s.pool, at.Tenant, snapshot, func(tx pgx.Tx) error {
		var format int16
		row := tx.QueryRow(ctx, ViewSQL, viewArgs(at, Version{}, heldBody{})...)
		if err := row.Scan((*[16]byte)(&b.Key), &b.Checkpoint, &b.LastSeq, &format, &b.Tokens, &b.Through, &b.Size, &b.Body, &b.System, &b.Tail); err != nil {
			return notFound(err)
		}
		b.Format = formatName(format)
		if err := b.readUnits(ctx, tx, at); err != nil {
			return err
		}
		from := max(b.Through, b.Apart())
		rows, err := tx.Query(ctx, entrySQL, [16]byte(at.Tenant), [16]byte(b.Key), from)
		if err != nil {
			return err
		}
		b.Entries, err = pgx.CollectRows(rows, scanEntry)
		return err
	})
	return b, err
}

// Apart is how many leading messages stand apart from the view's messages.
func (b *Bounded) Apart() int64 {
	if b.Format == session.Anthropic {
		return b.Pinned
	}
	return 0
}

func (b *Bounded) readUnits(ctx context.Context, tx pgx.Tx, at session.Address) error {
	return tx.QueryRow(ctx, `
		SELECT s.pinned, c.units, c.open_calls
		  FROM sessions s
		  `+newestCheckpoint+`
		 WHERE s.tenant_id = $1 AND s.key = $2`,
		[16]byte(at.Tenant), [16]byte(b.Key)).Scan(&b.Pinned, &b.Units, &b.OpenCalls)
}
