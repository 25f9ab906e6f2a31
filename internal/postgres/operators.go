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

// The keys of operators belong to no tenant: only a store whose login has the rights of AdminRole reaches them.

const operatorKeyColumns = `id, name, last4, created_at, expires_at, revoked_at, last_used_at`

var scanOperatorKey = pgx.RowToStructByName[session.OperatorKey]

// asOperator runs do in one transaction that sees no tenant's rows.
func asOperator[T any](ctx context.Context, s *Store, do func(tx pgx.Tx) (T, error)) (T, error) {
	return InTx(ctx, s, uuid.Nil, do)
}

// CreateOperatorKey stores a new key of an operator, of whose text it keeps the digest and the last four characters. A
// nil lifetime is without an end.
func (s *Store) CreateOperatorKey(
	ctx context.Context, name, text string, lifetime *time.Duration,
) (made session.OperatorKey, err error) {
	digest, err := session.ParseOperatorKey(text)
	if err != nil {
		return made, err
	}
	return asOperator(ctx, s, func(tx pgx.Tx) (session.OperatorKey, error) {
		made, err := RowIn(ctx, tx, scanOperatorKey, `
			INSERT INTO operator_keys (id, name, digest, last4, expires_at)
			VALUES ($1, $2, $3, $4, now() + $5::interval)
			RETURNING `+operatorKeyColumns,
			uuid.Must(uuid.NewV7()), name, digest[:], text[len(text)-4:], lifetime)
		if err != nil {
			return made, err
		}
		return made, RecordOperator(ctx, tx, audit.KeyCreate, audit.Key, made.ID.String(),
			about{"name": made.Name, "expires_at": made.ExpiresAt})
	})
}

// OperatorByKey returns whom an operator's live key lets in; ErrUnauthorized if it does not exist, has expired or was
// revoked.
func (s *Store) OperatorByKey(ctx context.Context, digest [32]byte) (Authorized, error) {
	found, err := asOperator(ctx, s, func(tx pgx.Tx) (a Authorized, err error) {
		return RowIn(ctx, tx, func(row pgx.CollectableRow) (a Authorized, err error) {
			err = row.Scan(&a.APIKey, &a.NoteUse)
			return a, err
		}, `
			SELECT id, coalesce(last_used_at < now() - $2::interval, true)
			  FROM operator_keys
			 WHERE digest = $1
			   AND revoked_at IS NULL
			   AND (expires_at IS NULL OR expires_at > now())`, digest[:], session.UseNoted)
	})
	found.Kind = session.OperatorCaller
	return found, unknown(err)
}

// NoteOperatorUse records that an operator's key was used now, unless that was noted a moment ago.
func (s *Store) NoteOperatorUse(ctx context.Context, id uuid.UUID) error {
	return s.InTenant(ctx, uuid.Nil, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			UPDATE operator_keys
			   SET last_used_at = now()
			 WHERE id = $1
			   AND (last_used_at < now() - $2::interval) IS NOT FALSE`, id, session.UseNoted)
	})
}

// OperatorKeys returns a page of the keys of operators, newest first.
func (s *Store) OperatorKeys(ctx context.Context, page session.Page) ([]session.OperatorKey, error) {
	return asOperator(ctx, s, func(tx pgx.Tx) ([]session.OperatorKey, error) {
		return RowsIn(ctx, tx, scanOperatorKey, `
		SELECT `+operatorKeyColumns+`
		  FROM operator_keys
		 WHERE (created_at, id) < ($1, $2)
		 ORDER BY created_at DESC, id DESC
		 LIMIT $3`, PageArgs(uuid.Nil, page)[1:]...)
	})
}

// OperatorKey returns a key of an operator.
func (s *Store) OperatorKey(ctx context.Context, id uuid.UUID) (session.OperatorKey, error) {
	return QueryRow(ctx, s, uuid.Nil, scanOperatorKey, `
		SELECT `+operatorKeyColumns+`
		  FROM operator_keys
		 WHERE id = $1`, id)
}

// RevokeOperatorKey revokes a key of an operator; ErrNotFound. Revoking twice changes nothing.
func (s *Store) RevokeOperatorKey(ctx context.Context, id uuid.UUID) error {
	return s.InTenant(ctx, uuid.Nil, func(tx pgx.Tx) error {
		live, err := revoke(ctx, tx, `
			SELECT revoked_at IS NULL
			  FROM operator_keys
			 WHERE id = $1
			   FOR NO KEY UPDATE`, `
			UPDATE operator_keys
			   SET revoked_at = now()
			 WHERE id = $1`, id)
		if errors.Is(err, session.ErrNotFound) {
			err = fmt.Errorf("key %s: %w", id, err)
		}
		if err != nil || !live {
			return err
		}
		return RecordOperator(ctx, tx, audit.KeyRevoke, audit.Key, id.String(), nil)
	})
}
