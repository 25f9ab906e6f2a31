package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/session"
)

// Fork makes a session that shares the log of another through a seq, as it was then, and begins with the checkpoint of
// then. It has the settings, the policy and the pins of the other, and the same seqs and refs. Messages are copied
// inside the database; bodies of results are shared. Appends to the other session do not wait.
//
// Errors: ErrNotFound, ErrExists, a *session.InvalidError for a seq that the session does not have, ErrSessionBusy,
// ErrIdempotencyReused, *session.DamagedError.
func (s *Store) Fork(ctx context.Context, f session.Fork) (made session.Session, replayed bool, err error) {
	if replayed, err := s.Answered(ctx, f.From.Tenant, f.Idempotency, &made); replayed || err != nil {
		return made, replayed, err
	}
	const attempts = 3
	for range attempts {
		var plan *forkPlan
		if plan, err = s.planFork(ctx, f); err != nil {
			return made, false, err
		}
		made, replayed, err = Once(ctx, s, f.From.Tenant, f.Idempotency,
			func(tx pgx.Tx) (session.Session, uuid.UUID, error) { return s.fork(ctx, tx, plan) })
		if !errors.Is(err, errPlanMoved) && !hasCode(err, "23503") { // foreign_key_violation: a body was handed over
			break
		}
		err = fmt.Errorf("session %q changes as fast as it is copied: %w", f.From.ID, session.ErrSessionBusy)
	}
	return made, replayed, err
}

// errPlanMoved says that what a fork was planned on was moved or pruned meanwhile.
var errPlanMoved = errors.New("the log was packed, or a checkpoint pruned, since the fork was planned")

// forkPlan is what a fork is made of.
type forkPlan struct {
	session.Fork
	source session.Key
	then   Moment

	// The pack that goes beyond the seq is not copied, because it has messages that the fork does not: those that the
	// fork has lie in their rows there.
	cut      int64 // its first seq, 0 for none
	unpacked []PackMessage
}

func (s *Store) planFork(ctx context.Context, f session.Fork) (*forkPlan, error) {
	plan := &forkPlan{Fork: f}
	var log logOf[PackMessage]
	err := s.inSnapshot(ctx, f.From.Tenant, func(tx pgx.Tx) error {
		key, err := sessionKey(ctx, tx, f.From)
		if err != nil {
			return err
		}
		plan.source = session.Key{Tenant: f.From.Tenant, Key: key}
		if plan.then, err = readMoment(ctx, tx, plan.source, At{Seq: f.Seq}, "/seq"); err != nil {
			return err
		}
		if !plan.then.kept {
			if err := plan.then.readKept(ctx, tx, plan.source); err != nil {
				return err
			}
		}
		log, err = plan.readCut(ctx, tx)
		return err
	})
	if err == nil {
		plan.unpacked, err = log.complete(ctx, s)
	}
	return plan, err
}

// readKept takes the newest checkpoint whose body is kept and that shows nothing but what was in the log then, 0 for
// none.
func (m *Moment) readKept(ctx context.Context, tx pgx.Tx, key session.Key) error {
	n, err := RowIn(ctx, tx, pgx.RowTo[int], `
		SELECT n
		  FROM checkpoints c
		 WHERE tenant_id = $1 AND session_key = $2 AND through_seq <= $3 AND body IS NOT NULL
		   AND NOT EXISTS (
		       SELECT
		         FROM messages m
		        WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.seq <= c.through_seq AND m.removed_seq > $3)
		 ORDER BY through_seq DESC, n DESC
		 LIMIT 1`, key.Tenant, key.Key, m.Seq)
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	m.Checkpoint = n
	return err
}

// readCut reads the messages of the pack that goes beyond the seq.
func (p *forkPlan) readCut(ctx context.Context, tx pgx.Tx) (log logOf[PackMessage], err error) {
	p.cut, err = RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT first_seq
		  FROM message_packs
		 WHERE tenant_id = $1 AND session_key = $2 AND first_seq <= $3 AND last_seq > $3`,
		p.source.Tenant, p.source.Key, p.then.Seq)
	if errors.Is(err, session.ErrNotFound) {
		return log, nil
	}
	if err != nil {
		return log, err
	}
	return readLog(ctx, tx, p.source, (*PackMessage).place, pgx.RowToStructByPos[PackMessage], `
		SELECT seq, body, view_body, shape, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3 AND seq <= $4 AND body IS NULL
		 ORDER BY seq`, p.source.Tenant, p.source.Key, p.cut, p.then.Seq)
}

// fork makes the session of a plan.
func (s *Store) fork(ctx context.Context, tx pgx.Tx, p *forkPlan) (made session.Session, _ uuid.UUID, err error) {
	if err := p.hold(ctx, tx); err != nil {
		return made, uuid.Nil, err
	}
	at := session.Address{Tenant: p.From.Tenant, ID: p.ID}
	if err := p.create(ctx, tx, at); err != nil {
		return made, uuid.Nil, err
	}
	if made, err = readSession(ctx, tx, at); err != nil {
		return made, uuid.Nil, err
	}
	key := session.Key{Tenant: at.Tenant, Key: made.Key}
	if err := p.fill(ctx, tx, key); err != nil {
		return made, uuid.Nil, err
	}
	if err := s.compactIfDue(ctx, tx, key, causes[due.Trigger]); err != nil {
		return made, uuid.Nil, err
	}
	if err := recordSession(ctx, tx, at, audit.SessionFork, about{"from": p.From.ID, "seq": p.then.Seq}); err != nil {
		return made, uuid.Nil, err
	}
	made, err = readSession(ctx, tx, at)
	return made, made.Key, err
}

// hold keeps the session, and those that hold bodies for it, from being erased until the transaction ends. It does not
// keep them from being changed.
func (p *forkPlan) hold(ctx context.Context, tx pgx.Tx) error {
	held, err := RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT key
		  FROM sessions
		 WHERE tenant_id = $1
		   AND (key = $2 OR key IN (SELECT held_in
		                              FROM result_bodies
		                             WHERE tenant_id = $1 AND session_key = $2 AND held_in IS NOT NULL))
		 ORDER BY key
		   FOR KEY SHARE`, p.source.Tenant, p.source.Key)
	for _, key := range held {
		if key == p.source.Key {
			return err
		}
	}
	return cmp.Or(err, session.ErrNotFound)
}

