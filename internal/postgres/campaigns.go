package postgres

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
	"github.com/varve-dev/varve/internal/session"
)

// A campaign is a recompaction for each of some tenants. Only a store whose login has the rights of AdminRole reaches
// it. A transaction sees one tenant at a time: it goes through them in the order of their ids, so that no two wait for
// each other.

const campaignColumns = `id, tenants, filter, policy, pace, ask, created_at`

var scanCampaign = pgx.RowToStructByName[session.Campaign]

// CreateCampaign begins a campaign for the tenants that it names, or for all, and returns it with its recompactions.
// One with an id that there is already is that one, and is not begun again.
//
// Errors: an InvalidError if there is no such tenant, or there are too many; ErrIdempotencyReused if the campaign with
// this id does something else.
func (s *Store) CreateCampaign(
	ctx context.Context, c session.Campaign,
) (made session.Campaign, parts []session.CampaignPart, err error) {
	named := c.Tenants != nil
	err = s.inTenant(ctx, uuid.Nil, func(tx pgx.Tx) (err error) {
		if c.Tenants, err = tenantsOf(ctx, tx, c.Tenants); err != nil {
			return err
		}
		made, err = rowIn(ctx, tx, scanCampaign, `
			INSERT INTO campaigns (id, tenants, filter, policy, pace, ask)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO NOTHING
			RETURNING `+campaignColumns, c.ID, c.Tenants, c.Filter, c.Policy, c.Pace, c.Ask)
		switch {
		case err == nil:
			parts, err = s.beginParts(ctx, tx, made)
		case errors.Is(err, session.ErrNotFound):
			if made, err = sameCampaign(ctx, tx, c, named); err == nil {
				parts, err = readParts(ctx, tx, made)
			}
		}
		return err
	})
	return made, parts, err
}

// sameCampaign returns the campaign with the id of c if it is for the same sessions under the same conditions,
// otherwise ErrIdempotencyReused. If c names no tenants, those that are younger than the campaign don't matter. An old
// campaign may have lost tenants whose recompactions are not kept any more.
func sameCampaign(ctx context.Context, tx pgx.Tx, c session.Campaign, named bool) (session.Campaign, error) {
	there, err := readCampaign(ctx, tx, c.ID)
	if err != nil {
		return there, err
	}
	same, err := rowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT c.filter = $2::jsonb AND c.pace = $3::jsonb AND c.ask = $4 AND (NOT $6 OR c.tenants <@ $5)
		       AND NOT EXISTS (
		           SELECT
		             FROM tenants t
		            WHERE t.id = ANY ($5)
		              AND t.id <> ALL (c.tenants)
		              AND ($6 OR t.created_at <= c.created_at)
		              AND c.created_at > now() - $7::interval)
		  FROM campaigns c
		 WHERE c.id = $1`, c.ID, c.Filter, c.Pace, c.Ask, c.Tenants, named, recompactionRetention)
	if err == nil && (!same || !bytes.Equal(compacted(c.Policy), compacted(there.Policy))) {
		err = fmt.Errorf("campaign %s: %w", c.ID, session.ErrIdempotencyReused)
	}
	return there, err
}

// compacted returns JSON without the spaces between its tokens.
func compacted(document json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, document) // it is empty, or was parsed
	return b.Bytes()
}

// beginParts begins the recompactions of a campaign, and records that.
func (s *Store) beginParts(
	ctx context.Context, tx pgx.Tx, c session.Campaign,
) (parts []session.CampaignPart, err error) {
	part := session.Recompaction{Filter: c.Filter, Policy: c.Policy, Pace: c.Pace, Ask: c.Ask, Campaign: &c.ID}
	err = eachTenant(ctx, tx, c.Tenants, func(tenant uuid.UUID) error {
		made, err := s.beginRecompaction(ctx, tx, tenant, part)
		parts = append(parts, session.CampaignPart{Tenant: tenant, Recompaction: made})
		return err
	})
	if err != nil {
		return nil, err
	}
	return parts, recordOperator(ctx, tx, deed{
		action: audit.CampaignStart, object: audit.Campaign, id: c.ID.String(),
		detail: about{"policy": c.Policy, "ask": c.Ask, "tenants": len(c.Tenants)}, // the tenants' rows have the filter
	})
}

// tenantsOf returns the tenants that are named, or all, by their ids.
func tenantsOf(ctx context.Context, tx pgx.Tx, named []uuid.UUID) ([]uuid.UUID, error) {
	found, err := rowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT id
		  FROM tenants
		 WHERE ($1::uuid[] IS NULL OR id = ANY ($1))
		 ORDER BY id
		 LIMIT $2`, named, session.MaxCampaignTenants+1)
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
	if len(found) > session.MaxCampaignTenants {
		return nil, session.Invalid("/tenants", "invalid_request", "a campaign has at most %d tenants: name some",
			session.MaxCampaignTenants)
	}
	return found, nil
}

// eachTenant runs do for tenants, in a transaction that sees each in its turn. What waits for the commit, such as the
// numbers of events, is done while the transaction sees the tenant, because policies bind the owner of the schema, too.
func eachTenant(ctx context.Context, tx pgx.Tx, tenants []uuid.UUID, do func(tenant uuid.UUID) error) error {
	for _, tenant := range tenants {
		if err := exec(ctx, tx, setTenant, tenant.String()); err != nil {
			return err
		}
		err := do(tenant)
		if err == nil {
			err = exec(ctx, tx, `SET CONSTRAINTS ALL IMMEDIATE`)
		}
		if err != nil {
			return fmt.Errorf("tenant %s: %w", tenant, err)
		}
	}
	return nil
}

