package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// Version is what a view depends on, bounds and encoding aside: two views of one version have the same messages.
type Version struct {
	Key        uuid.UUID
	Checkpoint int
	LastSeq    int64
}

// View is what a read returns: the newest checkpoint and the messages after it, as bytes that only need to be joined, and
// what tells whether they are valid for their provider as they are.
type View struct {
	Version
	Format  session.Format
	Model   string
	Through int64 // the last seq that the checkpoint covers
	Tokens  int64
	System  []byte // the leading system messages of a format that takes them apart, joined by commas
	Body    []byte // the checkpoint's messages, joined by commas, as zframe blocks
	Size    int    // of Body, decompressed
	Tail    []byte // the messages after the checkpoint, joined by commas

	SystemFacts, TailFacts []byte // of those messages, as factSQL writes them
	Walk                   []byte // of the checkpoint; empty for not known
	OpenCalls              []byte // ids of calls that the checkpoint leaves open, each ended by ASCII 29
}

// ApartFormats are the numbers of the formats whose providers take the system prompt apart, held to wire.Apart by a test.
const ApartFormats = `(2, 4)`

// pinnedElsewhere is how many leading messages are not among the view's messages, because the system prompt stands apart.
const pinnedElsewhere = `CASE WHEN s.format IN ` + ApartFormats + ` THEN s.pinned ELSE 0 END`

// factSQL is what was found in message m when it was appended, as wire.Walk reads it: fields ended by ASCII 31, of which the
// last two are lists of texts that ASCII 29 separates. It is written when the message is, because making it at every read
// would cost more than all else that a read does with a message.
func factSQL(format string) string {
	return `concat_ws(E'\x1f', ` + format + `::smallint, m.flags, m.role, translate(substr(m.calls, 2), E'\x1f', E'\x1d'),
		                 translate(substr(m.answers, 2), E'\x1f', E'\x1d'), '')`
}

// knownFact is a message's fact, or for one of before there were facts one that Walk does not know.
const knownFact = `coalesce(fact, '?')`

// newestCheckpoint joins the newest checkpoint of session s. Row-level security puts a filter between an outer join and
// its table, through which the planner does not see the keys: a plain LEFT JOIN would read all checkpoints of the tenant.
const newestCheckpoint = `LEFT JOIN LATERAL (
	      SELECT tokens, body, body_size, state, units, open_calls, policy, engine_version
	        FROM checkpoints
	       WHERE tenant_id = $1 AND session_key = s.key AND n = s.checkpoint_n
	      OFFSET 0) c ON true`

// ViewSQL reads everything that a view consists of. Bodies are NULL if the caller has this very version already, and the
// checkpoint's if he holds that. The tail is a range with two bounds, so that the planner takes it for the short piece of
// the log that it is; and the lower one must not be a coalesce, behind which row-level security hides the index. Where
// no message stands apart, the log is not searched for one.
//
//	$1 tenant  $2 session id  $3, $4, $5 the version that the caller has: key, checkpoint, last seq
//	$6, $7 the checkpoint whose body he holds: key, number
const ViewSQL = `
	SELECT s.key, s.checkpoint_n, s.last_seq, s.format, s.model, s.context_tokens, s.through_seq, s.checkpoint_size,
	       c.body, c.walk, array_to_string(c.open_calls, E'\x1d'), pinned.bodies, pinned.facts, tail.bodies, tail.facts
	  FROM sessions s
	  LEFT JOIN LATERAL (
	       SELECT body, walk, open_calls
	         FROM checkpoints
	        WHERE tenant_id = $1 AND session_key = s.key AND n = s.checkpoint_n
	          AND NOT ` + known + ` AND NOT (s.key = $6 AND s.checkpoint_n = $7)
	       OFFSET 0) c ON true
	  LEFT JOIN LATERAL (
	       SELECT string_agg(m.body, ','::bytea) AS bodies, string_agg(m.fact, E'\x1e') AS facts
	         FROM (SELECT body, ` + knownFact + ` AS fact
	                 FROM messages
	                WHERE tenant_id = $1 AND session_key = s.key AND seq > 0 AND seq <= ` + pinnedElsewhere + `
	                  AND ` + pinnedElsewhere + ` > 0 AND removed_at IS NULL AND NOT ` + known + `
	                ORDER BY seq) m
	       OFFSET 0) pinned ON true
	  LEFT JOIN LATERAL (
	       SELECT string_agg(m.body, ','::bytea) AS bodies, string_agg(m.fact, E'\x1e') AS facts
	         FROM (SELECT coalesce(view_body, body) AS body, ` + knownFact + ` AS fact
	                 FROM messages
	                WHERE tenant_id = $1 AND session_key = s.key
	                  AND seq > greatest(s.through_seq, ` + pinnedElsewhere + `) AND seq <= s.last_seq
	                  AND removed_at IS NULL AND NOT ` + known + `
	                ORDER BY seq) m
	       OFFSET 0) tail ON true
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
	if err := query(ctx, s.pool, at.Tenant, ViewSQL, viewArgs(at, known, held), one(v.columns(&format)...)); err != nil {
		return err
	}
	v.Format = formatName(format)
	switch {
	case v.Version == known || v.Checkpoint == 0:
	case v.Key == held.key && v.Checkpoint == held.n:
		v.Body = append(v.Body[:0], held.body...)
		v.Walk = append(v.Walk[:0], held.walk...)
		v.OpenCalls = append(v.OpenCalls[:0], held.open...)
	default:
		s.bodies.put(at, v)
	}
	return nil
}

// columns are those of ViewSQL.
func (v *View) columns(format *int16) []any {
	return []any{
		(*[16]byte)(&v.Key), &v.Checkpoint, &v.LastSeq, format, &v.Model, &v.Tokens, &v.Through, &v.Size,
		(*reused)(&v.Body), (*reused)(&v.Walk), (*reused)(&v.OpenCalls), (*reused)(&v.System), (*reused)(&v.SystemFacts), (*reused)(&v.Tail), (*reused)(&v.TailFacts),
	}
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