// create inserts a session with the settings and the policy of the other.
func (p *forkPlan) create(ctx context.Context, tx pgx.Tx, at session.Address) error {
	from, err := readSession(ctx, tx, p.From)
	if err != nil {
		return err
	}
	change := session.Change{
		Model: &from.Model, WindowTokens: &from.WindowTokens, WindowSource: from.WindowSource,
		OverheadTokens: &from.OverheadTokens, Metadata: from.Metadata, ChangedBy: p.ChangedBy,
	}
	if from.Format != "" {
		change.Format = &from.Format
	}
	if from.Policy.Version.Session > 0 {
		own, err := RowIn(ctx, tx, pgx.RowTo[uuid.UUID], `
			SELECT policy_id
			  FROM sessions
			 WHERE tenant_id = $1 AND key = $2`, p.source.Tenant, p.source.Key)
		if err != nil {
			return err
		}
		policy, err := readPolicy(ctx, tx, at.Tenant, own, "")
		if err != nil {
			return err
		}
		change.Policy = &policy
	}
	created, err := InsertSession(ctx, tx, at, change)
	if err == nil && !created {
		err = fmt.Errorf("session %q: %w", at.ID, session.ErrExists)
	}
	return err
}

var forkSQL = statement("fork_session")

// fill copies the log to the new session, and sets its numbers.
func (p *forkPlan) fill(ctx context.Context, tx pgx.Tx, key session.Key) error {
	seq := p.then.Seq
	err := Exec(ctx, tx, `
		UPDATE sessions f
		   SET last_seq = $4, pinned = $5, gap_seq = least(s.gap_seq, $4), unbound_seq = least(s.unbound_seq, $4),
		       calibration = s.calibration,
		       unseen_tokens = s.unseen_tokens, last_usage = s.last_usage, counted_tokens = s.counted_tokens,
		       exact_tokens = s.exact_tokens
		  FROM sessions s
		 WHERE f.tenant_id = $1 AND f.key = $2 AND s.tenant_id = $1 AND s.key = $3`,
		key.Tenant, key.Key, p.source.Key, seq, p.then.pinned)
	if err != nil {
		return err
	}
	copied, err := p.copy(ctx, tx, key)
	if err != nil {
		return err
	}
	var c session.CheckpointRecord
	if copied.newest > 0 {
		c, err = RowIn(ctx, tx, scanRecord, `
			SELECT `+recordColumns+`
			  FROM checkpoints c
			 WHERE tenant_id = $1 AND session_key = $2 AND n = $3`, key.Tenant, key.Key, copied.newest)
		if err != nil {
			return err
		}
	}
	if err := Exec(ctx, tx, newestSQL, key.Tenant, key.Key, c.N, c.Through, c.BodyBytes, c.Tokens, 0); err != nil {
		return err
	}
	return Exec(ctx, tx, `
		UPDATE sessions
		   SET total_tokens = $3, forked_from = $4, forked_seq = $5, forked_checkpoint = $6,
		       policy_version = CASE WHEN checkpoint_n > 0 THEN policy_version END,
		       last_append_at = (SELECT max(created_at)
		                           FROM messages
		                          WHERE tenant_id = $1 AND session_key = $2)
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key, copied.total, p.From.ID, seq,
		p.then.Checkpoint)
}

// copiedLog is what a fork has got.
type copiedLog struct {
	total  int64 // tokens
	newest int   // the number of its newest checkpoint, 0 for none
}

// copy copies the rows of a session.
func (p *forkPlan) copy(ctx context.Context, tx pgx.Tx, key session.Key) (copied copiedLog, err error) {
	var seqs []int64
	var bodies, views [][]byte
	var shapes []string
	var calls, answers []*string
	for i := range p.unpacked {
		m := &p.unpacked[i]
		made, answered := idsOfShape(m.Shape)
		seqs = append(seqs, m.Seq)
		bodies, views = append(bodies, m.Body), append(views, m.View)
		shapes = append(shapes, m.Shape)
		calls, answers = append(calls, idArray(made)), append(answers, idArray(answered))
	}
	var cut int64
	var whole bool
	err = tx.QueryRow(ctx, forkSQL, pgx.NamedArgs{
		"tenant": key.Tenant, "session": p.source.Key, "fork": key.Key, "seq": p.then.Seq,
		"checkpoint": p.then.Checkpoint, "seqs": seqs, "bodies": bodies, "views": views, "shapes": shapes,
		"calls": calls, "answers": answers,
	}).Scan(&copied.total, &cut, &whole, &copied.newest)
	if err == nil && (cut != p.cut || !whole) {
		err = errPlanMoved
	}
	return copied, err
}
