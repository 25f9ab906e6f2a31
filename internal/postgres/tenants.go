package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// CreateTenant creates a tenant with its default policy; ErrExists if the name is taken.
func (s *Store) CreateTenant(ctx context.Context, name string, policy session.Policy) (session.Tenant, error) {
	t := session.Tenant{ID: uuid.Must(uuid.NewV7()), Name: name}
	err := s.inTenant(ctx, t.ID, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			INSERT INTO tenants (id, name)
			VALUES ($1, $2)
			RETURNING created_at`, t.ID, name).Scan(&t.CreatedAt)
		if violates(err, "tenants_name_key") {
			return fmt.Errorf("tenant %q: %w", name, session.ErrExists)
		}
		if err != nil {
			return err
		}
		return insertDefaultPolicy(ctx, tx, t.ID, policy)
	})
	return t, err
}

// Tenants returns all tenants by name. The table has no row-level security: it belongs to the operator.
func (s *Store) Tenants(ctx context.Context) ([]session.Tenant, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id, name, created_at
		  FROM tenants
		 ORDER BY name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[session.Tenant])
}

// TenantByName returns a tenant; ErrNotFound.
func (s *Store) TenantByName(ctx context.Context, name string) (session.Tenant, error) {
	t := session.Tenant{Name: name}
	err := s.pool.QueryRow(ctx, `
		SELECT id, created_at
		  FROM tenants
		 WHERE name = $1`, name).Scan(&t.ID, &t.CreatedAt)
	if err != nil {
		return t, fmt.Errorf("tenant %q: %w", name, notFound(err))
	}
	return t, nil
}
