package postgres

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// Quotas returns a tenant's quotas: its own over the defaults, member by member.
func (s *Store) Quotas(ctx context.Context, tenant uuid.UUID, defaults session.Quotas) (session.Quotas, error) {
	own, err := QueryRow(ctx, s, tenant, pgx.RowTo[json.RawMessage], `
		SELECT limits
		  FROM tenants
		 WHERE id = $1`, tenant)
	if err != nil {
		return defaults, err
	}
	quotas := defaults
	return quotas, json.Unmarshal(own, &quotas)
}

// SetQuotas gives a tenant quotas of its own: an object with some members of session.Quotas. ErrNotFound.
func (s *Store) SetQuotas(ctx context.Context, tenant uuid.UUID, own json.RawMessage) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		before, err := RowIn(ctx, tx, pgx.RowTo[json.RawMessage], `
			SELECT limits
			  FROM tenants
			 WHERE id = $1
			   FOR NO KEY UPDATE`, tenant)
		if err != nil {
			return err
		}
		after, err := RowIn(ctx, tx, pgx.RowTo[json.RawMessage], `
			UPDATE tenants
			   SET limits = $2
			 WHERE id = $1
			RETURNING limits`, tenant, own)
		if err != nil {
			return err
		}
		return recordLimits(ctx, tx, tenant, before, after)
	})
}

// recordLimits records that a tenant's own quotas are others than before, if they are.
func recordLimits(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, before, after json.RawMessage) error {
	if bytes.Equal(before, after) {
		return nil
	}
	return record(ctx, tx, tenant, auditEntry{
		action: audit.LimitsChange, object: audit.Tenant, id: tenant.String(), before: before, after: after,
	})
}

// Stored counts what of a tenant the database holds, and what its archives hold as if it were there. It reads all its
// messages' rows.
func (s *Store) Stored(ctx context.Context, tenant uuid.UUID) (session.Stored, error) {
	return QueryRow(ctx, s.Seeing(AllSessions), tenant, pgx.RowToStructByPos[session.Stored], `
		SELECT (SELECT count(*) FROM sessions WHERE tenant_id = $1),
		       (SELECT coalesce(sum(`+messageBytes+`), 0) FROM messages WHERE tenant_id = $1)
		     + (SELECT coalesce(sum(message_bytes), 0)
		          FROM session_archives
		         WHERE tenant_id = $1 AND state = 'archived')`, tenant)
}
