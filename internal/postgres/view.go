package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Version is what a view depends on, bounds and encoding aside: two views of one version have the same messages.
type Version struct {
	Key        uuid.UUID
	Checkpoint int
	LastSeq    int64
}

// View is a session's view as it is stored: a checkpoint and the messages after it. Bodies are bytes that only need
// to be joined; the shapes tell whether they are valid for their provider as they are, and what each message is.
type View struct {
	Version
	Format  session.Format
	Model   string
	Through int64 // the last seq that the checkpoint covers
	Tokens  int64
	Unbound int64  // the last seq of which it is not known that the view before it still is what it was
	Window  int64  // the session's window, by the provider's count
	Room    int64  // how many tokens have room in the window beside the overhead: session.Session.Room
	Pinned  int64  // how many system messages lead the log
	System  []byte // those of a format with a separate system prompt, joined by commas
	Body    []byte // the checkpoint's messages, joined by commas, as zframe blocks
	Size    int    // of Body, decompressed
	Tail    []byte // the messages after the checkpoint, joined by commas

	// Guess is the session's calibration as long as no usage was reported, after that 0.
	Guess float64

	TailBytes int64 // of the messages after the checkpoint, as they were appended

	// LeftOut reports that the view is larger than its reader has asked for, so that it has no messages, no shapes and
	// nothing of the checkpoint but its size: see Store.OpenView and Store.FillView.
	LeftOut bool

	// Loose are the messages after the checkpoint, of a view that was filled: it has neither Tail nor TailShapes.
	Loose []TailMessage

	// End is set of a view that has only the newest of the messages after the checkpoint, which are Loose.
	End *End

	// IsStretch reports that Loose are a stretch of the tail: see Store.FillStretch.
	IsStretch bool

	// Bodies are the messages of a large view that was made, which has no Tail.
	Bodies [][]byte

	// Cold reports that the view was read from the archive of a cold session, whose rows are not there.
	Cold bool

	// Damage is why an older view stands in for the newest one: a *session.DamagedError, and what else went wrong. It
	// is nil for the view that was asked for.
	Damage error

	SystemShapes, TailShapes []byte // of those messages, for wire.ParseShapes
	Validator                []byte // state of the fast validator behind the checkpoint; empty for not known
	OpenCalls                []byte // ids of calls that the checkpoint leaves open, separated by ASCII 29
	Units                    []byte // of the checkpoint, as package compact wrote them
	Proof                    []byte // of the checkpoint, if it was read: whether it has a digest, and that

	sql  string // the statement that read the view, and its arguments
	args []any
}

// Bytes returns how many stored bytes a view is made from.
func (v *View) Bytes() int64 {
	tail := v.TailBytes
	if v.End != nil {
		tail = v.End.Bytes
	}
	return int64(len(v.System)+v.Size) + tail
}

// ViewRead is how a view is read.
type ViewRead struct {
	Known     Version // which the caller has: a view at this version has no messages
	MaxTokens int64   // the shapes of a view of more have the tokens of its messages; 0 for no limit
	Largest   int64   // bytes of the checkpoint and of what is after it; a larger view is left out; 0 for no limit
}

// Separate returns the last seq of the separate system prompt, 0 if there is none: PinnedElsewhere of the view.
func (v *View) Separate() int64 {
	if provider.SeparatesSystem(v.Format) {
		return v.Pinned
	}
	return 0
}

// PinnedElsewhere is how many leading messages are not among the view's messages, because their format has a separate
// system prompt.
var PinnedElsewhere = `CASE WHEN s.format IN (` + separatingSystem() + `) THEN s.pinned ELSE 0 END`

func separatingSystem() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(provider.SeparatingSystem()), " ", ", "), "[]")
}

const (
	// roomSQL is session.Session.Room of a session s.
	roomSQL = `greatest(least(s.window_tokens, floor((s.window_tokens - s.unseen_tokens) / s.calibration::float8))
	       - s.overhead_tokens, 0)::bigint`

	// overWindow is the condition that the view of a session s does not fit into its window.
	overWindow = `s.context_tokens > ` + roomSQL
)

