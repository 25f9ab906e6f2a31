package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
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
		if err := insertDefaultPolicy(ctx, tx, t.ID, policy); err != nil {
			return err
		}
		return recordOperator(ctx, tx, deed{
			action: audit.TenantCreate, object: audit.Tenant, id: t.ID.String(), detail: about{"name": name},
		})
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

const keyColumns = `id, name, last4, created_at, expires_at, revoked_at`

// CreateKey stores a tenant's new key, of whose text it keeps the digest and the last four characters. A nil expiry is
// none.
func (s *Store) CreateKey(ctx context.Context, tenant uuid.UUID, name, text string, expiry *time.Time) (
	session.APIKey, error,
) {
	_, digest, err := session.ParseKey(text)
	if err != nil {
		return session.APIKey{}, err
	}
	return inTx(ctx, s, tenant, func(tx pgx.Tx) (session.APIKey, error) {
		made, err := rowIn(ctx, tx, pgx.RowToStructByName[session.APIKey], `
			INSERT INTO api_keys (tenant_id, id, name, digest, last4, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6)
			RETURNING `+keyColumns,
			tenant, uuid.Must(uuid.NewV7()), name, digest[:], text[len(text)-4:], expiry)
		if err != nil {
			return made, err
		}
		return made, record(ctx, tx, tenant, deed{
			action: audit.KeyCreate, object: audit.Key, id: made.ID.String(),
			detail: about{"name": name, "expires_at": expiry},
		})
	})
}

// KeyByDigest returns the id of a tenant's live key; ErrUnauthorized if it does not exist, has expired or was revoked.
func (s *Store) KeyByDigest(ctx context.Context, tenant uuid.UUID, digest [32]byte) (id uuid.UUID, err error) {
	sql := `
		SELECT id
		  FROM api_keys
		 WHERE tenant_id = $1
		   AND digest = $2
		   AND revoked_at IS NULL
		   AND (expires_at IS NULL OR expires_at > now())`
	id, err = queryRow(ctx, s, tenant, pgx.RowTo[uuid.UUID], sql, tenant, digest[:])
	if errors.Is(err, session.ErrNotFound) {
		err = session.ErrUnauthorized
	}
	return id, err
}

// Keys returns a tenant's keys, oldest first.
func (s *Store) Keys(ctx context.Context, tenant uuid.UUID) ([]session.APIKey, error) {
	return queryRows(ctx, s, tenant, pgx.RowToStructByName[session.APIKey], `
		SELECT `+keyColumns+`
		  FROM api_keys
		 WHERE tenant_id = $1
		 ORDER BY created_at, id`, tenant)
}

// RevokeKey revokes a key; ErrNotFound if the tenant has no such key. Revoking twice changes nothing.
func (s *Store) RevokeKey(ctx context.Context, tenant, id uuid.UUID) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		live, err := revoke(ctx, tx, `
			SELECT revoked_at IS NULL
			  FROM api_keys
			 WHERE tenant_id = $1 AND id = $2
			   FOR NO KEY UPDATE`, `
			UPDATE api_keys
			   SET revoked_at = now()
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
		if errors.Is(err, session.ErrNotFound) {
			err = fmt.Errorf("key %s: %w", id, err)
		}
		if err != nil || !live {
			return err
		}
		return record(ctx, tx, tenant, deed{action: audit.KeyRevoke, object: audit.Key, id: id.String()})
	})
}

// revoke revokes what a statement finds, and reports whether that was not revoked before; ErrNotFound.
func revoke(ctx context.Context, tx pgx.Tx, find, change string, args ...any) (live bool, err error) {
	live, err = rowIn(ctx, tx, pgx.RowTo[bool], find, args...)
	if err != nil || !live {
		return false, err
	}
	return true, exec(ctx, tx, change, args...)
}
