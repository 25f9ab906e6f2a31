package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// TenantPolicy reads a tenant's default policy.
func (s *Store) TenantPolicy(ctx context.Context, tenant uuid.UUID) (session.Policy, error) {
	return inTx(ctx, s, tenant, func(tx pgx.Tx) (session.Policy, error) {
		return readPolicy(ctx, tx, tenant, uuid.Nil, "")
	})
}

// insertDefaultPolicy stores version 1 of a new tenant's default.
func insertDefaultPolicy(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, p session.Policy) error {
	if p.Patch == nil {
		p.Patch = p.Document
	}
	p.Version = session.PolicyVersion{Tenant: 1}
	if err := exec(ctx, tx, putPolicy, policyArgs(tenant, uuid.Nil, p)...); err != nil {
		return err
	}
	_, err := recordPolicy(ctx, tx, session.Key{Tenant: tenant}, &p, p.Version.Tenant, 0, [32]byte{})
	return err
}

// ChangeTenantPolicy makes a new version of a tenant's default policy and merges it, in the same transaction, into the
// policies of the sessions that have their own layer. All other sessions refer to the default. No session is locked:
// its next append, or the sweep, finds out that it is due.
//
// Errors: *session.StaleVersionError, ErrIdempotencyReused, those of change.Edit, and an InvalidError that names
// sessions whose own layer contradicts the new default.
func (s *Store) ChangeTenantPolicy(
	ctx context.Context, tenant uuid.UUID, change session.TenantPolicy,
) (session.Policy, bool, error) {
	return once(ctx, s, tenant, change.Idempotency, func(tx pgx.Tx) (session.Policy, uuid.UUID, error) {
		p, err := changeTenantPolicy(ctx, tx, tenant, change)
		return p, uuid.Nil, err
	})
}

func changeTenantPolicy(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, change session.TenantPolicy,
) (session.Policy, error) {
	old, err := readPolicy(ctx, tx, tenant, uuid.Nil, "FOR NO KEY UPDATE")
	if err != nil {
		return old, err
	}
	if change.Expected != nil && *change.Expected != old.Version.Tenant {
		return old, &session.StaleVersionError{Expected: *change.Expected, Current: old.Version.Tenant}
	}
	next, err := change.Edit(old.Patch, nil)
	if err != nil || equal(next, old) {
		return old, err
	}
	next.Version.Tenant = old.Version.Tenant + 1
	_, err = recordPolicy(ctx, tx, session.Key{Tenant: tenant}, &next,
		next.Version.Tenant, old.Version.Tenant, change.ChangedBy)
	if err != nil {
		return old, err
	}
	if err := exec(ctx, tx, putPolicy, policyArgs(tenant, uuid.Nil, next)...); err != nil {
		return old, err
	}
	if err := addChore(ctx, tx, tenant, ChorePolicy); err != nil {
		return old, err
	}
	r := rebasing{tx: tx, tenant: tenant, below: next, edit: change.Rebase}
	return next, r.all(ctx)
}

const (
	rebaseBatch    = 500 // policies that are read at a time
	maxConflicting = 5   // sessions that an error names
)

// rebasing merges a new default into the policies of a tenant's sessions.
type rebasing struct {
	tx     pgx.Tx
	tenant uuid.UUID
	below  session.Policy
	edit   session.PolicyEdit
	wrong  []session.Problem // of sessions whose own layer contradicts the default
}

func (r *rebasing) all(ctx context.Context) error {
	for last, more := uuid.Nil, true; more && len(r.wrong) < maxConflicting; {
		own, err := r.next(ctx, last)
		if err == nil {
			err = r.each(ctx, own)
		}
		if err != nil {
			return err
		}
		if more = len(own) == rebaseBatch; more {
			last = own[len(own)-1].ID
		}
	}
	if len(r.wrong) > 0 {
		return &session.InvalidError{Code: "invalid_request", Problems: r.wrong}
	}
	return nil
}

// ownPolicy is the own layer of a session.
type ownPolicy struct {
	ID    uuid.UUID
	Patch json.RawMessage
}

// next reads the policies after the one with the id last. They cannot change meanwhile: changing one takes a share of
// the default's lock.
func (r *rebasing) next(ctx context.Context, last uuid.UUID) ([]ownPolicy, error) {
	return rowsIn(ctx, r.tx, pgx.RowToStructByName[ownPolicy], `
		SELECT id, patch
		  FROM policies
		 WHERE tenant_id = $1 AND id > $2
		 ORDER BY id
		 LIMIT $3`, r.tenant, last, rebaseBatch)
}

func (r *rebasing) each(ctx context.Context, own []ownPolicy) error {
	batch := &pgx.Batch{}
	for _, layer := range own {
		p, err := r.edit(r.below.Patch, layer.Patch)
		var invalid *session.InvalidError
		switch {
		case errors.As(err, &invalid):
			if err := r.addConflict(ctx, layer.ID, invalid); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			p.Version = r.below.Version
			batch.Queue(putPolicy, policyArgs(r.tenant, layer.ID, p)...)
		}
	}
	return r.tx.SendBatch(ctx, batch).Close()
}

// addConflict adds a session whose own layer contradicts the default.
func (r *rebasing) addConflict(ctx context.Context, policy uuid.UUID, invalid *session.InvalidError) error {
	if len(r.wrong) == maxConflicting {
		return nil
	}
	var id string
	err := r.tx.QueryRow(ctx, `
		SELECT id
		  FROM sessions
		 WHERE tenant_id = $1 AND policy_id = $2`, r.tenant, policy).Scan(&id)
	r.wrong = append(r.wrong, session.Problem{
		Code:   invalid.Problems[0].Code,
		Detail: fmt.Sprintf("the own policy of session %q does not fit on top of it: %s", id, invalid),
	})
	return err
}

// PolicyVersions returns the versions of a tenant's default below before, newest first; 0 does not bound them.
func (s *Store) PolicyVersions(
	ctx context.Context, tenant uuid.UUID, before int64, limit int,
) ([]session.PolicyRecord, error) {
	return inTx(ctx, s, tenant, func(tx pgx.Tx) ([]session.PolicyRecord, error) {
		return readVersions(ctx, tx, session.Key{Tenant: tenant}, before, limit)
	})
}

// SessionPolicyVersions returns the versions of a session's own layer like PolicyVersions; ErrNotFound.
func (s *Store) SessionPolicyVersions(
	ctx context.Context, at session.Address, before int64, limit int,
) ([]session.PolicyRecord, error) {
	return inSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]session.PolicyRecord, error) {
		return readVersions(ctx, tx, key, before, limit)
	})
}

func readVersions(
	ctx context.Context, tx pgx.Tx, key session.Key, before int64, limit int,
) ([]session.PolicyRecord, error) {
	if before == 0 {
		before = math.MaxInt32 + 1
	}
	return rowsIn(ctx, tx, pgx.RowToStructByName[session.PolicyRecord], `
		SELECT version, tenant_version, patch, document, changed_by, created_at
		  FROM policy_versions
		 WHERE tenant_id = $1
		   AND session_key = $2
		   AND version < $3::bigint
		 ORDER BY version DESC
		 LIMIT $4`, key.Tenant, key.Key, before, limit)
}