// newestCheckpoint joins the newest checkpoint of session s. Row-level security puts a filter between an outer join
// and its table, through which the planner does not see the keys: a plain LEFT JOIN would read all checkpoints of the
// tenant.
var newestCheckpoint = joinCheckpoint(`s.checkpoint_n`)

// joinCheckpoint joins a checkpoint of session s as c, and what is whole of it: both are NULL if it is not there.
func joinCheckpoint(n string) string {
	return `LEFT JOIN LATERAL (
	      SELECT n, through_seq, tokens, body, body_size, state, units, open_calls, policy, engine_version,
	             forgotten, body_digest IS NOT NULL AS sealed, ` + wholeSQL(`k`) + ` AS whole,
	             state_digest IS NULL OR state_digest = sha256(state) AS state_whole
	        FROM checkpoints k
	       WHERE tenant_id = $1 AND session_key = s.key AND n = ` + n + `
	      OFFSET 0) c ON true`
}

// The statements of views. They read the bytes that a view consists of, and what tells whether they are valid and what
// each message is. Bodies are NULL if the caller has this very version, and the checkpoint's also if the caller holds
// it.
//
//	$1 tenant  $2 session id  $3, $4, $5 the version that the caller has: key, checkpoint, last seq
//	$6, $7 the checkpoint that the caller holds: key, number  $8 the most tokens that the view may have
//	$9 the most bytes that the view may have
//	$10 the number of an older checkpoint, 0 for none  $11 of the log itself, in which nothing was capped
//	$12 without the messages after the checkpoint  $13 the seq as of which, or NULL  $14 the most pinned messages
var (
	newestView = viewStatement(`sessions`, `removed_at IS NULL`,
		`coalesce(view_body, body)`, `coalesce(view_tokens, tokens)`, `shape`)
	olderView = viewStatement(olderSession, olderPresent,
		`CASE WHEN $11 THEN body ELSE coalesce(view_body, body) END`, olderTokens,
		`CASE WHEN $11 THEN `+loggedShape+` ELSE shape END`)
)

const (
	olderTokens  = `CASE WHEN $11::boolean THEN tokens ELSE coalesce(view_tokens, tokens) END`
	olderPresent = `(removed_at IS NULL OR removed_seq > $13::bigint)`
)

// loggedShape is the shape of a message of which the log itself is read, not what views show of it: its sum has the
// digest.
const loggedShape = `coalesce(substring(shape FROM E'^(?:[^\x1f]*\x1f){5}') || to_hex(octet_length(body)) || '.'
	                               || encode(digest, 'hex') || E'\x1f', shape)`

// olderSession is a session as it would be if an older checkpoint were its newest.
var olderSession = `(
	       SELECT s.*, s.checkpoint_tokens + head.tokens + tail.tokens AS context_tokens,
	              head.bytes + tail.bytes AS tail_bytes
	         FROM (SELECT o.tenant_id, o.id, o.key, o.format, o.model, o.gap_seq, o.unbound_seq, o.last_usage,
	                      least(o.pinned, $14::bigint) AS pinned,
	                      o.window_tokens, o.overhead_tokens, o.calibration, o.unseen_tokens,
	                      coalesce(c.n, 0) AS checkpoint_n, coalesce(c.tokens, 0) AS checkpoint_tokens,
	                      coalesce(c.through_seq, 0) AS through_seq, coalesce(c.body_size, 0) AS checkpoint_size,
	                      CASE WHEN $12::boolean THEN coalesce(c.through_seq, 0)
	                           ELSE coalesce($13::bigint, o.last_seq) END AS last_seq
	                 FROM sessions o
	                 LEFT JOIN LATERAL (
	                      SELECT n, tokens, through_seq, body_size
	                        FROM checkpoints
	                       WHERE tenant_id = $1 AND session_key = o.key AND n = $10::integer
	                      OFFSET 0) c ON true
	                WHERE o.tenant_id = $1 AND o.id = $2) s
	        CROSS JOIN LATERAL (` + olderSizes(`0`, PinnedElsewhere) + `) head
	        CROSS JOIN LATERAL (` +
	olderSizes(`greatest(s.through_seq, `+PinnedElsewhere+`)`, `s.last_seq`) + `) tail)`

