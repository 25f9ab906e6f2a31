package verify

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
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
func (v *Verifier) Verification(ctx context.Context, tenant uuid.UUID) (Verification, error) {
	return postgres.InTx(ctx, v.Store, tenant, func(tx pgx.Tx) (at Verification, err error) {
		err = postgres.Exec(ctx, tx, `
			INSERT INTO verifications (tenant_id)
			VALUES ($1)
			ON CONFLICT DO NOTHING`, tenant)
		if err != nil {
			return at, err
		}
		return postgres.RowIn(ctx, tx, pgx.RowToStructByName[Verification], `
			SELECT cursor, started_at, sessions, bytes, finished_at, last_sessions, last_bytes
			  FROM verifications
			 WHERE tenant_id = $1`, tenant)
	})
}

// record records what was found in a session, in place of what was found in it before.
func (v *Verifier) record(ctx context.Context, key session.Key, of *Report) error {
	return v.Store.InTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`
			DELETE FROM findings
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
		for n := range of.Findings {
			batch.Queue(`
				INSERT INTO findings (tenant_id, session_key, n, kind, finding)
				VALUES ($1, $2, $3, $4, $5)`, key.Tenant, key.Key, n, string(of.Findings[n].Kind), of.Findings[n])
		}
		batch.Queue(`
			UPDATE verifications
			   SET cursor = $2, sessions = sessions + 1, bytes = bytes + $3, updated_at = now()
			 WHERE tenant_id = $1`, key.Tenant, key.Key, of.Bytes)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// endRound ends a round in which all sessions of a tenant were looked at, and begins the next one. What was
// found in sessions that are gone is forgotten.
func (v *Verifier) endRound(ctx context.Context, tenant uuid.UUID) error {
	return v.Store.Seeing(postgres.AllSessions).InTenant(ctx, tenant, func(tx pgx.Tx) error {
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
func (v *Verifier) Findings(ctx context.Context, tenant uuid.UUID, limit int) ([]Finding, error) {
	return postgres.QueryRows(ctx, v.Store, tenant, pgx.RowTo[Finding], `
		SELECT finding
		  FROM findings
		 WHERE tenant_id = $1
		 ORDER BY found_at DESC, session_key, n
		 LIMIT $2`, tenant, limit)
}

// stray are rows of a table that name a session that does not exist.
type stray struct {
	table   string
	session uuid.UUID
}

//go:embed strays.sql
var straysSQL string

// strayTables have rows of sessions, and a key that begins with tenant and session.
var strayTables = []string{"messages", "message_packs", "checkpoints", "results", "result_bodies", "result_chunks"}

// straysOf returns the rows of a tenant that name sessions that do not exist, of each table those of limit sessions at
// most.
func (v *Verifier) straysOf(ctx context.Context, tenant uuid.UUID, limit int) (found []stray, err error) {
	all := v.Store.Seeing(postgres.AllSessions)
	for _, table := range strayTables {
		sql := strings.ReplaceAll(straysSQL, "{table}", table)
		keys, err := postgres.QueryRows(ctx, all, tenant, pgx.RowTo[uuid.UUID], sql, tenant, limit)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			found = append(found, stray{table, key})
		}
	}
	return found, nil
}
