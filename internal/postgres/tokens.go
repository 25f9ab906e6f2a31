package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

const tokenColumns = `id, name, last4, scopes, made_by, created_at, expires_at, revoked_at`

var scanToken = pgx.RowToStructByName[session.Token]

// CreateToken stores a session's new token, of whose text it keeps the digest and the last four characters. It forgets
// the session's tokens that ended long ago.
//
// Errors: ErrNotFound, ErrTooManyTokens; ErrUnauthorized if the key that asks was revoked a moment ago.
func (s *Store) CreateToken(ctx context.Context, at session.Address, t session.NewToken) (session.Token, error) {
	_, digest, err := session.ParseToken(t.Text)
	if err != nil {
		return session.Token{}, err
	}
	return ChangeInSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (session.Token, error) {
		if err := roomForToken(ctx, tx, key); err != nil {
			return session.Token{}, err
		}
		made, err := RowIn(ctx, tx, scanToken, `
			INSERT INTO session_tokens (tenant_id, session_key, id, name, digest, last4, scopes, made_by, expires_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, k.id, now() + $8::interval
			  FROM api_keys k
			 WHERE k.tenant_id = $1
			   AND k.digest = $9
			   AND k.revoked_at IS NULL
			   AND (k.expires_at IS NULL OR k.expires_at > now())
			RETURNING `+tokenColumns,
			key.Tenant, key.Key, uuid.Must(uuid.NewV7()), t.Name, digest[:], t.Text[len(t.Text)-4:], t.Scopes,
			t.Lifetime, t.MadeBy[:])
		if err != nil {
			return made, unknown(err)
		}
		return made, recordSession(ctx, tx, at, audit.TokenCreate, about{
			"token": made.ID, "scopes": made.Scopes, "expires_at": made.ExpiresAt,
		})
	})
}

// roomForToken deletes the tokens of a session that ended long ago, and counts those that live.
func roomForToken(ctx context.Context, tx pgx.Tx, key session.Key) error {
	err := Exec(ctx, tx, `
		DELETE FROM session_tokens
		 WHERE tenant_id = $1 AND session_key = $2
		   AND expires_at < now() - $3::interval`, key.Tenant, key.Key, session.KeptTokens)
	if err != nil {
		return err
	}
	live, err := RowIn(ctx, tx, pgx.RowTo[int], `
		SELECT count(*)
		  FROM session_tokens
		 WHERE tenant_id = $1 AND session_key = $2
		   AND revoked_at IS NULL AND expires_at > now()`, key.Tenant, key.Key)
	if err == nil && live >= session.MaxLiveTokens {
		err = session.ErrTooManyTokens
	}
	return err
}

// CallerByToken returns whom a live token lets in. The token's row goes with its session, so a session that is made
// anew under the same id has none.
//
// Errors: ErrArchived if the session is archived; ErrUnauthorized if the token does not exist, has expired or was
// revoked, or the key that made it was.
func (s *Store) CallerByToken(ctx context.Context, tenant uuid.UUID, digest [32]byte) (session.Caller, error) {
	sql := `
		SELECT s.id, s.key, c.id, k.id, c.scopes, coalesce(t.suspended, ''), s.archived
		  FROM session_tokens c
		  JOIN sessions s ON s.tenant_id = c.tenant_id AND s.key = c.session_key
		  JOIN api_keys k ON k.tenant_id = c.tenant_id AND k.id = c.made_by
		  JOIN tenants t ON t.id = c.tenant_id
		 WHERE c.tenant_id = $1
		   AND c.digest = $2
		   AND c.revoked_at IS NULL
		   AND c.expires_at > now()
		   AND k.revoked_at IS NULL`
	archived := false
	s = s.Seeing(AllSessions)
	found, err := QueryRow(ctx, s, tenant, func(row pgx.CollectableRow) (c session.Caller, err error) {
		var scopes []session.Scope
		err = row.Scan(&c.Session, &c.Key, &c.Token, &c.APIKey, &scopes, &c.Suspended, &archived)
		c.Scopes = session.OfTokens(scopes)
		return c, err
	}, sql, tenant, digest[:])
	found.Kind, found.Tenant = session.TokenCaller, tenant
	if err == nil && archived {
		err = session.ErrArchived
	}
	return found, unknown(err)
}

// Tokens lists a session's tokens, newest first; ErrNotFound.
func (s *Store) Tokens(ctx context.Context, at session.Address, page session.Page) ([]session.Token, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]session.Token, error) {
		args := append(PageArgs(at.Tenant, page), key.Key)
		return RowsIn(ctx, tx, scanToken, `
		SELECT `+tokenColumns+`
		  FROM session_tokens
		 WHERE tenant_id = $1 AND session_key = $5`+NewestFirst(`created_at`, `id`), args...)
	})
}

// RevokeToken revokes a session's token; ErrNotFound. Revoking twice changes nothing.
func (s *Store) RevokeToken(ctx context.Context, at session.Address, id uuid.UUID) error {
	_, err := ChangeInSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (struct{}, error) {
		live, err := revoke(ctx, tx, `
			SELECT revoked_at IS NULL
			  FROM session_tokens
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3
			   FOR NO KEY UPDATE`, `
			UPDATE session_tokens
			   SET revoked_at = now()
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3`, key.Tenant, key.Key, id)
		if errors.Is(err, session.ErrNotFound) {
			err = fmt.Errorf("token %s: %w", id, err)
		}
		if err != nil || !live {
			return struct{}{}, err
		}
		return struct{}{}, recordSession(ctx, tx, at, audit.TokenRevoke, about{"token": id})
	})
	return err
}
