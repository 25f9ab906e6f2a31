package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// repair runs do, which rebuilds something of a session, under its lock, and records what it did; ErrNotFound.
func (s *Store) repair(
	ctx context.Context, key session.Key, what string, do func(tx pgx.Tx, row lockedSession) error,
) error {
	return s.underLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		if err := do(tx, row); err != nil {
			return err
		}
		id, err := RowIn(ctx, tx, pgx.RowTo[string], `
			SELECT id
			  FROM sessions
			 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
		if err != nil {
			return err
		}
		at := session.Address{Tenant: key.Tenant, ID: id}
		return recordSession(ctx, tx, at, audit.SessionRepair, about{"what": what})
	})
}

var countersSQL = statement("verify_counters", "{pinned}", PinnedElsewhere)

// RepairCounters counts the numbers of a session's row again, from its log and its newest checkpoint. pinned is the
// flag of messages that may be in the pinned head; ErrNotFound.
func (s *Store) RepairCounters(ctx context.Context, key session.Key, pinned int32) error {
	return s.repair(ctx, key, "counters", func(tx pgx.Tx, _ lockedSession) error {
		return ExecOne(ctx, tx, session.ErrNotFound, countersSQL, key.Tenant, key.Key, pinned)
	})
}

// ErrNotOwner reports that the log cannot be written: only AdminRole and the owner of the tables may, and the database
// URL names another login.
var ErrNotOwner = errors.New("only the owner of the tables and members of " + AdminRole +
	" may write the log's columns: let DATABASE_URL name such a login")

// onLog runs do, which writes messages. The roles that serve must not.
func (s *Store) onLog(ctx context.Context, key session.Key, what string, do func(tx pgx.Tx) error) error {
	err := s.repair(ctx, key, what, func(tx pgx.Tx, _ lockedSession) error { return do(tx) })
	if hasCode(err, "42501") { // insufficient_privilege
		err = fmt.Errorf("%w (%w)", ErrNotOwner, err)
	}
	return err
}

// RepairColumns writes again what is extracted from a message of the log. Its body and its digest stay.
//
// Errors: ErrNotFound, ErrNotOwner.
func (s *Store) RepairColumns(
	ctx context.Context, key session.Key, seq int64, f session.Format, m session.NewMessage,
) error {
	calls, answers := texts(m.Calls), texts(m.Answers)
	audited := AuditedMessage{Role: Text(m.Role), Format: f, Flags: m.Flags, Calls: calls, Answers: answers}
	return s.onLog(ctx, key, fmt.Sprintf("columns of message %d", seq), func(tx pgx.Tx) error {
		return ExecOne(ctx, tx, session.ErrNotFound, `
			UPDATE messages
			   SET role = $4, tokens = $5, starts_unit = $8, flags = $9,
			       calls = CASE WHEN body IS NOT NULL THEN $6::text[] END,
			       answers = CASE WHEN body IS NOT NULL THEN $7::text[] END,
			       shape = CASE WHEN body IS NULL THEN shape
			                    ELSE $10 || coalesce(substring(shape FROM E'^(?:[^\x1f]*\x1f){5}(.*)$'), '') END
			 WHERE tenant_id = $1 AND session_key = $2 AND seq = $3`,
			key.Tenant, key.Key, seq, audited.Role, m.Tokens, calls, answers, m.StartsUnit, m.Flags,
			audited.shape())
	})
}

// FillDigests writes the digests of a session's messages from before there were digests, and returns how many.
//
// Errors: ErrNotFound, ErrNotOwner.
func (s *Store) FillDigests(ctx context.Context, key session.Key) (filled int64, err error) {
	err = s.onLog(ctx, key, "digests of messages", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE messages
			   SET digest = sha256(body)
			 WHERE tenant_id = $1 AND session_key = $2 AND digest IS NULL AND body IS NOT NULL`, key.Tenant, key.Key)
		filled = tag.RowsAffected()
		return err
	})
	return filled, err
}

// RewriteBody puts a result's content, which the log still has, in the place of its damaged body.
//
// Errors: ErrNotFound if the session has no such body with this content.
func (s *Store) RewriteBody(ctx context.Context, key session.Key, body uuid.UUID, content []byte) error {
	return s.repair(ctx, key, "body of a result", func(tx pgx.Tx, _ lockedSession) error {
		return persist.Rewrite(ctx, tx, key, body, content)
	})
}

