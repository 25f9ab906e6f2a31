package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// A session's own policy is stored merged with its tenant's default. A change of the default does not touch it: it is
// merged again by the first append that finds it outdated, under the session's lock, or by the sweep. Until then reads
// merge what they show.

// outdatedSQL is the condition that a policy p was merged with an older default than the present one of the tenant $1.
const outdatedSQL = `
	(p.id <> '00000000-0000-0000-0000-000000000000' AND p.tenant_version < (
	       SELECT d.tenant_version
	         FROM policies d
	        WHERE d.tenant_id = $1 AND d.id = '00000000-0000-0000-0000-000000000000'))`

// layersSQL is what layers reads of a policy p: nothing if it is up to date.
const layersSQL = `
	CASE WHEN ` + outdatedSQL + `
	     THEN (SELECT json_build_object('Tenant', d.patch, 'Version', d.tenant_version, 'Own', p.patch)
	             FROM policies d
	            WHERE d.tenant_id = $1 AND d.id = '00000000-0000-0000-0000-000000000000') END`

// layers are what an outdated policy is merged from.
type layers struct {
	Tenant, Own json.RawMessage
	Version     int // of the tenant's default
}

// merge brings a policy that was read together with its layers, nil if it is up to date, to the tenant's default. An
// own layer that contradicts the default leaves the policy as it was.
func (l *layers) merge(p *session.Policy) error {
	if l == nil {
		return nil
	}
	merged, err := policy.ResolveStored(l.Tenant, l.Own, "")
	var invalid *session.InvalidError
	switch {
	case errors.As(err, &invalid):
		merged = *p
	case err != nil:
		return err
	}
	merged.Version = session.PolicyVersion{Tenant: l.Version, Session: p.Version.Session}
	if p.Patch == nil {
		merged.Patch = nil // it was not asked for
	}
	*p = merged
	return nil
}

// mergeAgain merges an outdated policy anew and stores it.
func mergeAgain(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	var p session.Policy
	var l *layers
	err := tx.QueryRow(ctx, `
		SELECT p.trigger_ratio, p.hard_ratio, p.cache_ttl, p.document, p.patch, p.tenant_version, p.session_version,
		       `+layersSQL+`
		  FROM policies p
		 WHERE p.tenant_id = $1 AND p.id = $2
		   FOR NO KEY UPDATE OF p`, tenant, id).
		Scan(&p.Trigger, &p.Hard, &p.CacheTTL, &p.Document, &p.Patch, &p.Version.Tenant, &p.Version.Session, &l)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && l == nil {
		return nil
	}
	if err == nil {
		err = l.merge(&p)
	}
	if err != nil {
		return err
	}
	return Exec(ctx, tx, putPolicy, policyArgs(tenant, id, p)...)
}

// mergedAtOnce is how many policies one transaction merges anew.
const mergedAtOnce = 100

// MergePolicies merges outdated policies of a tenant's sessions anew, some at a time. It returns how many there were.
// It goes through all of them once: a search from the beginning would read the merged ones every time.
func (s *Store) MergePolicies(ctx context.Context, tenant uuid.UUID) (merged int, err error) {
	var last uuid.UUID
	for n := mergedAtOnce; n == mergedAtOnce; merged += n {
		done, err := InTx(ctx, s, tenant, func(tx pgx.Tx) ([]uuid.UUID, error) {
			ids, err := RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
				SELECT p.id
				  FROM policies p
				 WHERE p.tenant_id = $1 AND p.id > $2 AND `+outdatedSQL+`
				 ORDER BY p.id
				 LIMIT $3`, tenant, last, mergedAtOnce)
			for i := 0; i < len(ids) && err == nil; i++ {
				err = mergeAgain(ctx, tx, tenant, ids[i])
			}
			return ids, err
		})
		if err != nil {
			return merged, err
		}
		if n = len(done); n > 0 {
			last = done[n-1]
		}
	}
	return merged, nil
}

const (
	// checkedLayers bounds how many different layers of sessions a change of the default is checked with.
	checkedLayers = 1000

	maxConflicting = 5 // sessions that an error names
)

// refuseContradicting returns an InvalidError that names sessions whose own layer does not fit on a new default. It
// looks at a bounded number of layers: sessions often have the same. What it does not see keeps the policy that it has.
func refuseContradicting(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, below json.RawMessage, rebase session.PolicyEdit,
) error {
	// Between two statements many layers are merged, which takes a busy process longer than other transactions may.
	if err := Exec(ctx, tx, `SET LOCAL idle_in_transaction_session_timeout = '1min'`); err != nil {
		return err
	}
	patches, err := RowsIn(ctx, tx, pgx.RowTo[json.RawMessage], `
		SELECT DISTINCT ON (md5(patch::text)) patch
		  FROM policies
		 WHERE tenant_id = $1 AND id <> $2
		 ORDER BY md5(patch::text)
		 LIMIT $3`, tenant, uuid.Nil, checkedLayers)
	if err != nil {
		return err
	}
	var wrong []session.Problem
	for i := 0; i < len(patches) && len(wrong) < maxConflicting; i++ {
		_, err := rebase(below, patches[i])
		var invalid *session.InvalidError
		if errors.As(err, &invalid) {
			named, err := contradictions(ctx, tx, tenant, patches[i], invalid)
			if err != nil {
				return err
			}
			wrong = append(wrong, named...)
		} else if err != nil {
			return err
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &session.InvalidError{Code: "invalid_request", Problems: wrong[:min(len(wrong), maxConflicting)]}
}

// contradictions returns a problem for each of some sessions whose own layer is the patch.
func contradictions(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, patch json.RawMessage, invalid *session.InvalidError,
) (wrong []session.Problem, err error) {
	ids, err := RowsIn(ctx, tx, pgx.RowTo[string], `
		SELECT s.id
		  FROM policies p
		  JOIN sessions s ON s.tenant_id = $1 AND s.policy_id = p.id
		 WHERE p.tenant_id = $1 AND p.id <> $2 AND md5(p.patch::text) = md5($3::text)
		 LIMIT $4`, tenant, uuid.Nil, string(patch), maxConflicting)
	for _, id := range ids {
		wrong = append(wrong, session.Problem{
			Code:   invalid.Problems[0].Code,
			Detail: fmt.Sprintf("the own policy of session %q does not fit on top of it: %s", id, invalid),
		})
	}
	return wrong, err
}