func readCampaign(ctx context.Context, tx pgx.Tx, id uuid.UUID) (session.Campaign, error) {
	return rowIn(ctx, tx, scanCampaign, `
		SELECT `+campaignColumns+`
		  FROM campaigns
		 WHERE id = $1`, id)
}

// Campaigns returns a page of all campaigns, newest first.
func (s *Store) Campaigns(ctx context.Context, page session.Page) ([]session.Campaign, error) {
	return asOperator(ctx, s, func(tx pgx.Tx) ([]session.Campaign, error) {
		return rowsIn(ctx, tx, scanCampaign, `
			SELECT `+campaignColumns+`
			  FROM campaigns
			 WHERE (created_at, id) < ($1, $2)
			 ORDER BY created_at DESC, id DESC
			 LIMIT $3`, pageArgs(uuid.Nil, page)[1:]...)
	})
}

// Campaign returns a campaign with its recompactions, by tenant, but for those that are not kept any more; ErrNotFound.
func (s *Store) Campaign(
	ctx context.Context, id uuid.UUID,
) (c session.Campaign, parts []session.CampaignPart, err error) {
	err = s.inSnapshot(ctx, uuid.Nil, func(tx pgx.Tx) error {
		if c, err = readCampaign(ctx, tx, id); err != nil {
			return err
		}
		parts, err = readParts(ctx, tx, c)
		return err
	})
	return c, parts, err
}

// readParts reads the recompactions of a campaign.
func readParts(ctx context.Context, tx pgx.Tx, c session.Campaign) (parts []session.CampaignPart, err error) {
	tenants, err := rowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT t.id
		  FROM unnest($1::uuid[]) WITH ORDINALITY AS t (id, n)
		 ORDER BY t.n`, c.Tenants)
	if err != nil {
		return nil, err
	}
	err = eachTenant(ctx, tx, tenants, func(tenant uuid.UUID) error {
		found, err := rowsIn(ctx, tx, scanRecompaction, `
			SELECT `+recompactionColumns+`
			  FROM recompactions r
			 WHERE r.tenant_id = $1 AND r.campaign_id = $2`, tenant, c.ID)
		for i := range found {
			parts = append(parts, session.CampaignPart{Tenant: tenant, Recompaction: found[i]})
		}
		return err
	})
	return parts, err
}

// ControlCampaign does to each recompaction of a campaign what is asked: to all or to none.
//
// Errors: ErrNotFound.
func (s *Store) ControlCampaign(ctx context.Context, id uuid.UUID, what Control) error {
	return s.inTenant(ctx, uuid.Nil, func(tx pgx.Tx) error {
		c, err := readCampaign(ctx, tx, id)
		if err != nil {
			return err
		}
		parts, err := readParts(ctx, tx, c)
		if err != nil {
			return err
		}
		tenants, changed := make([]uuid.UUID, len(parts)), 0
		for i := range parts {
			tenants[i] = parts[i].Tenant
		}
		err = eachTenant(ctx, tx, tenants, func(tenant uuid.UUID) error {
			part := parts[slices.Index(tenants, tenant)].ID
			one, err := s.controlPart(ctx, tx, tenant, part, what)
			changed += one
			return err
		})
		if err != nil || changed == 0 {
			return err
		}
		return recordOperator(ctx, tx, deed{
			action: campaignControls[what], object: audit.Campaign, id: id.String(),
			detail: about{"recompactions": changed},
		})
	})
}

// campaignControls say which action each control of a campaign is in the audit trail.
var campaignControls = map[Control]audit.Action{
	Pause: audit.CampaignPause, Resume: audit.CampaignResume, Cancel: audit.CampaignCancel,
	RollBack: audit.CampaignRollback,
}

// controlPart controls a recompaction and records that, and returns how many have changed.
func (s *Store) controlPart(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, what Control) (int, error) {
	changed, err := s.control(ctx, tx, tenant, id, what)
	if err != nil || !changed {
		return 0, err
	}
	return 1, record(ctx, tx, tenant, deed{action: controls[what], object: audit.Recompaction, id: id.String()})
}

// CompareCampaign returns what CompareRecompaction does for all recompactions of a campaign; ErrNotFound.
func (s *Store) CompareCampaign(ctx context.Context, id uuid.UUID) (sum session.Comparison, err error) {
	err = s.inSnapshot(ctx, uuid.Nil, func(tx pgx.Tx) error {
		c, err := readCampaign(ctx, tx, id)
		if err != nil {
			return err
		}
		parts, err := readParts(ctx, tx, c)
		for i := range parts {
			if err != nil {
				break
			}
			if err = exec(ctx, tx, setTenant, parts[i].Tenant.String()); err != nil {
				break
			}
			var one session.Comparison
			one, err = compareIn(ctx, tx, parts[i].Tenant, parts[i].ID)
			sum.Add(one)
		}
		return err
	})
	return sum, err
}

// CountCampaign does what CountRecompaction does for the tenants of a campaign. The sample has at least one session of
// each tenant that has any.
func (s *Store) CountCampaign(ctx context.Context, c session.Campaign, sample int) (
	sum session.RecompactionCount, err error,
) {
	err = s.inSnapshot(ctx, uuid.Nil, func(tx pgx.Tx) error {
		tenants, err := tenantsOf(ctx, tx, c.Tenants)
		if err != nil {
			return err
		}
		each := max(1, sample/len(tenants))
		return eachTenant(ctx, tx, tenants, func(tenant uuid.UUID) error {
			found, err := countIn(ctx, tx, tenant, c.Filter, each)
			sum.Add(found)
			return err
		})
	})
	slices.SortFunc(sum.Sample, func(a, b session.SampledSession) int { // not only the first tenants, if time is short
		return bytes.Compare(a.Key.Key[8:], b.Key.Key[8:])
	})
	return sum, err
}
