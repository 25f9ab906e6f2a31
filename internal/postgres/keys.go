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

const keyColumns = `id, name, last4, scopes, replaces, created_at, expires_at, revoked_at, last_used_at`

var scanKey = pgx.RowToStructByName[session.APIKey]

// CreateKey stores a tenant's new key, of whose text it keeps the digest and the last four characters.
//
// Errors: ErrTooManyKeys.
func (s *Store) CreateKey(ctx context.Context, tenant uuid.UUID, k session.NewKey) (session.APIKey, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (session.APIKey, error) {
		return makeKey(ctx, tx, tenant, k)
	})
}

func makeKey(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, k session.NewKey) (session.APIKey, error) {
	made, err := insertKey(ctx, tx, tenant, k, nil)
	if err != nil {
		return made, err
	}
	return made, record(ctx, tx, tenant, auditEntry{
		action: audit.KeyCreate, object: audit.Key, id: made.ID.String(),
		detail: about{"name": made.Name, "scopes": made.Scopes, "expires_at": made.ExpiresAt},
	})
}

func insertKey(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, k session.NewKey, replaces *uuid.UUID,
) (made session.APIKey, err error) {
	_, digest, err := session.ParseKey(k.Text)
	if err != nil {
		return made, err
	}
	if err := LockCount(ctx, tx, tenant, "api_keys"); err != nil {
		return made, err
	}
	live, err := RowIn(ctx, tx, pgx.RowTo[int], `
		SELECT count(*)
		  FROM api_keys
		 WHERE tenant_id = $1
		   AND revoked_at IS NULL
		   AND (expires_at IS NULL OR expires_at > now())`, tenant)
	if err != nil {
		return made, err
	}
	if live >= session.MaxLiveKeys {
		return made, session.ErrTooManyKeys
	}
	return RowIn(ctx, tx, scanKey, `
		INSERT INTO api_keys (tenant_id, id, name, digest, last4, scopes, replaces, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval)
		RETURNING `+keyColumns,
		tenant, uuid.Must(uuid.NewV7()), k.Name, digest[:], k.Text[len(k.Text)-4:], k.Scopes, replaces, k.Lifetime)
}

// LockCount lets one transaction at a time count what a tenant has in a table and add to it. The logins that serve
// cannot lock the tenant's row.
func LockCount(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, table string) error {
	return Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1 || $2::text, 0))`, table, tenant)
}

// RotateKey stores a new key in the place of a live one, which gives it its name, its scopes and its lifetime, if it
// has one. The old key ends after the overlap, unless it ends earlier. What allowed says of the key's scopes, in the
// transaction, refuses the rotation.
//
// Errors: ErrNotFound, ErrKeyEnded, ErrTooManyKeys, ErrKeyRotated, which names the key that has its place already, and
// what allowed returns.
func (s *Store) RotateKey(
	ctx context.Context, tenant, id uuid.UUID, text string, overlap time.Duration, allowed func([]session.Scope) error,
) (session.APIKey, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (made session.APIKey, err error) {
		old, err := RowIn(ctx, tx, scanKey, `
			SELECT `+keyColumns+`
			  FROM api_keys
			 WHERE tenant_id = $1 AND id = $2
			   FOR NO KEY UPDATE`, tenant, id)
		switch {
		case err != nil:
			return made, fmt.Errorf("key %s: %w", id, err)
		case old.Ended(time.Now()):
			return made, session.ErrKeyEnded
		}
		if err := allowed(old.Scopes); err != nil {
			return made, err
		}
		if err := refuseRotated(ctx, tx, tenant, id); err != nil {
			return made, err
		}
		k := session.NewKey{Name: old.Name, Text: text, Scopes: old.Scopes}
		if old.ExpiresAt != nil {
			k.Lifetime = new(old.ExpiresAt.Sub(old.CreatedAt))
		}
		if made, err = insertKey(ctx, tx, tenant, k, &id); err != nil {
			return made, err
		}
		ends, err := RowIn(ctx, tx, pgx.RowTo[time.Time], `
			UPDATE api_keys
			   SET expires_at = least(expires_at, now() + $3::interval)
			 WHERE tenant_id = $1 AND id = $2
			RETURNING expires_at`, tenant, id, overlap)
		if err != nil {
			return made, err
		}
		return made, record(ctx, tx, tenant, auditEntry{
			action: audit.KeyRotate, object: audit.Key, id: id.String(),
			detail: about{"key": made.ID, "expires_at": made.ExpiresAt, "old_expires_at": ends},
		})
	})
}

// refuseRotated returns ErrKeyRotated for a key that was rotated before: what is left of its life is the overlap, and
// no lifetime for another key.
func refuseRotated(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	newer, err := RowIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT id
		  FROM api_keys
		 WHERE tenant_id = $1 AND replaces = $2
		 ORDER BY created_at DESC, id DESC
		 LIMIT 1`, tenant, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: it was rotated before, and %s is the newer one. Rotate that, or make another with "+
			"POST /v1/keys", session.ErrKeyRotated, newer)
	}
	return err
}

