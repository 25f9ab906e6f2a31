package recompact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// A group is a recompaction of many tenants: one of each of them, with the same group. Only a store whose login has the
// rights of AdminRole reaches it. A transaction writes for one tenant at a time: it goes through them in the order of
// their ids, so that no two wait for each other.

// groupsSQL reads groups, each by the recompaction of its first tenant.
const groupsSQL = `
	SELECT group_id AS id, array_agg(tenant_id ORDER BY tenant_id) AS tenants,
	       (array_agg(filter ORDER BY tenant_id))[1] AS filter, (array_agg(policy ORDER BY tenant_id))[1] AS policy,
	       (array_agg(jsonb_build_object('MaxRunning', max_running, 'PerMinute', per_minute, 'StartAt', start_at,
	                                     'Hours', hours)))[1] AS pace,
	       bool_or(ask) AS ask, created_at
	  FROM recompactions
	 WHERE group_id IS NOT NULL`

var scanGroup = pgx.RowToStructByName[Group]

// CreateGroup begins a recompaction of the tenants that it names, or of all, and returns it with that of each tenant.
// One with an id that there is already is that one, and is not begun again.
//
// Errors: an InvalidError if there is no such tenant, or there are too many;
// ErrIdempotencyReused if the one with this id does something else.
func (s store) CreateGroup(ctx context.Context, c Group) (made Group, parts []Part, err error) {
	named := c.Tenants != nil
	err = s.Seeing(postgres.WithCold).InTenant(ctx, uuid.Nil, func(tx pgx.Tx) (err error) {
		if c.Tenants, err = tenantsOf(ctx, tx, c.Tenants); err != nil {
			return err
		}
		err = postgres.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, c.ID.String())
		if err != nil {
			return err
		}
		made, err = readGroup(ctx, tx, c.ID)
		switch {
		case errors.Is(err, session.ErrNotFound):
			made = c
			parts, err = s.beginParts(ctx, tx, c)
		case err == nil:
			if err = refuseOther(ctx, tx, c, made, named); err == nil {
				parts, err = readParts(ctx, tx, made)
			}
		}
		return err
	})
	if len(parts) > 0 {
		made.CreatedAt = parts[0].CreatedAt
	}
	return made, parts, err
}

// refuseOther returns ErrIdempotencyReused unless the group that there is does the same as c. If c names no tenants,
// those that are younger than the group don't matter. An old group may have lost tenants whose recompactions are not
// kept any more.
func refuseOther(ctx context.Context, tx pgx.Tx, c, there Group, named bool) error {
	same, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT filter = $2::jsonb AND ask = $3 AND max_running = $4 AND per_minute IS NOT DISTINCT FROM $5
		       AND start_at IS NOT DISTINCT FROM $6 AND hours IS NOT DISTINCT FROM $7::jsonb
		       AND (NOT $9 OR $10 <@ $8::uuid[])
		       AND NOT EXISTS (
		           SELECT
		             FROM tenants t
		            WHERE t.id = ANY ($8)
		              AND t.id <> ALL ($10)
		              AND ($9 OR t.created_at <= r.created_at)
		              AND r.created_at > now() - $11::interval)
		  FROM recompactions r
		 WHERE group_id = $1
		 ORDER BY tenant_id
		 LIMIT 1`, c.ID, c.Filter, c.Ask, c.Pace.MaxRunning, c.Pace.PerMinute, c.Pace.StartAt, c.Pace.Hours, c.Tenants,
		named, there.Tenants, postgres.RecompactionRetention)
	if err == nil && (!same || !bytes.Equal(compacted(c.Policy), compacted(there.Policy))) {
		err = fmt.Errorf("recompaction %s: %w", c.ID, session.ErrIdempotencyReused)
	}
	return err
}

// compacted returns JSON without the spaces between its tokens.
func compacted(document json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, document) // it is empty, or was parsed
	return b.Bytes()
}

// beginParts begins the recompactions of a group, and records that.
func (s store) beginParts(ctx context.Context, tx pgx.Tx, c Group) (parts []Part, err error) {
	part := Stored{Filter: c.Filter, Policy: c.Policy, Pace: c.Pace, Ask: c.Ask, Group: &c.ID}
	err = postgres.EachTenant(ctx, tx, c.Tenants, func(tenant uuid.UUID) error {
		made, err := s.beginOne(ctx, tx, tenant, part)
		parts = append(parts, Part{Tenant: tenant, Stored: made})
		return err
	})
	if err != nil {
		return nil, err
	}
	detail := map[string]any{"policy": c.Policy, "ask": c.Ask, "tenants": len(c.Tenants)} // the filter is in theirs
	return parts, postgres.RecordOperator(ctx, tx, audit.RecompactionStart, audit.Recompaction, c.ID.String(), detail)
}

// tenantsOf returns the tenants that are named, or all, by their ids.
func tenantsOf(ctx context.Context, tx pgx.Tx, named []uuid.UUID) ([]uuid.UUID, error) {
	found, err := postgres.RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT id
		  FROM tenants
		 WHERE ($1::uuid[] IS NULL OR id = ANY ($1))
		 ORDER BY id
		 LIMIT $2`, named, maxTenants+1)
	if err != nil {
		return nil, err
	}
	for _, id := range named {
		if !slices.Contains(found, id) {
			return nil, session.Invalid("/tenants", "invalid_request", "there is no tenant %s", id)
		}
	}
	if len(found) == 0 {
		return nil, session.Invalid("/tenants", "invalid_request", "there is no tenant yet")
	}
	if len(found) > maxTenants {
		return nil, session.Invalid("/tenants", "invalid_request", "a recompaction has at most %d tenants: name some",
			maxTenants)
	}
	return found, nil
}