// RewriteResult writes again what a result's row says of its content.
func (s *Store) RewriteResult(ctx context.Context, key session.Key, r *persist.Result) error {
	return s.repair(ctx, key, "row of result "+r.Ref, func(tx pgx.Tx, _ lockedSession) error {
		return ExecOne(ctx, tx, session.ErrNotFound, `
			UPDATE results
			   SET seq = $4, part = $5, bytes = $6, lines = $7, sha256 = $8
			 WHERE tenant_id = $1 AND session_key = $2 AND ref = $3`,
			key.Tenant, key.Key, r.Ref, r.Seq, r.Part, r.Bytes, r.Lines, r.SHA256)
	})
}

// FillCheckpoint puts an empty checkpoint, which no engine made, in the place of one whose row is lost. The session
// goes back to its log if it was the newest. pinned: see RepairCounters.
func (s *Store) FillCheckpoint(ctx context.Context, key session.Key, n int, pinned int32) error {
	return s.repair(ctx, key, fmt.Sprintf("lost checkpoint %d", n), func(tx pgx.Tx, row lockedSession) error {
		if err := fits(ctx, tx, key); err != nil {
			return err
		}
		err := Exec(ctx, tx, `
			INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body, body_size, state,
			                         units, manifest, policy, engine_version, run_id)
			SELECT $1, $2, $3, 0, 0, 0, CASE WHEN $4 THEN ''::bytea END, 0, CASE WHEN $4 THEN ''::bytea END,
			       '[]', '[]', p.document, $5, $6
			  FROM sessions s
			  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
			 WHERE s.tenant_id = $1 AND s.key = $2
			ON CONFLICT DO NOTHING`,
			key.Tenant, key.Key, n, n == row.checkpoint, noEngine, uuid.Must(uuid.NewV7()))
		if err == nil {
			err = Exec(ctx, tx, sealSQL, key.Tenant, key.Key, n)
		}
		if err != nil {
			return err
		}
		return ExecOne(ctx, tx, session.ErrNotFound, countersSQL, key.Tenant, key.Key, pinned)
	})
}

// DropRendition deletes the body of a checkpoint that is damaged, as that of one that has become old. It does nothing
// to the newest.
func (s *Store) DropRendition(ctx context.Context, key session.Key, n int) error {
	return s.repair(ctx, key, fmt.Sprintf("body of checkpoint %d", n), func(tx pgx.Tx, row lockedSession) error {
		return Exec(ctx, tx, `
			UPDATE checkpoints
			   SET `+prunedCheckpoint+`
			 WHERE tenant_id = $1 AND session_key = $2 AND n = $3 AND n < $4`, key.Tenant, key.Key, n, row.checkpoint)
	})
}

// Remake is what a checkpoint was made of.
type Remake struct {
	Snapshot                   // with the base, nil for the log, and the messages behind it through LastSeqs[1]
	LastSeqs [2]int64          // the compaction read messages through one of these seqs
	Stored   AuditedCheckpoint // as it is, damaged or not
}

// ReadRemake reads what a checkpoint was made of: the messages that were there when its run began are known by their
// times. ErrNotFound, also if its base is not kept.
func (s *Store) ReadRemake(ctx context.Context, key session.Key, n int) (r Remake, err error) {
	var tail logOf[LogMessage]
	err = s.inSnapshot(ctx, key.Tenant, func(tx pgx.Tx) error {
		if r.Stored, err = RowIn(ctx, tx, pgx.RowToStructByName[AuditedCheckpoint], auditCheckpointSQL,
			key.Tenant, key.Key, n); err != nil {
			return err
		}
		if r.Snapshot, err = readSnapshot(ctx, tx, key); err != nil {
			return err
		}
		if err := r.readPolicyAndBase(ctx, tx); err != nil {
			return err
		}
		after := r.SeparateSeq
		if r.Base != nil {
			after = max(after, r.Base.Through)
		}
		tail, err = r.readTail(ctx, tx, after)
		return err
	})
	if err != nil {
		return r, err
	}
	r.Tail, err = tail.complete(ctx, s)
	return r, err
}

func (r *Remake) readPolicyAndBase(ctx context.Context, tx pgx.Tx) error {
	r.Base = nil
	err := tx.QueryRow(ctx, `
		SELECT policy
		  FROM checkpoints
		 WHERE tenant_id = $1 AND session_key = $2 AND n = $3`,
		r.Tenant, r.Key.Key, r.Stored.N).Scan(&r.Policy.Document)
	if err != nil || r.Stored.Base == 0 {
		return NotFound(err)
	}
	base := Checkpoint{N: r.Stored.Base}
	err = tx.QueryRow(ctx, `
		SELECT through_seq, tokens, body, body_size, state, units, policy, engine_version
		  FROM checkpoints
		 WHERE tenant_id = $1 AND session_key = $2 AND n = $3 AND body IS NOT NULL`,
		r.Tenant, r.Key.Key, base.N).Scan(&base.Through, &base.Tokens, &base.Body, &base.Size, &base.State, &base.Units,
		&base.Policy, &base.EngineVersion)
	r.Base = &base
	return NotFound(err)
}