// Authorized is whom a key lets in.
type Authorized struct {
	session.Caller
	NoteUse bool // the last use that is noted was long ago
}

// CallerByKey returns whom a tenant's live key lets in; ErrUnauthorized if it does not exist, has expired or was
// revoked.
func (s *Store) CallerByKey(ctx context.Context, tenant uuid.UUID, digest [32]byte) (Authorized, error) {
	sql := `
		SELECT k.id, k.scopes, coalesce(t.suspended, ''), coalesce(k.last_used_at < now() - $3::interval, true)
		  FROM api_keys k
		  JOIN tenants t ON t.id = k.tenant_id
		 WHERE k.tenant_id = $1
		   AND k.digest = $2
		   AND k.revoked_at IS NULL
		   AND (k.expires_at IS NULL OR k.expires_at > now())`
	found, err := QueryRow(ctx, s, tenant, func(row pgx.CollectableRow) (a Authorized, err error) {
		err = row.Scan(&a.APIKey, &a.Scopes, &a.Suspended, &a.NoteUse)
		return a, err
	}, sql, tenant, digest[:], session.UseNoted)
	found.Kind, found.Tenant = session.TenantCaller, tenant
	return found, unknown(err)
}

// unknown returns ErrUnauthorized for a key or token that was not found.
func unknown(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return session.ErrUnauthorized
	}
	return err
}

// NoteUse records that a tenant's key was used now, unless that was noted a moment ago.
func (s *Store) NoteUse(ctx context.Context, tenant, id uuid.UUID) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			UPDATE api_keys
			   SET last_used_at = now()
			 WHERE tenant_id = $1 AND id = $2
			   AND (last_used_at < now() - $3::interval) IS NOT FALSE`, tenant, id, session.UseNoted)
	})
}

// Keys returns a page of a tenant's keys, newest first.
func (s *Store) Keys(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.APIKey, error) {
	return QueryRows(ctx, s, tenant, scanKey, `
		SELECT `+keyColumns+`
		  FROM api_keys
		 WHERE tenant_id = $1`+NewestFirst(`created_at`, `id`), PageArgs(tenant, page)...)
}

// OwnKey returns a key with its tenant.
func (s *Store) OwnKey(ctx context.Context, tenant, id uuid.UUID) (session.OwnKey, error) {
	return QueryRow(ctx, s, tenant, pgx.RowToStructByName[session.OwnKey], `
		SELECT tenant_id AS tenant, (SELECT name FROM tenants WHERE id = $1) AS tenant_name, `+keyColumns+`
		  FROM api_keys
		 WHERE tenant_id = $1 AND id = $2`, tenant, id)
}

// RevokeKey revokes a key; ErrNotFound if the tenant has no such key. Revoking twice changes nothing.
func (s *Store) RevokeKey(ctx context.Context, tenant, id uuid.UUID) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
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
		return record(ctx, tx, tenant, auditEntry{action: audit.KeyRevoke, object: audit.Key, id: id.String()})
	})
}

// revoke revokes what a statement finds, and reports whether that was not revoked before; ErrNotFound.
func revoke(ctx context.Context, tx pgx.Tx, find, change string, args ...any) (live bool, err error) {
	live, err = RowIn(ctx, tx, pgx.RowTo[bool], find, args...)
	if err != nil || !live {
		return false, err
	}
	return true, Exec(ctx, tx, change, args...)
}