func readGroup(ctx context.Context, tx pgx.Tx, id uuid.UUID) (Group, error) {
	return postgres.RowIn(ctx, tx, scanGroup, groupsSQL+` AND group_id = $1
		 GROUP BY created_at, group_id`, id)
}

// Groups returns a page of all groups, newest first.
func (s store) Groups(ctx context.Context, page session.Page) ([]Group, error) {
	return postgres.InTx(ctx, s.Store, uuid.Nil, func(tx pgx.Tx) ([]Group, error) {
		return postgres.RowsIn(ctx, tx, scanGroup, groupsSQL+` AND (created_at, group_id) < ($1, $2)
			 GROUP BY created_at, group_id
			 ORDER BY created_at DESC, group_id DESC
			 LIMIT $3`, postgres.PageArgs(uuid.Nil, page)[1:]...)
	})
}

// Group returns a group with its recompactions, by tenant, but for those that are not kept any more; ErrNotFound.
func (s store) Group(ctx context.Context, id uuid.UUID) (c Group, parts []Part, err error) {
	_, err = postgres.ReadTx(ctx, s.Store, uuid.Nil, func(tx pgx.Tx) (none struct{}, err error) {
		if c, err = readGroup(ctx, tx, id); err != nil {
			return none, err
		}
		parts, err = readParts(ctx, tx, c)
		return none, err
	})
	return c, parts, err
}

// readParts reads the recompactions of a group.
func readParts(ctx context.Context, tx pgx.Tx, c Group) (parts []Part, err error) {
	err = postgres.EachTenant(ctx, tx, c.Tenants, func(tenant uuid.UUID) error {
		found, err := postgres.RowsIn(ctx, tx, scanStored, `
			SELECT `+columns+`
			  FROM recompactions r
			 WHERE r.tenant_id = $1 AND r.group_id = $2`, tenant, c.ID)
		for i := range found {
			parts = append(parts, Part{Tenant: tenant, Stored: found[i]})
		}
		return err
	})
	return parts, err
}

// ControlGroup does to each recompaction of a group what is asked: to all or to none.
//
// Errors: ErrNotFound.
func (s store) ControlGroup(ctx context.Context, id uuid.UUID, what Control) error {
	return s.InTenant(ctx, uuid.Nil, func(tx pgx.Tx) error {
		c, err := readGroup(ctx, tx, id)
		if err != nil {
			return err
		}
		parts, err := readParts(ctx, tx, c)
		if err != nil {
			return err
		}
		changed := 0
		err = postgres.EachTenant(ctx, tx, tenantsIn(parts), func(tenant uuid.UUID) error {
			one, err := s.controlPart(ctx, tx, tenant, partOf(parts, tenant), what)
			changed += one
			return err
		})
		if err != nil || changed == 0 {
			return err
		}
		return postgres.RecordOperator(ctx, tx, controls[what], audit.Recompaction, id.String(),
			map[string]any{"recompactions": changed})
	})
}

func tenantsIn(parts []Part) []uuid.UUID {
	tenants := make([]uuid.UUID, len(parts))
	for i := range parts {
		tenants[i] = parts[i].Tenant
	}
	return tenants
}

// partOf returns the id of the recompaction of a tenant.
func partOf(parts []Part, tenant uuid.UUID) uuid.UUID {
	return parts[slices.IndexFunc(parts, func(p Part) bool { return p.Tenant == tenant })].ID
}

// controlPart controls a recompaction and records that, and returns how many have changed.
func (s store) controlPart(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, what Control) (int, error) {
	changed, err := s.control(ctx, tx, tenant, id, what)
	if err != nil || !changed {
		return 0, err
	}
	return 1, record(ctx, tx, tenant, controls[what], id, nil)
}

// CompareGroup returns what Compare does for all recompactions of a group; ErrNotFound.
func (s store) CompareGroup(ctx context.Context, id uuid.UUID) (sum Comparison, err error) {
	_, err = postgres.ReadTx(ctx, s.Store, uuid.Nil, func(tx pgx.Tx) (none struct{}, err error) {
		c, err := readGroup(ctx, tx, id)
		if err != nil {
			return none, err
		}
		parts, err := readParts(ctx, tx, c)
		if err != nil {
			return none, err
		}
		return none, postgres.EachTenant(ctx, tx, tenantsIn(parts), func(tenant uuid.UUID) error {
			one, err := compareIn(ctx, tx, tenant, partOf(parts, tenant))
			sum.Add(one)
			return err
		})
	})
	return sum, err
}

// CountGroup does what Count does for the tenants of a group. The sample has at least one session of
// each tenant that has any.
func (s store) CountGroup(ctx context.Context, c Group, sample int) (sum Count, err error) {
	_, err = postgres.ReadTx(ctx, s.Store, uuid.Nil, func(tx pgx.Tx) (none struct{}, err error) {
		tenants, err := tenantsOf(ctx, tx, c.Tenants)
		if err != nil {
			return none, err
		}
		each := max(1, sample/len(tenants))
		return none, postgres.EachTenant(ctx, tx, tenants, func(tenant uuid.UUID) error {
			found, err := countIn(ctx, tx, tenant, c.Filter, each)
			sum.Add(found)
			return err
		})
	})
	slices.SortFunc(sum.Sample, func(a, b Sampled) int { // not only the first tenants, if time is short
		return bytes.Compare(a.Key.Key[8:], b.Key.Key[8:])
	})
	return sum, err
}
