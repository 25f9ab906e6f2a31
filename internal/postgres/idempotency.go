package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// replay decodes the answer that was given to an earlier request with this key into answer, and reports whether there
// was one. The caller holds the lock that orders the two requests, or relies on the unique key in remember.
// ErrIdempotencyReused if the key was used for another request.
func replay(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, id *session.Idempotency, answer any,
) (found bool, err error) {
	if id == nil {
		return false, nil
	}
	var digest []byte
	var stored string
	err = tx.QueryRow(ctx, `
		SELECT digest, answer
		  FROM idempotency
		 WHERE tenant_id = $1 AND route = $2 AND key = $3`, tenant, id.Route, id.Key).Scan(&digest, &stored)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if string(digest) != string(id.Digest[:]) {
		return false, fmt.Errorf("Idempotency-Key %q: %w", id.Key, session.ErrIdempotencyReused)
	}
	return true, json.Unmarshal([]byte(stored), answer)
}

// remember stores the answer in the transaction of the request's effect, so that neither is committed without the
// other. A second request with the same key waits here for the first one's commit and then fails on the primary key.
func remember(ctx context.Context, tx pgx.Tx, key session.Key, id *session.Idempotency, answer any) error {
	if id == nil {
		return nil
	}
	stored, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return Exec(ctx, tx, `
		INSERT INTO idempotency (tenant_id, route, key, session_key, digest, answer)
		VALUES ($1, $2, $3, $4, $5, $6)`, key.Tenant, id.Route, id.Key, key.Key, id.Digest[:], string(stored))
}

// onceInSession runs do like Once, under the lock of a session; ErrNotFound, ErrSessionBusy.
func onceInSession[T any](
	ctx context.Context, s *Store, at session.Address, id *session.Idempotency,
	do func(tx pgx.Tx, row lockedSession) (T, error),
) (T, bool, error) {
	pen, err := s.TurnToWrite(ctx, at)
	if err != nil {
		var none T
		return none, false, err
	}
	defer pen.Done()
	return Once(ctx, s, at.Tenant, id, func(tx pgx.Tx) (answer T, key uuid.UUID, err error) {
		row, err := lockSession(ctx, tx, at)
		if err != nil {
			return answer, uuid.Nil, err
		}
		answer, err = do(tx, row)
		return answer, row.Key.Key, err
	})
}

// Once runs do in a transaction of the tenant, at most once for each Idempotency-Key, and reports whether the answer is
// that of an earlier request. Of two requests at the same time the second gets the first one's answer, whatever it
// failed by: what the first one changed may be why, and then its answer is stored.
func Once[T any](
	ctx context.Context, s *Store, tenant uuid.UUID, id *session.Idempotency, do func(tx pgx.Tx) (T, uuid.UUID, error),
) (answer T, replayed bool, err error) {
	err = s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		if replayed, err = replay(ctx, tx, tenant, id, &answer); err != nil || replayed {
			return err
		}
		var about uuid.UUID
		if answer, about, err = do(tx); err != nil {
			return err
		}
		return remember(ctx, tx, session.Key{Tenant: tenant, Key: about}, id, answer)
	})
	if id == nil || err == nil || ctx.Err() != nil {
		return answer, replayed, err
	}
	failed := err
	err = s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		replayed, err = replay(ctx, tx, tenant, id, &answer)
		return err
	})
	if replayed || errors.Is(err, session.ErrIdempotencyReused) {
		return answer, replayed, err
	}
	return answer, false, failed
}

// Keyed runs do once for an Idempotency-Key, like Once: each transaction that do begins on the Store that it gets is a
// part of one, which stores the answer, too. at.ID is of the session that it is about, "" for none. The parts run one
// after another, and what one has written is undone if a later one, or do, fails.
func Keyed[T any](
	ctx context.Context, s *Store, at session.Address, id *session.Idempotency, do func(inside *Store) (T, error),
) (T, bool, error) {
	unrepeated := *s // do has read a request
	unrepeated.scope.once = true
	return Once(ctx, &unrepeated, at.Tenant, id, func(tx pgx.Tx) (answer T, about uuid.UUID, err error) {
		inside := unrepeated
		inside.scope.outer = tx
		if answer, err = do(&inside); err != nil {
			return answer, about, err
		}
		if err := see(ctx, tx, at.Tenant, AllSessions); err != nil || at.ID == "" {
			return answer, about, err
		}
		about, err = sessionKey(ctx, tx, at)
		return answer, about, err
	})
}

// within runs do as a part of the outer transaction, undone by itself if it fails.
func (s *Store) within(ctx context.Context, tenant uuid.UUID, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.scope.outer, func(tx pgx.Tx) error {
		if err := see(ctx, tx, tenant, s.scope.sees); err != nil {
			return err
		}
		return do(tx)
	})
}

func see(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sessions Sessions) error {
	return Exec(ctx, tx, `
		SELECT set_config('app.tenant_id', $1, true), set_config('varve.frozen', $2, true)`, tenant.String(), sessions)
}
