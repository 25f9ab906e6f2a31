package postgres

import (
	"context"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// TenantPolicy reads a tenant's default policy.
func (s *Store) TenantPolicy(ctx context.Context, tenant uuid.UUID) (session.Policy, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (session.Policy, error) {
		return readPolicy(ctx, tx, tenant, uuid.Nil, "")
	})
}

// insertDefaultPolicy stores version 1 of a new tenant's default.
func insertDefaultPolicy(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, p session.Policy) error {
	if p.Patch == nil {
		p.Patch = p.Document
	}
	p.Version = session.PolicyVersion{Tenant: 1}
	if err := Exec(ctx, tx, putPolicy, policyArgs(tenant, uuid.Nil, p)...); err != nil {
		return err
	}
	_, err := recordPolicy(ctx, tx, session.Key{Tenant: tenant}, &p, 0, 0, [32]byte{})
	return err
}

// ChangeTenantPolicy makes a new version of a tenant's default policy. No session and no policy of one is touched: the
// next append, which is judged by the new default, or the sweep merges it into a session's own policy and finds out
// that the session is due.
//
// Errors: *session.StaleVersionError, ErrIdempotencyReused, those of change.Edit, and an InvalidError that names
// sessions whose own layer contradicts the new default.
func (s *Store) ChangeTenantPolicy(
	ctx context.Context, tenant uuid.UUID, change session.TenantPolicy,
) (session.Policy, bool, error) {
	return Once(ctx, s, tenant, change.Idempotency, func(tx pgx.Tx) (session.Policy, uuid.UUID, error) {
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
	next.Version.Tenant, err = recordPolicy(ctx, tx, session.Key{Tenant: tenant}, &next, 0, old.Version.Tenant,
		change.ChangedBy)
	if err != nil {
		return old, err
	}
	if err := refuseContradicting(ctx, tx, tenant, next.Patch, change.Rebase); err != nil {
		return old, err
	}
	if err := Exec(ctx, tx, putPolicy, policyArgs(tenant, uuid.Nil, next)...); err != nil {
		return old, err
	}
	if err := AddTask(ctx, tx, tenant, TaskPolicy); err != nil {
		return old, err
	}
	return next, record(ctx, tx, tenant, auditEntry{
		action: audit.PolicyChange, object: audit.Tenant, id: tenant.String(),
		detail: about{"version": next.Version.Tenant}, before: old.Patch, after: next.Patch,
	})
}

// PolicyVersions returns the versions of a tenant's default below before, newest first; 0 does not bound them.
func (s *Store) PolicyVersions(
	ctx context.Context, tenant uuid.UUID, before int64, limit int,
) ([]session.PolicyRecord, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) ([]session.PolicyRecord, error) {
		return readVersions(ctx, tx, session.Key{Tenant: tenant}, before, limit)
	})
}

// SessionPolicyVersions returns the versions of a session's own layer like PolicyVersions; ErrNotFound.
func (s *Store) SessionPolicyVersions(
	ctx context.Context, at session.Address, before int64, limit int,
) ([]session.PolicyRecord, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]session.PolicyRecord, error) {
		return readVersions(ctx, tx, key, before, limit)
	})
}

func readVersions(
	ctx context.Context, tx pgx.Tx, key session.Key, before int64, limit int,
) ([]session.PolicyRecord, error) {
	if before == 0 {
		before = math.MaxInt32 + 1
	}
	return RowsIn(ctx, tx, pgx.RowToStructByName[session.PolicyRecord], `
		SELECT version, tenant_version, patch, document, changed_by, created_at
		  FROM policy_versions
		 WHERE tenant_id = $1
		   AND session_key = $2
		   AND version < $3::bigint
		 ORDER BY version DESC
		 LIMIT $4`, key.Tenant, key.Key, before, limit)
}
