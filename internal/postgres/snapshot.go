package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Snapshot is what a compaction reads of a session besides its messages, which it takes in window by window.
type Snapshot struct {
	session.Key
	ID             string
	Model          string
	Format         session.Format
	WindowTokens   int
	OverheadTokens int
	ContextTokens  int64
	ViewBytes      int64
	Images         int64 // messages with images after the newest checkpoint
	LastSeq        int64
	LastAppendAge  float64 // seconds
	Calibration    float64 // tokens by an exact count for each estimated token
	Unseen         int64   // tokens by the caller's usage beyond the estimate
	Policy         session.Policy
	SeparateSeq    int64       // the last seq of a system prompt that is separate from the view's messages
	SeparateTokens int64       // its tokens
	Base           *Checkpoint // the newest one, nil before the first
	Uploads        []UploadedText
	Pins           []session.Pin // of callers

	Tail []LogMessage // of messages that are in no store, and of what a checkpoint was made of: all of them
}

// LogMessage is a message of the log.
type LogMessage struct {
	Seq        int64
	Format     session.Format
	Tokens     int64
	ViewTokens int64 // of what views show of it if it was capped at ingestion, else 0
	Body       []byte
	Digest     []byte // SHA-256 of Body; nil if it is not known
}

// Snapshot reads what a compaction of a session needs before it reads messages, at one moment; ErrNotFound.
func (s *Store) Snapshot(ctx context.Context, key session.Key) (snap Snapshot, err error) {
	err = s.inSnapshot(ctx, key.Tenant, func(tx pgx.Tx) error {
		if snap, err = readSnapshot(ctx, tx, key); err != nil {
			return err
		}
		if snap.Uploads, err = uploadedTexts(ctx, tx, key); err != nil {
			return err
		}
		snap.Pins, err = pinsOf(ctx, tx, key)
		return err
	})
	return snap, err
}

// Windows cuts the messages after seq after, as a snapshot saw them, into windows of about as many bytes, and returns
// the last seq of each. A window has one message at the least, and at most one more than fits. Removed messages are in
// none.
func (s *Store) Windows(ctx context.Context, snap *Snapshot, after, bytes int64) ([]int64, error) {
	return QueryRows(ctx, s, snap.Tenant, pgx.RowTo[int64], `
		SELECT max(seq)
		  FROM (
		       SELECT seq, (sum(`+messageBytes+`) OVER (ORDER BY seq) - `+messageBytes+`)::bigint AS before
		         FROM messages
		        WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND seq <= $4 AND removed_at IS NULL) m
		 GROUP BY before / $5::bigint
		 ORDER BY 1`, [16]byte(snap.Tenant), [16]byte(snap.Key.Key), after, snap.LastSeq, bytes)
}

// Window reads the messages after seq after through seq through, without those that were removed. One that is removed
// after the snapshot may be missing or not: CommitCheckpoint refuses a compaction that began before.
//
// Errors: ErrNotFound if the session was erased meanwhile, *session.DamagedError.
func (s *Store) Window(ctx context.Context, key session.Key, after, through int64) ([]LogMessage, error) {
	var log logOf[LogMessage]
	err := s.inSnapshot(ctx, key.Tenant, func(tx pgx.Tx) (err error) {
		log, err = readLog(ctx, tx, key, ofLogMessage, pgx.RowToStructByPos[LogMessage], `
			SELECT seq, format, tokens, coalesce(view_tokens, 0), body, digest
			  FROM messages
			 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND seq <= $4 AND removed_at IS NULL
			 ORDER BY seq`, key.Tenant, key.Key, after, through)
		return err
	})
	if err != nil {
		return nil, err
	}
	return log.complete(ctx, s)
}

// OpenTurn reports whether the assistant has reasoned since the user said something, and its tools are running or have
// just answered: what it makes of that, it has not said yet. reasoning is the flag of messages that have reasoning.
func (s *Store) OpenTurn(ctx context.Context, key session.Key, reasoning int32) (bool, error) {
	return QueryRow(ctx, s, key.Tenant, pgx.RowTo[bool], `
		SELECT coalesce(bool_or(m.flags & $3 <> 0), false)
		       AND coalesce((array_agg(m.role <> 'assistant' OR cardinality(m.calls) > cardinality(m.answers)
		                               ORDER BY m.seq DESC))[1], false)
		  FROM messages m
		 WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.removed_at IS NULL
		   AND m.seq > coalesce((SELECT max(u.seq)
		                           FROM messages u
		                          WHERE u.tenant_id = $1 AND u.session_key = $2 AND u.removed_at IS NULL
		                            AND u.role = 'user' AND cardinality(u.answers) = 0), 0)`,
		key.Tenant, key.Key, reasoning)
}

// fits returns ErrLogTooLarge for a log that does not fit into memory.
func fits(ctx context.Context, tx pgx.Tx, key session.Key) error {
	var size int64
	err := tx.QueryRow(ctx, `
		SELECT coalesce(sum(`+messageBytes+`), 0)
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND removed_at IS NULL`, key.Tenant, key.Key).Scan(&size)
	if err == nil && size > session.MaxTailBytes {
		err = fmt.Errorf("%d bytes: %w", size, session.ErrLogTooLarge)
	}
	return err
}

var snapshotSQL = statement("snapshot", "{pinned}", PinnedElsewhere, "{separate_tokens}", separateTokens,
	"{layers}", layersSQL, "{checkpoint}", newestCheckpoint, "{images}", imagesSQL)

// readSnapshot reads a session without its messages and uploads.
func readSnapshot(ctx context.Context, tx pgx.Tx, key session.Key) (snap Snapshot, err error) {
	snap = Snapshot{Key: key}
	var base Checkpoint
	var outdated *layers
	var whole, stateWhole bool
	err = tx.QueryRow(ctx, snapshotSQL, key.Tenant, key.Key).
		Scan(&snap.ID, &snap.Model, &snap.Format, &snap.WindowTokens, &snap.OverheadTokens, &snap.ContextTokens,
			&snap.ViewBytes, &snap.Images, &snap.LastSeq, &snap.LastAppendAge, &snap.Calibration, &snap.Unseen,
			&snap.Policy.Trigger, &snap.Policy.Hard, &snap.Policy.CacheTTL, &snap.Policy.Document,
			&snap.Policy.Version.Tenant, &snap.Policy.Version.Session, &outdated,
			&snap.SeparateSeq, &snap.SeparateTokens,
			&base.N, &base.Through, &base.Tokens, &base.Body, &base.Size, &base.State, &base.Units,
			&base.Policy, &base.EngineVersion, &base.Forgotten, &whole, &stateWhole)
	if base.N > 0 {
		snap.Base = &base
		base.Damage = damageOf(base.N, whole, stateWhole)
	}
	if err == nil {
		err = outdated.merge(&snap.Policy)
	}
	return snap, NotFound(err)
}
