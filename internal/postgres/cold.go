package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// PlaceOf returns where what was said in a session is; ErrNotFound.
func (s *Store) PlaceOf(ctx context.Context, at session.Address) (session.Place, error) {
	return QueryRow(ctx, s.Seeing(AllSessions), at.Tenant, pgx.RowToStructByPos[session.Place], `
		SELECT s.key, s.archived, s.frozen_at IS NOT NULL AND NOT s.archived,
		       coalesce(u.back_at > now() - interval '1 minute', false)
		  FROM sessions s
		  LEFT JOIN usage_sessions u ON u.tenant_id = s.tenant_id AND u.session_key = s.key
		 WHERE s.tenant_id = $1 AND s.id = $2`, at.Tenant, at.ID)
}

// ColdState returns how far a cold session is on its way there or back; "" for one that is not cold, or not there.
func (s *Store) ColdState(ctx context.Context, key session.Key) (session.ArchiveState, error) {
	return QueryRow(ctx, s.Seeing(WithCold), key.Tenant, pgx.RowTo[session.ArchiveState], `
		SELECT coalesce((SELECT a.state
		                   FROM session_archives a
		                   JOIN sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
		                  WHERE a.tenant_id = $1 AND a.session_key = $2 AND NOT s.archived), '')`, key.Tenant, key.Key)
}

// CountCold counts a tenant's cold sessions, up to a limit, in a transaction that sees none of them.
func CountCold(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, limit int) (cold int64, err error) {
	if err := Exec(ctx, tx, seeMore, WithCold); err != nil {
		return 0, err
	}
	cold, err = RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT count(*)
		  FROM (SELECT
		          FROM sessions
		         WHERE tenant_id = $1 AND frozen_at IS NOT NULL AND NOT archived
		         LIMIT $2) s`, tenant, limit)
	if err != nil {
		return 0, err
	}
	return cold, Exec(ctx, tx, seeMore, Served)
}

// ColdOf returns those of a list of sessions' ids that are cold.
func (s *Store) ColdOf(ctx context.Context, tenant uuid.UUID, ids []string) ([]string, error) {
	return QueryRows(ctx, s.Seeing(AllSessions), tenant, pgx.RowTo[string], `
		SELECT id
		  FROM sessions
		 WHERE tenant_id = $1 AND id = ANY ($2) AND frozen_at IS NOT NULL AND NOT archived`, tenant, ids)
}
