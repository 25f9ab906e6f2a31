package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// Deleted is the answer to the deletion of a session.
type Deleted struct {
	Erasure  uuid.UUID // Nil for a repeated request to a program of before, which made none
	Replayed bool      `json:"-"`
}

// Delete erases a session and all its rows. The job of the erasure erases what lies outside the database and makes the
// receipt. A job that runs for the session finds nothing to do.
//
// Errors: ErrNotFound, ErrHeld, ErrSessionBusy, ErrIdempotencyReused.
func (s *Store) Delete(
	ctx context.Context, at session.Address, id *session.Idempotency,
) (done Deleted, err error) {
	s = s.Seeing(AllSessions)
	pen, err := s.TurnToWrite(ctx, at)
	if err != nil {
		return done, err
	}
	defer pen.Done()
	done, done.Replayed, err = Once(ctx, s, at.Tenant, id, func(tx pgx.Tx) (Deleted, uuid.UUID, error) {
		key, err := sessionKey(ctx, tx, at)
		if err != nil {
			return Deleted{}, uuid.Nil, err
		}
		row, err := LockFamily(ctx, tx, session.Key{Tenant: at.Tenant, Key: key})
		if err != nil {
			return Deleted{}, uuid.Nil, err
		}
		of := Erasing{Tenant: at.Tenant, ID: uuid.Must(uuid.NewV7()), Kind: session.ErasureOfSession}
		if err := s.BeginErasure(ctx, tx, of); err != nil {
			return Deleted{}, uuid.Nil, err
		}
		return Deleted{Erasure: of.ID}, key, s.EraseFor(ctx, tx, of, row, at.ID)
	})
	return done, err
}

// Erasing names the erasure for which something is erased.
type Erasing struct {
	Tenant uuid.UUID // that the erasure belongs to
	ID     uuid.UUID
	Kind   session.ErasureKind
	Erased *uuid.UUID // the tenant that an erasure of operators deletes
}

// BeginErasure inserts an erasure and its job.
func (s *Store) BeginErasure(ctx context.Context, tx pgx.Tx, of Erasing) error {
	by := audit.From(ctx)
	err := Exec(ctx, tx, `
		INSERT INTO erasures (tenant_id, id, kind, actor, actor_id, request, address, erased_tenant)
		VALUES ($1, $2, $3, $4, nullif($5, '00000000-0000-0000-0000-000000000000'::uuid), nullif($6, ''),
		        nullif($7, ''), $8)`,
		of.Tenant, of.ID, of.Kind, by.Kind, by.ID, Text(by.Request), Text(by.Address), of.Erased)
	if err != nil {
		return err
	}
	_, _, err = s.queue.Insert(ctx, tx, queue.ErasureArgs{Tenant: of.Tenant, Erasure: of.ID}, time.Time{})
	return err
}

var (
	handOverSQL      = statement("hand_over")
	erasedCountsSQL  = statement("erased_counts", "{messageBytes}", messageBytes)
	forgetSessionSQL = statement("forget_session")
	forgetAnswersSQL = statement("forget_answers")
)

// EraseFor erases a session that this transaction has locked with its family, counts it for the erasure, and blanks
// what the audit trail says of it; ErrHeld.
func (s *Store) EraseFor(ctx context.Context, tx pgx.Tx, of Erasing, locked Locked, id string) error {
	row := locked.row
	if err := WaitForBodies(ctx, tx, row.Key); err != nil {
		return err
	}
	if err := RefuseHeld(ctx, tx, row.Key); err != nil {
		return err
	}
	if err := s.countErased(ctx, tx, of, row.Key); err != nil {
		return err
	}
	if err := s.erase(ctx, tx, row, id); err != nil {
		return err
	}
	if of.Kind == session.ErasureOfSession {
		if err := AddTask(ctx, tx, of.Tenant, TaskErasure); err != nil {
			return err
		}
	}
	detail := about{"erasure": of.ID, "last_seq": row.lastSeq, "total_tokens": row.totalTokens}
	blanked, err := BlankedBy(ctx, tx, `SELECT * FROM audit_blank($1, $2, $3)`, row.Tenant, id, row.Key.Key)
	if err != nil {
		return err
	}
	if blanked.Rows > 0 {
		detail["blanked_from"], detail["blanked"] = blanked.First, blanked.Rows
	}
	action := audit.SessionErase
	if of.Kind == session.ErasureOfExpired {
		action = audit.SessionExpire
	}
	return record(ctx, tx, row.Tenant, auditEntry{
		action: action, object: audit.Session, id: row.Key.Key.String(), detail: detail,
	})
}

