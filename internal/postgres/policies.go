package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// SessionPolicy reads the policy of a session; ErrNotFound.
func (s *Store) SessionPolicy(ctx context.Context, at session.Address) (found session.PolicyLayers, err error) {
	var outdated *layers
	sql := `
		SELECT p.trigger_ratio, p.hard_ratio, p.cache_ttl, p.document, p.patch, p.tenant_version, p.session_version,
		       CASE WHEN p.session_version > 0 THEN d.patch ELSE p.patch END, ` + layersSQL + `
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = s.tenant_id AND p.id = s.policy_id
		  JOIN policies d ON d.tenant_id = s.tenant_id AND d.id = $3
		 WHERE s.tenant_id = $1 AND s.id = $2`
	err = s.Seeing(WithCold).query(ctx, at.Tenant, sql, []any{at.Tenant, at.ID, uuid.Nil},
		one(&found.Trigger, &found.Hard, &found.CacheTTL, &found.Document, &found.Patch,
			&found.Version.Tenant, &found.Version.Session, &found.Tenant, &outdated))
	if err == nil {
		err = outdated.merge(&found.Policy)
	}
	if found.Version.Session > 0 {
		found.Own = found.Patch
	}
	return found, err
}

// readPolicy reads a stored policy. lock is the locking clause of the statement, "" for none.
func readPolicy(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, lock string) (p session.Policy, err error) {
	err = tx.QueryRow(ctx, `
		SELECT trigger_ratio, hard_ratio, cache_ttl, document, patch, tenant_version, session_version
		  FROM policies
		 WHERE tenant_id = $1 AND id = $2 `+lock, tenant, id).
		Scan(&p.Trigger, &p.Hard, &p.CacheTTL, &p.Document, &p.Patch, &p.Version.Tenant, &p.Version.Session)
	return p, NotFound(err)
}

// changePolicy gives a session the policy of a change, as a new version, in a transaction that holds the session's
// lock. It resets the floor and arms the trigger: both were set for another policy.
func changePolicy(ctx context.Context, tx pgx.Tx, key session.Key, current uuid.UUID, change session.Change) error {
	if !change.ChangesPolicy() {
		return nil
	}
	below, own, err := readLayers(ctx, tx, key.Tenant, current)
	if err != nil {
		return err
	}
	next, err := edited(change, below.Patch, own.Patch)
	if err != nil || next == nil && current == uuid.Nil || next != nil && equal(*next, own) {
		return err
	}
	version, err := recordPolicy(ctx, tx, key, next, below.Version.Tenant, own.Version.Session, change.ChangedBy)
	if err != nil {
		return err
	}
	id := uuid.Nil
	if next != nil {
		next.Version = session.PolicyVersion{Tenant: below.Version.Tenant, Session: version}
		id = uuid.Must(uuid.NewV7())
		if err = Exec(ctx, tx, putPolicy, policyArgs(key.Tenant, id, *next)...); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `
		UPDATE sessions
		   SET policy_id = $3, floor_tokens = 0, armed_threshold = 1, idle_asked = false
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key, id)
	if err != nil {
		return err
	}
	return deletePolicy(ctx, tx, key.Tenant, current)
}

// readLayers reads a tenant's default, and a session's own policy if it has one. If the default changes meanwhile, what
// is made of them is outdated, and is merged again.
func readLayers(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (below, own session.Policy, err error) {
	below, err = readPolicy(ctx, tx, tenant, uuid.Nil, "")
	if err == nil && id != uuid.Nil {
		own, err = readPolicy(ctx, tx, tenant, id, "")
	}
	return below, own, err
}

func equal(a, b session.Policy) bool {
	return bytes.Equal(a.Patch, b.Patch) && bytes.Equal(a.Document, b.Document)
}

// edited returns the policy that a change gives a session with these layers, nil for the tenant's default.
func edited(change session.Change, tenant, own json.RawMessage) (*session.Policy, error) {
	switch {
	case change.EditPolicy != nil:
		p, err := change.EditPolicy(tenant, own)
		return &p, err
	case change.Policy != nil:
		p := *change.Policy
		if p.Patch == nil {
			p.Patch = p.Document
		}
		return &p, nil
	}
	return nil, nil
}

// recordPolicy writes the next version of a layer: of the session's own, or of the tenant's default if the key has no
// session. A nil policy means that the session lost its layer. below is the version of the layer below a session's,
// last the version in force.
func recordPolicy(
	ctx context.Context, tx pgx.Tx, key session.Key, p *session.Policy, below, last int, by [32]byte,
) (version int, err error) {
	var patch, document json.RawMessage
	if p != nil {
		patch, document = p.Patch, p.Document
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO policy_versions (tenant_id, session_key, version, tenant_version, patch, document, changed_by)
		SELECT $1, $2, greatest(max(version), $3) + 1,
		       CASE WHEN $2::uuid = $8::uuid THEN greatest(max(version), $3) + 1 ELSE $4 END, $5, $6,
		       (SELECT id
		          FROM api_keys
		         WHERE tenant_id = $1 AND digest = $7)
		  FROM policy_versions
		 WHERE tenant_id = $1 AND session_key = $2
		RETURNING version`, key.Tenant, key.Key, last, below, patch, document, by[:], uuid.Nil).Scan(&version)
	if err != nil || version <= keptPolicyVersions {
		return version, err
	}
	return version, Exec(ctx, tx, `
		DELETE FROM policy_versions
		 WHERE tenant_id = $1 AND session_key = $2 AND version <= $3`, key.Tenant, key.Key, version-keptPolicyVersions)
}