// olderSizes adds the messages of olderSession up that are behind a seq and not behind another.
func olderSizes(after, through string) string {
	return `
	              SELECT coalesce(sum(` + olderTokens + `), 0)::bigint AS tokens,
	                     coalesce(sum(` + messageBytes + `), 0)::bigint AS bytes
	                FROM messages
	               WHERE tenant_id = $1 AND session_key = s.key AND ` + olderPresent + `
	                 AND seq > ` + after + ` AND seq <= ` + through
}

// leftOut is whether the messages of a view are not read: its reader has them, they are too many bytes, or there are
// more of the pinned head, which is in no count of bytes, than a system prompt has.
const leftOut = `(` + known + ` OR s.tail_bytes + s.checkpoint_size > $9
	                  OR s.pinned > ` + manyPinnedSQL + ` AND $9 < 9223372036854775807)`

// viewColumns are the columns of a view that its session's row has, and rowColumns is their number.
var viewColumns = `s.key, s.checkpoint_n, s.last_seq, s.format, s.model, s.context_tokens,
	       s.tail_bytes, s.through_seq, s.window_tokens, s.checkpoint_size, ` + roomSQL + `, s.pinned, s.unbound_seq,
	       CASE WHEN s.last_usage IS NULL THEN s.calibration ELSE 0 END`

const rowColumns = 14

// viewStatement takes what the session is read from, which messages are present, and what a view has of a message. The
// tail is a range with two bounds, so that the planner takes it for the short part of the log that it is; and for the
// newest view the lower one must not be a coalesce, behind which row-level security hides the index. Where no message
// stands elsewhere, the log is not searched for one.
//
// A message is named, by its seq and its tokens before its shape, only in a view that must be cut or whose messages
// do not follow one another without a gap. Everywhere else a seq is known by counting, and naming messages would cost
// every read a tenth of PostgreSQL's time.
func viewStatement(sessions, present, body, tokens, shape string) string {
	messages := func(gap string) string {
		return `SELECT string_agg(m.body, ','::bytea) AS bodies, string_agg(m.shape, E'\x1e') AS shapes
	         FROM (SELECT ` + body + ` AS body,
	                      CASE WHEN s.context_tokens > $8 OR ` + gap + `
	                           THEN concat_ws(E'\x1c', seq, ` + tokens + `, ` + shape + `)
	                           ELSE ` + shape + `
	                      END AS shape
	                 FROM messages
	                WHERE tenant_id = $1 AND session_key = s.key AND ` + present + ` AND NOT ` + leftOut
	}
	return `
	SELECT ` + viewColumns + `,
	       c.body, c.proof, c.validator_state, array_to_string(c.open_calls, E'\x1d'), c.units::text,
	       pinned.bodies, pinned.shapes, tail.bodies, tail.shapes
	  FROM ` + sessions + ` s
	  LEFT JOIN LATERAL (
	       SELECT body, ` + proofSQL + ` AS proof, validator_state, open_calls, units
	         FROM checkpoints
	        WHERE tenant_id = $1 AND session_key = s.key AND n = s.checkpoint_n
	          AND NOT ` + leftOut + ` AND NOT (s.key = $6 AND s.checkpoint_n = $7)
	       OFFSET 0) c ON true
	  LEFT JOIN LATERAL (
	       ` + messages(`s.gap_seq > 0`) + `
	                  AND seq > 0 AND seq <= ` + PinnedElsewhere + ` AND ` + PinnedElsewhere + ` > 0
	                ORDER BY seq) m
	       OFFSET 0) pinned ON true
	  LEFT JOIN LATERAL (
	       ` + messages(`s.gap_seq > s.through_seq`) + `
	                  AND seq > greatest(s.through_seq, ` + PinnedElsewhere + `) AND seq <= s.last_seq
	                ORDER BY seq) m
	       OFFSET 0) tail ON true
	 WHERE s.tenant_id = $1 AND s.id = $2`
}

