package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// KeyParams describes an API key to store.
type KeyParams struct {
	Name      string
	Digest    [32]byte
	Last4     string
	ExpiresAt *time.Time
}

// CreateKey stores a tenant's new key.
func (s *Store) CreateKey(ctx context.Context, tenant uuid.UUID, k KeyParams) (session.APIKey, error) {
	made := session.APIKey{ID: uuid.Must(uuid.NewV7()), Name: k.Name, Last4: k.Last4, ExpiresAt: k.ExpiresAt}
	err := s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			INSERT INTO api_keys (tenant_id, id, name, digest, last4, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6)
			RETURNING created_at`,
			[16]byte(tenant), [16]byte(made.ID), k.Name, k.Digest[:], k.Last4, k.ExpiresAt).Scan(&made.CreatedAt)
	})
	return made, err
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
	id, err = queryRow(ctx, s, tenant, pgx.RowTo[[16]byte], sql, [16]byte(tenant), digest[:])
	if errors.Is(err, session.ErrNotFound) {
		err = session.ErrUnauthorized
	}
	return id, err
}

// Keys returns a tenant's keys, oldest first.
func (s *Store) Keys(ctx context.Context, tenant uuid.UUID) ([]session.APIKey, error) {
	return queryRows(ctx, s, tenant, scanKey, `
		SELECT id, name, last4, created_at, expires_at, revoked_at
		  FROM api_keys
		 WHERE tenant_id = $1
		 ORDER BY created_at, id`, [16]byte(tenant))
}

func scanKey(row pgx.CollectableRow) (k session.APIKey, err error) {
	err = row.Scan((*[16]byte)(&k.ID), &k.Name, &k.Last4, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt)
	return k, err
}

// RevokeKey revokes a key; ErrNotFound if the tenant has no such key. Revoking twice changes nothing.
func (s *Store) RevokeKey(ctx context.Context, tenant, id uuid.UUID) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE api_keys
			   SET revoked_at = coalesce(revoked_at, now())
			 WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id))
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("key %s: %w", id, session.ErrNotFound)
		}
		return err
	})
}
