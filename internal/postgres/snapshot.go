package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Snapshot is what a compaction reads: the newest checkpoint and messages of the log.
type Snapshot struct {
	session.Key
	ID             string
	Format         session.Format
	WindowTokens   int
	OverheadTokens int
	ContextTokens  int64
	LastSeq        int64
	LastAppendAge  float64 // seconds
	Calibration    float64 // tokens by an exact count for each estimated token
	Unseen         int64   // tokens by the caller's usage beyond the estimate
	Policy         session.Policy
	SeparateTokens int64        // of a system prompt that is separate from the view's messages
	Base           *Checkpoint  // the newest one, nil before the first
	Tail           []LogMessage // the messages after Base or, from the log, all but the separate system prompt
	Uploads        []UploadedText
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

// Snapshot reads what a compaction of a session needs, at one moment; ErrNotFound.
func (s *Store) Snapshot(ctx context.Context, key session.Key) (Snapshot, error) {
	return s.snapshot(ctx, key, false)
}

// SnapshotFromLog reads the same for a compaction that starts from the log. ErrNotFound; ErrLogTooLarge if the log does
// not fit into memory.
func (s *Store) SnapshotFromLog(ctx context.Context, key session.Key) (Snapshot, error) {
	return s.snapshot(ctx, key, true)
}

func (s *Store) snapshot(ctx context.Context, key session.Key, fromLog bool) (snap Snapshot, err error) {
	var tail logOf[LogMessage]
	err = s.inSnapshot(ctx, key.Tenant, func(tx pgx.Tx) error {
		var after int64 // the last seq of the separate system prompt
		if snap, after, err = readSnapshot(ctx, tx, key); err != nil {
			return err
		}
		if fromLog {
			if err := fits(ctx, tx, key); err != nil {
				return err
			}
		} else if snap.Base != nil {
			after = max(after, snap.Base.Through)
		}
		if snap.Uploads, err = uploadedTexts(ctx, tx, key); err != nil {
			return err
		}
		tail, err = readLog(ctx, tx, key, ofLogMessage, pgx.RowToStructByPos[LogMessage], `
			SELECT seq, format, tokens, coalesce(view_tokens, 0), body, digest
			  FROM messages
			 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND seq <= $4 AND removed_at IS NULL
			 ORDER BY seq`, key.Tenant, key.Key, after, snap.LastSeq)
		return err
	})
	if err != nil {
		return snap, err
	}
	snap.Tail, err = tail.complete(ctx, s)
	return snap, err
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

var snapshotSQL = statement("snapshot", "{pinned}", pinnedElsewhere, "{separate_tokens}", separateTokens,
	"{checkpoint}", newestCheckpoint)

// readSnapshot reads a session without its messages. separate is the last seq of its separate system prompt.
func readSnapshot(ctx context.Context, tx pgx.Tx, key session.Key) (snap Snapshot, separate int64, err error) {
	snap = Snapshot{Key: key}
	var base Checkpoint
	var whole, stateWhole bool
	err = tx.QueryRow(ctx, snapshotSQL, key.Tenant, key.Key).
		Scan(&snap.ID, &snap.Format, &snap.WindowTokens, &snap.OverheadTokens, &snap.ContextTokens, &snap.LastSeq,
			&snap.LastAppendAge, &snap.Calibration, &snap.Unseen,
			&snap.Policy.Trigger, &snap.Policy.Hard, &snap.Policy.CacheTTL, &snap.Policy.Document,
			&snap.Policy.Version.Tenant, &snap.Policy.Version.Session,
			&separate, &snap.SeparateTokens,
			&base.N, &base.Through, &base.Tokens, &base.Body, &base.Size, &base.State, &base.Units,
			&base.Policy, &base.EngineVersion, &whole, &stateWhole)
	if base.N > 0 {
		snap.Base = &base
		base.Damage = damageOf(base.N, whole, stateWhole)
	}
	return snap, separate, notFound(err)
}
