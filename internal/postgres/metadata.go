package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// fewSessions is how many sessions have a pair of metadata that is read as a whole, in whatever order a list is.
const fewSessions = 500

// MetadataPair is a pair that all sessions have which some metadata finds.
type MetadataPair struct {
	Hash int64
	Few  bool // fewer than fewSessions have it
}

// RarestPair returns the pair of metadata that the fewest sessions have, nil if it has none, or if the pairs of the
// tenant's sessions are not all written.
func RarestPair(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, metadata json.RawMessage) (*MetadataPair, error) {
	if metadata == nil {
		return nil, nil
	}
	found, err := RowIn(ctx, tx, pgx.RowToStructByPos[MetadataPair], `
		SELECT p.pair, c.n < $3
		  FROM metadata_pairs($2) AS p (pair)
		 CROSS JOIN LATERAL (
		       SELECT count(*) AS n
		         FROM (SELECT
		                 FROM session_metadata
		                WHERE tenant_id = $1 AND pair = p.pair
		                LIMIT $3) m) c
		 WHERE NOT EXISTS (
		       SELECT
		         FROM tenant_tasks
		        WHERE tenant_id = $1 AND kind = $4)
		 ORDER BY c.n
		 LIMIT 1`, tenant, metadata, fewSessions, TaskMetadata)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	return &found, err
}

// pairedSQL is the condition that a session s of the tenant @tenant has the pair @pair.
const pairedSQL = `s.key IN (
	SELECT session_key
	  FROM session_metadata
	 WHERE tenant_id = @tenant AND pair = @pair)`

// createdPairedSQL returns the statement of the sessions with a pair, an argument, by their creation; listedSQL says
// what the others are.
func createdPairedSQL(pair int) string {
	return `SELECT session_key, created_at AS listed_at
			           FROM session_metadata
			          WHERE tenant_id = $1
			            AND pair = $` + strconv.Itoa(pair) + `
			            AND (created_at, session_key) < ($2, $3)
			          ORDER BY created_at DESC, session_key DESC`
}

// appendedPairedSQL returns the statement of the few sessions with a pair, an argument, by their last append.
func appendedPairedSQL(pair int) string {
	return `SELECT u.session_key, u.appended_at AS listed_at
			           FROM (SELECT session_key
			                   FROM session_metadata
			                  WHERE tenant_id = $1 AND pair = $` + strconv.Itoa(pair) + `
			                 OFFSET 0) m
			          CROSS JOIN LATERAL (
			                SELECT session_key, appended_at
			                  FROM usage_sessions
			                 WHERE tenant_id = $1 AND session_key = m.session_key
			                OFFSET 0) u
			          WHERE (u.appended_at, u.session_key) < ($2, $3)
			          ORDER BY u.appended_at DESC, u.session_key DESC`
}

// IndexMetadata writes the pairs of the next sessions of a TaskMetadata, at most limit, and ends the task with the
// last session. It returns how many it looked at.
func (s *Store) IndexMetadata(ctx context.Context, c Task, limit int) (looked int, err error) {
	var last *uuid.UUID
	err = s.Seeing(WithCold).InTenant(ctx, c.Tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			WITH looked AS (
				SELECT key, created_at, metadata
				  FROM sessions
				 WHERE tenant_id = $1 AND key > $2
				 ORDER BY key
				 LIMIT $3
				   FOR KEY SHARE -- none is deleted meanwhile
			), written AS (
				INSERT INTO session_metadata (tenant_id, session_key, pair, created_at)
				SELECT $1, l.key, p.pair, l.created_at
				  FROM looked l
				 CROSS JOIN LATERAL metadata_pairs(l.metadata) AS p (pair)
				 ORDER BY l.key, p.pair
				    ON CONFLICT DO NOTHING
			)
			SELECT count(*), (array_agg(key ORDER BY key DESC))[1]
			  FROM looked`, c.Tenant, c.Cursor, limit).Scan(&looked, &last)
	})
	if err != nil {
		return looked, err
	}
	if looked < limit {
		return looked, s.EndTaskUnless(ctx, c, "")
	}
	return looked, s.advanceTask(ctx, c, *last)
}