// readTail reads the messages behind the base that a run may have seen. Those that were removed since were there, too.
func (r *Remake) readTail(ctx context.Context, tx pgx.Tx, after int64) (tail logOf[LogMessage], err error) {
	err = tx.QueryRow(ctx, `
		SELECT greatest(c.through_seq, coalesce(max(m.seq) FILTER (WHERE m.created_at <= r.started_at), 0)),
		       greatest(c.through_seq, coalesce(max(m.seq), 0))
		  FROM checkpoints c
		  JOIN runs r ON r.tenant_id = $1 AND r.id = c.run_id
		  LEFT JOIN messages m ON m.tenant_id = $1 AND m.session_key = $2 AND m.created_at <= r.finished_at
		 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.n = $3
		 GROUP BY c.through_seq`, r.Tenant, r.Key.Key, r.Stored.N).Scan(&r.LastSeqs[0], &r.LastSeqs[1])
	if err != nil {
		return tail, NotFound(err)
	}
	return readLog(ctx, tx, r.Snapshot.Key, ofLogMessage, pgx.RowToStructByPos[LogMessage], `
		SELECT seq, format, tokens, coalesce(view_tokens, 0), body, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND seq <= $4
		   AND (removed_at IS NULL
		        OR seq > $5 AND removed_at > (SELECT started_at
		                                        FROM runs
		                                       WHERE tenant_id = $1 AND id = (
		                                             SELECT run_id
		                                               FROM checkpoints
		                                              WHERE tenant_id = $1 AND session_key = $2 AND n = $6)))
		 ORDER BY seq`, r.Tenant, r.Key.Key, after, r.LastSeqs[1], r.Stored.Through, r.Stored.N)
}

// errOtherMade reports that a checkpoint that was made again is not the one that was written.
var errOtherMade = errors.New("what was made again has another digest than the checkpoint when it was written")

// ReplaceRendition writes a checkpoint that was made again in the place of the damaged one, with the same number. It
// must have the digests that the damaged one was written with, if any.
func (s *Store) ReplaceRendition(ctx context.Context, key session.Key, n int, c *Checkpoint) error {
	return s.repair(ctx, key, fmt.Sprintf("checkpoint %d", n), func(tx pgx.Tx, _ lockedSession) error {
		err := ExecOne(ctx, tx, session.ErrNotFound, `
			UPDATE checkpoints
			   SET body = $4, body_size = $5, state = $6, units = $7, manifest = $8, open_calls = $9,
			       validator_state = $10, through_seq = $11, tokens = $12
			 WHERE tenant_id = $1 AND session_key = $2 AND n = $3`,
			key.Tenant, key.Key, n, c.Body, c.Size, c.State, c.Units, c.Manifest, texts(c.OpenCalls), c.ValidatorState,
			c.Through, c.Tokens)
		if err != nil {
			return err
		}
		same, err := RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT `+wholeSQL(`c`)+` AND (c.state_digest IS NULL OR c.state_digest = sha256(c.state))
			  FROM checkpoints c
			 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.n = $3`, key.Tenant, key.Key, n)
		if err == nil && !same {
			err = errOtherMade
		}
		if err != nil {
			return err
		}
		return Exec(ctx, tx, sealSQL, key.Tenant, key.Key, n)
	})
}

// FillProofs writes the digests of a session's checkpoints from before there were digests; ErrNotFound.
func (s *Store) FillProofs(ctx context.Context, key session.Key) error {
	return s.repair(ctx, key, "digests of checkpoints", func(tx pgx.Tx, _ lockedSession) error {
		return Exec(ctx, tx, fillProofsSQL, key.Tenant, key.Key)
	})
}

// AskForRepair asks for a compaction of a session from its log now, because its newest checkpoint is damaged, and
// returns its run and its job: the caller, or a worker, does it. ErrNotFound.
func (s *Store) AskForRepair(ctx context.Context, key session.Key) (run uuid.UUID, job int64, err error) {
	err = s.repair(ctx, key, "a compaction from the log", func(tx pgx.Tx, row lockedSession) error {
		if _, _, err := s.enqueue(ctx, tx, row.Key, causeDamage, time.Time{}, true); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			SELECT id, job_id
			  FROM runs
			 WHERE tenant_id = $1 AND session_key = $2 AND state IN ('queued', 'running')
			   AND cause <> 'recompaction'
			 ORDER BY triggered_at DESC
			 LIMIT 1`, key.Tenant, key.Key).Scan(&run, &job)
	})
	return run, job, NotFound(err)
}