const known = `(s.key = $3 AND s.checkpoint_n = $4 AND s.last_seq = $5)`

// View reads a session's view in one query, whose cost is that of the view and not of the history. If the session still
// is at the version known, only the version comes back. ErrNotFound.
func (s *Store) View(ctx context.Context, at session.Address, known Version) (v View, err error) {
	err = s.viewInto(ctx, at, ViewRead{Known: known}, &v)
	return v, err
}

// Unbind records that somebody has read less than the whole view when a seq was the last: see View.Unbound. A database
// that cannot be written has nothing recorded.
func (s *Store) Unbind(ctx context.Context, at session.Address, seq int64) error {
	err := s.InTenant(ctx, at.Tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			UPDATE sessions
			   SET unbound_seq = $3
			 WHERE tenant_id = $1 AND id = $2 AND unbound_seq < $3`, at.Tenant, at.ID, seq)
	})
	if IsReadOnly(err) {
		return nil
	}
	return err
}

// ViewInto does what View does and reuses the memory of the view that v was before. If the newest checkpoint is
// damaged, v is the newest whole view before it, and has Damage. The view of a cold session may be read from its
// archive. After an error, such as ErrNotFound or a *session.DamagedError, v must not be read.
func (s *Store) ViewInto(ctx context.Context, at session.Address, read ViewRead, v *View) error {
	err := s.viewInto(ctx, at, read, v)
	if errors.Is(err, session.ErrNotFound) {
		err = s.coldViewInto(ctx, at, read, v)
	}
	return err
}

func (s *Store) viewInto(ctx context.Context, at session.Address, read ViewRead, v *View) error {
	held := s.bodies.get(at)
	if err := s.readView(ctx, at, newestView, viewArgs(at, read, held), v); err != nil {
		return err
	}
	return s.withBody(ctx, at, read, held, v)
}

// withBody gives a view the body of its checkpoint that the process holds, or holds the one that was read.
func (s *Store) withBody(ctx context.Context, at session.Address, read ViewRead, held heldBody, v *View) error {
	switch {
	case v.Version == read.Known || v.Checkpoint == 0 || v.LeftOut:
	case v.Key == held.key && v.Checkpoint == held.n:
		held.copyTo(v)
	default:
		if damaged := v.checkCheckpoint(); damaged != nil {
			return s.standIn(ctx, at, damaged, v)
		}
		s.hold(at, v)
	}
	return nil
}

// everyMessage is a limit that no view is within, so that all of its messages are named.
const everyMessage = -1

// manyPinned is the length of a pinned head above which a view is left out.
const (
	manyPinned    = 16
	manyPinnedSQL = `16`
)

func viewArgs(at session.Address, read ViewRead, held heldBody) []any {
	return []any{
		[16]byte(at.Tenant), at.ID, [16]byte(read.Known.Key), read.Known.Checkpoint, read.Known.LastSeq,
		[16]byte(held.key), held.n, cmp.Or(read.MaxTokens, math.MaxInt64), cmp.Or(read.Largest, math.MaxInt64),
	}
}

func (s *Store) readView(ctx context.Context, at session.Address, sql string, args []any, v *View) error {
	v.begin(sql, args)
	if err := s.query(ctx, at.Tenant, sql, args, one(v.columns()...)); err != nil {
		return err
	}
	return s.finishRead(ctx, at, v)
}

// finishRead reads what of a view is in packs, and checks its messages.
func (s *Store) finishRead(ctx context.Context, at session.Address, v *View) error {
	largest := v.args[largestArg].(int64)
	v.LeftOut = v.TailBytes+int64(v.Size) > largest || v.Pinned > manyPinned && largest < math.MaxInt64
	if v.packed() {
		if err := s.readPackedView(ctx, at, v.sql, v.args, v); err != nil {
			return err
		}
	}
	return v.checkMessages()
}

// begin forgets what another read has set in v.
func (v *View) begin(sql string, args []any) {
	v.sql, v.args = sql, args
	v.Loose, v.Bodies = nil, nil
	v.End, v.Damage = nil, nil
	v.IsStretch, v.Cold = false, false
}

// checkMessages returns a *session.DamagedError if a message of the log is not what was stored.
func (v *View) checkMessages() error {
	separate := v.Separate()
	if err := (logged{v.System, v.SystemShapes, 0, separate}).check(); err != nil {
		return err
	}
	return logged{v.Tail, v.TailShapes, max(v.Through, separate), v.LastSeq}.check()
}

// columns returns where the columns of viewStatement are scanned to. The units' memory is never reused, for the cache
// holds it without a copy.
func (v *View) columns() []any {
	return []any{
		(*[16]byte)(&v.Key), &v.Checkpoint, &v.LastSeq, &v.Format, &v.Model, &v.Tokens,
		&v.TailBytes, &v.Through, &v.Window, &v.Size, &v.Room, &v.Pinned, &v.Unbound,
		&v.Guess,
		(*reused)(&v.Body), (*reused)(&v.Proof), (*reused)(&v.Validator), (*reused)(&v.OpenCalls), &v.Units,
		(*reused)(&v.System), (*reused)(&v.SystemShapes), (*reused)(&v.Tail), (*reused)(&v.TailShapes),
	}
}

// reused is scanned into the memory that it has. NULL leaves it empty.
type reused []byte

// ScanBytes copies what pgx lends.
func (r *reused) ScanBytes(src []byte) error {
	*r = append((*r)[:0], src...)
	return nil
}

// Older names a view that is not the session's newest.
type Older struct {
	Checkpoint int     // with which it begins, 0 for none
	Bare       bool    // it ends with the checkpoint
	Raw        bool    // it is the log itself, in which nothing was capped
	AsOf       *Moment // it ends there, with what was removed later; nil for the log's end
}

// ViewFrom names the view that begins with a checkpoint or, for 0, the log itself.
func ViewFrom(n int) Older { return Older{Checkpoint: n, Raw: n == 0} }

// args returns the arguments of olderView behind those of every view.
func (o *Older) args() []any {
	args := []any{o.Checkpoint, o.Raw, o.Bare, (*int64)(nil), int64(math.MaxInt64)}
	if o.AsOf != nil {
		args[3], args[4] = &o.AsOf.Seq, o.AsOf.pinned
	}
	return args
}

// OlderView reads a view that is not the newest. Its shapes have the tokens of its messages.
//
// Errors: ErrNotFound if there is no such session or checkpoint; ErrPruned if the checkpoint has no body any more;
// *session.DamagedError; ErrLogTooLarge if the log does not fit into memory.
func (s *Store) OlderView(ctx context.Context, at session.Address, o Older, read ViewRead) (v View, err error) {
	if o.Raw {
		if err := s.logFits(ctx, at); err != nil {
			return v, err
		}
	}
	read.MaxTokens = everyMessage
	args := append(viewArgs(at, read, heldBody{}), o.args()...)
	if err := s.readView(ctx, at, olderView, args, &v); err != nil {
		return v, err
	}
	switch {
	case o.AsOf != nil && v.Key != o.AsOf.key:
		return v, session.ErrNotFound // erased meanwhile, and made anew
	case v.Checkpoint != o.Checkpoint:
		return v, s.InTenant(ctx, at.Tenant, func(tx pgx.Tx) error {
			return missingCheckpoint(ctx, tx, session.Key{Tenant: at.Tenant, Key: v.Key}, o.Checkpoint)
		})
	case v.Version == read.Known || o.Checkpoint == 0 || v.LeftOut:
		return v, nil
	case v.Size > 0 && len(v.Body) == 0:
		return v, pruned(o.Checkpoint)
	}
	return v, v.checkCheckpoint()
}

func (s *Store) logFits(ctx context.Context, at session.Address) error {
	return s.InTenant(ctx, at.Tenant, func(tx pgx.Tx) error {
		key, err := sessionKey(ctx, tx, at)
		if err != nil {
			return err
		}
		return fits(ctx, tx, session.Key{Tenant: at.Tenant, Key: key})
	})
}