// BlankedBy runs a statement that blanks rows of the audit trail: the transaction must record that next.
func BlankedBy(ctx context.Context, tx pgx.Tx, sql string, args ...any) (b audit.Blanked, err error) {
	err = tx.QueryRow(ctx, sql, args...).Scan(&b.First, &b.Rows)
	return b, err
}

// WaitForBodies waits for a result that is being persisted, whose foreign key holds the session.
func WaitForBodies(ctx context.Context, tx pgx.Tx, key session.Key) error {
	return Exec(ctx, tx, `SELECT FROM sessions WHERE tenant_id = $1 AND key = $2 FOR UPDATE`, key.Tenant, key.Key)
}

// countErased counts for an erasure what a session has, and notes where its objects lie.
func (s *Store) countErased(ctx context.Context, tx pgx.Tx, of Erasing, key session.Key) error {
	has, err := RowIn(ctx, tx, scanContents, `
		SELECT messages, results, bodies, checkpoints, bytes, message_bytes, contents
		  FROM session_archives
		 WHERE tenant_id = $1 AND session_key = $2 AND state <> 'archiving'`, key.Tenant, key.Key)
	if errors.Is(err, session.ErrNotFound) {
		has, err = ContentsOf(ctx, tx, key)
	}
	if err != nil {
		return err
	}
	if of.Kind != session.ErasureOfTenant { // whose objects are erased at once
		if err := noteObjects(ctx, tx, of, key); err != nil {
			return err
		}
	}
	return inOwner(ctx, tx, of, key.Tenant, func() error {
		return Exec(ctx, tx, `
			UPDATE erasures
			   SET sessions = sessions + 1, messages = messages + $3, results = results + $4, bodies = bodies + $5,
			       checkpoints = checkpoints + $6, bytes = bytes + $7,
			       digest = sha256(coalesce(digest, '') || uuid_send($8) || $9)
			 WHERE tenant_id = $1 AND id = $2`,
			of.Tenant, of.ID, has.Messages, has.Results, has.Bodies, has.Checkpoints, has.Bytes, key.Key, has.Digest)
	})
}

// Contents are what a session has, and the digest of it.
type Contents struct {
	Messages, Results, Bodies, Checkpoints, Bytes, MessageBytes int64

	Digest []byte
}

var scanContents = pgx.RowToStructByPos[Contents]

// ContentsOf counts what a session has that is in its rows.
func ContentsOf(ctx context.Context, tx pgx.Tx, key session.Key) (Contents, error) {
	return RowIn(ctx, tx, scanContents, erasedCountsSQL, key.Tenant, key.Key)
}

// inOwner runs do where the transaction, which sees a tenant, sees the one that the erasure belongs to.
func inOwner(ctx context.Context, tx pgx.Tx, of Erasing, tenant uuid.UUID, do func() error) error {
	if of.Tenant == tenant {
		return do()
	}
	if err := Exec(ctx, tx, setTenant, of.Tenant.String()); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return Exec(ctx, tx, setTenant, tenant.String())
}

// noteObjects notes under which prefixes the objects of a session lie, or have lain.
func noteObjects(ctx context.Context, tx pgx.Tx, of Erasing, key session.Key) error {
	return Exec(ctx, tx, `
		INSERT INTO erasure_sessions AS l (tenant_id, erasure_id, session_key, state, prefixes)
		SELECT $1, $2, $3, 'erased', coalesce(array_agg(DISTINCT objects_in), '{}') || $3::uuid
		  FROM result_bodies
		 WHERE tenant_id = $1 AND session_key = $3 AND objects_in IS NOT NULL AND held_in IS NULL
		ON CONFLICT (tenant_id, erasure_id, session_key) DO UPDATE
		   SET state = excluded.state, prefixes = excluded.prefixes`, of.Tenant, of.ID, key.Key)
}

// sessionTables are the tables that have a row for a session, in the order in which a deletion of the session empties
// them.
var sessionTables = []string{
	"results", "uploads", "result_chunks", "result_bodies", "checkpoints", "runs", "messages",
	"message_packs", "idempotency", "policy_versions", "session_tokens", "findings", "due_sessions",
	"session_failures", "session_pins", "summaries", "model_answers", "usage_sessions", "session_retention",
	"search_blocks", "search_sessions", "archive_parts", "session_archives",
}

