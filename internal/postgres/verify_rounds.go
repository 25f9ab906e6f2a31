package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Verification is where the periodic verification of a tenant is.
type Verification struct {
	Cursor       uuid.UUID  `json:"cursor"`      // the key of the last session that was looked at in this round
	StartedAt    time.Time  `json:"started_at"`  // of this round
	Sessions     int64      `json:"sessions"`    // of this round
	Bytes        int64      `json:"bytes"`       // of this round
	FinishedAt   *time.Time `json:"finished_at"` // of the round before, nil if there was none
	LastSessions int64      `json:"last_sessions"`
	LastBytes    int64      `json:"last_bytes"`
}

// Verification returns where the periodic verification of a tenant is; it begins one that there is none of.
func (s *Store) Verification(ctx context.Context, tenant uuid.UUID) (v Verification, err error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (v Verification, err error) {
		err = Exec(ctx, tx, `
			INSERT INTO verifications (tenant_id)
			VALUES ($1)
			ON CONFLICT DO NOTHING`, tenant)
		if err != nil {
			return v, err
		}
		return RowIn(ctx, tx, pgx.RowToStructByName[Verification], `
			SELECT cursor, started_at, sessions, bytes, finished_at, last_sessions, last_bytes
			  FROM verifications
			 WHERE tenant_id = $1`, tenant)
	})
}

// StoredFinding is a finding as package verify writes it.
type StoredFinding struct {
	Kind    string
	Finding json.RawMessage
}

// RecordVerified records what was found in a session, in place of what was found in it before.
func (s *Store) RecordVerified(ctx context.Context, key session.Key, bytes int64, found []StoredFinding) error {
	return s.InTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`
			DELETE FROM findings
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
		for n := range found {
			batch.Queue(`
				INSERT INTO findings (tenant_id, session_key, n, kind, finding)
				VALUES ($1, $2, $3, $4, $5)`, key.Tenant, key.Key, n, found[n].Kind, found[n].Finding)
		}
		batch.Queue(`
			UPDATE verifications
			   SET cursor = $2, sessions = sessions + 1, bytes = bytes + $3, updated_at = now()
			 WHERE tenant_id = $1`, key.Tenant, key.Key, bytes)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// EndVerificationRound ends a round in which all sessions of a tenant were looked at, and begins the next one. What was
// found in sessions that are gone is forgotten.
func (s *Store) EndVerificationRound(ctx context.Context, tenant uuid.UUID) error {
	return s.Seeing(AllSessions).InTenant(ctx, tenant, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`
			DELETE FROM findings f
			 WHERE f.tenant_id = $1
			   AND NOT EXISTS (
			       SELECT
			         FROM sessions s
			        WHERE s.tenant_id = $1 AND s.key = f.session_key)`, tenant)
		batch.Queue(`
			UPDATE verifications
			   SET cursor = $2, finished_at = now(), last_sessions = sessions, last_bytes = bytes,
			       started_at = now(), sessions = 0, bytes = 0, updated_at = now()
			 WHERE tenant_id = $1`, tenant, uuid.Nil)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// Findings returns what the periodic verification found in a tenant's sessions, newest first.
func (s *Store) Findings(ctx context.Context, tenant uuid.UUID, limit int) ([]json.RawMessage, error) {
	return QueryRows(ctx, s, tenant, pgx.RowTo[json.RawMessage], `
		SELECT finding
		  FROM findings
		 WHERE tenant_id = $1
		 ORDER BY found_at DESC, session_key, n
		 LIMIT $2`, tenant, limit)
}