// putPolicy stores a policy, whose session version never changes. What every append compares with is stored in columns
// beside the document.
const putPolicy = `
	INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, cache_ttl, calibrate, document, patch,
	                      tenant_version, session_version)
	VALUES ($1, $2, $3, $4, $5, coalesce(($6::json #>> '{tokens,calibrate}')::boolean, true), $6, $7, $8, $9)
	ON CONFLICT (tenant_id, id) DO UPDATE
	   SET trigger_ratio = excluded.trigger_ratio, hard_ratio = excluded.hard_ratio, cache_ttl = excluded.cache_ttl,
	       calibrate = excluded.calibrate, document = excluded.document, patch = excluded.patch,
	       tenant_version = excluded.tenant_version`

func policyArgs(tenant, id uuid.UUID, p session.Policy) []any {
	return []any{
		tenant, id, p.Trigger, p.Hard, p.CacheTTL, p.Document, p.Patch, p.Version.Tenant, p.Version.Session,
	}
}

// deletePolicy removes a policy of one session; the tenant's default stays.
func deletePolicy(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	return Exec(ctx, tx, `
		DELETE FROM policies
		 WHERE tenant_id = $1 AND id = $2 AND id <> $3`, tenant, id, uuid.Nil)
}

// CountsExactly reports whether any policy of a tenant names an exact tokenizer.
func (s *Store) CountsExactly(ctx context.Context, tenant uuid.UUID) (bool, error) {
	return QueryRow(ctx, s, tenant, pgx.RowTo[bool], `
		SELECT EXISTS (
		       SELECT
		         FROM policies
		        WHERE tenant_id = $1 AND tokenizer <> 'estimate')`, tenant)
}

// Tokenizer returns the name of the tokenizer of a session's policy; ErrNotFound.
func (s *Store) Tokenizer(ctx context.Context, at session.Address) (string, error) {
	found, err := s.SessionPolicy(ctx, at)
	if err != nil {
		return "", err
	}
	var document struct {
		Tokens struct{ Tokenizer string }
	}
	if err := json.Unmarshal(found.Document, &document); err != nil {
		return "", err
	}
	return cmp.Or(document.Tokens.Tokenizer, "estimate"), nil
}