// erase deletes a session's rows, once the ledger has counted them, gives the bodies that forks share to them, and
// takes its id out of what others have.
func (s *Store) erase(ctx context.Context, tx pgx.Tx, row lockedSession, id string) error {
	tenant, key := row.Tenant, row.Key.Key
	batch := &pgx.Batch{}
	QueueUsage(batch, tenant, []session.Reading{{Session: id}})
	batch.Queue(forgetAnswersSQL, tenant, id, key)
	removeFromRecompactions(batch, row.Key)
	removeFromReplays(batch, row.Key)
	batch.Queue(`
		UPDATE imports
		   SET session = '', report = '{}'
		 WHERE tenant_id = $1 AND session = $2 AND finished_at IS NOT NULL`, tenant, id)
	QueueHandOver(batch, row.Key)
	for _, table := range sessionTables {
		batch.Queue(`DELETE FROM `+table+` WHERE tenant_id = $1 AND session_key = $2`, tenant, key)
	}
	for _, table := range []string{"webhook_deliveries", "events"} {
		batch.Queue(`DELETE FROM `+table+` WHERE tenant_id = $1 AND topic = $2`, tenant, session.TopicOf(id))
	}
	batch.Queue(forgetSessionSQL, tenant, key)
	batch.Queue(`DELETE FROM sessions WHERE tenant_id = $1 AND key = $2`, tenant, key)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return HeldError(err)
	}
	if err := deletePolicy(ctx, tx, row.Tenant, row.policy); err != nil {
		return err
	}
	return s.queue.Scrub(ctx, tx, row.Key.Key)
}

// QueueHandOver queues the statements that give the bodies which forks share with a session to them.
func QueueHandOver(batch *pgx.Batch, key session.Key) {
	batch.Queue(`
		SELECT
		  FROM result_bodies h
		 WHERE h.tenant_id = $1 AND h.session_key = $2
		   AND EXISTS (
		       SELECT
		         FROM result_bodies f
		        WHERE f.tenant_id = $1 AND f.held_in = $2 AND f.id = h.id)
		   FOR UPDATE`, key.Tenant, key.Key)
	batch.Queue(handOverSQL, key.Tenant, key.Key)
}

// The statements that take a session out of recompactions and replays.
var (
	lockRecompactionsSQL       = statement("lock_recompactions")
	removeFromRecompactionsSQL = statement("remove_from_recompactions")

	lockReplaysSQL       = statement("lock_replays")
	removeFromReplaysSQL = statement("remove_from_replays")
)

// removeFromReplays removes a session that is being erased from its replays. It locks them first, as those who store
// what was measured do.
func removeFromReplays(batch *pgx.Batch, key session.Key) {
	args := pgx.NamedArgs{"tenant": key.Tenant, "session": key.Key}
	batch.Queue(lockReplaysSQL, args)
	batch.Queue(`DELETE FROM replay_outcomes WHERE tenant_id = @tenant AND session_key = @session`, args)
	batch.Queue(removeFromReplaysSQL, args)
}

// removeFromRecompactions removes a session that is being erased from its recompactions. It locks them first, as every
// change of their sessions does.
func removeFromRecompactions(batch *pgx.Batch, key session.Key) {
	args := pgx.NamedArgs{"tenant": key.Tenant, "session": key.Key}
	batch.Queue(lockRecompactionsSQL, args)
	batch.Queue(removeFromRecompactionsSQL, args)
}

// RefuseHeld returns ErrHeld if a legal hold keeps a session, in the transaction that has locked it. The database
// refuses the deletion itself, see HeldError; this spares the work.
func RefuseHeld(ctx context.Context, tx pgx.Tx, key session.Key) error {
	held, err := RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT EXISTS (SELECT FROM session_holds WHERE tenant_id = $1 AND session_key = $2)
		    OR EXISTS (SELECT FROM tenants WHERE id = $1 AND hold IS NOT NULL)`, key.Tenant, key.Key)
	if err == nil && held {
		err = session.ErrHeld
	}
	return err
}

// HeldError returns ErrHeld for the database's error that a legal hold keeps a session or its tenant.
func HeldError(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.ConstraintName == "session_holds_session" || pg.ConstraintName == "tenants_hold") {
		return session.ErrHeld
	}
	return err
}
