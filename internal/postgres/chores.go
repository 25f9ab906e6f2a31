package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// ChoreKind is what the sweep looks after for a tenant.
type ChoreKind string

// The kinds of chores. One that may be needed is written down where the need arises, and deleted when there is none.
const (
	ChorePolicy   ChoreKind = "policy"   // sessions that another default of the tenant makes due
	ChoreMetadata ChoreKind = "metadata" // sessions whose metadata the filters may not find by its pairs yet
	ChoreArchive  ChoreKind = "archive"
	ChoreErasure  ChoreKind = "erasure" // of which the chores of the nil tenant are operators'
)

// Chore is something to look after.
type Chore struct {
	Tenant uuid.UUID
	Kind   ChoreKind
	Cursor uuid.UUID // of ChorePolicy and ChoreMetadata: the last session that was looked at
	Since  time.Time
}

// AddChore writes a chore down, or begins it anew.
func AddChore(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, kind ChoreKind) error {
	return Exec(ctx, tx, `
		INSERT INTO chores AS c (tenant_id, kind)
		VALUES ($1, $2)
		ON CONFLICT (tenant_id, kind) DO UPDATE
		   SET cursor = excluded.cursor, since = excluded.since`, tenant, kind)
}

// Duty is what the sweep does for the tenants that have a kind of chore.
type Duty struct {
	Kind   ChoreKind
	Job    string // kind of the job that does it for a tenant: while it is live, nobody else need; "" for none
	Needed string // the condition, in SQL, that the tenant $1 still needs it
	Do     func(ctx context.Context, tenant uuid.UUID) error
}

// Chores returns chores of a kind of all tenants, those first that were looked after the longest ago, at most limit.
func (s *Store) Chores(ctx context.Context, kind ChoreKind, limit int) ([]Chore, error) {
	return s.ChoresOf(ctx, Duty{Kind: kind}, limit)
}

// ChoresOf returns what Chores does, without those whose job is live.
func (s *Store) ChoresOf(ctx context.Context, d Duty, limit int) ([]Chore, error) {
	idle := `true`
	if d.Job != "" {
		idle = `NOT ` + queue.HasLive(d.Job, `tenant`, `tenant_id`)
	}
	rows, err := s.pool.Query(ctx, `
		SELECT tenant_id AS tenant, kind, cursor, since
		  FROM chores
		 WHERE kind = $1
		   AND `+idle+`
		 ORDER BY since
		 LIMIT $2`, d.Kind, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Chore])
}

// needed are the conditions that a tenant $1 still needs a kind of chore.
var needed = map[ChoreKind]string{
	ChoreErasure: `EXISTS (SELECT FROM erasures WHERE tenant_id = $1 AND state <> 'done')`,
	ChoreArchive: `EXISTS (SELECT FROM session_archives WHERE tenant_id = $1 AND state <> 'archived')`,
}

// DutyOf returns a duty of the core.
func DutyOf(kind ChoreKind, do func(ctx context.Context, tenant uuid.UUID) error) Duty {
	return Duty{Kind: kind, Needed: needed[kind], Do: do}
}

// EndChore deletes a chore that was looked after, unless it was begun anew meanwhile or there is still need of it.
func (s *Store) EndChore(ctx context.Context, c Chore) error {
	return s.EndChoreUnless(ctx, c, needed[c.Kind])
}

// EndChoreUnless deletes a chore that was looked after, unless it was begun anew meanwhile or a condition holds.
func (s *Store) EndChoreUnless(ctx context.Context, c Chore, condition string) error {
	return s.InTenant(ctx, c.Tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			DELETE FROM chores
			 WHERE tenant_id = $1
			   AND kind = $2
			   AND since = $3
			   AND NOT (`+cmp.Or(condition, `false`)+`)`, c.Tenant, c.Kind, c.Since)
	})
}

// AuditTenant looks at the next sessions of a tenant whose default has changed, at most limit, and asks for the
// compaction of those that it makes due. It ends the chore with the last session.
func (s *Store) AuditTenant(ctx context.Context, c Chore, limit int) (looked, inserted int, err error) {
	seen, err := s.audit(ctx, c.Tenant, c.Cursor, limit)
	if err != nil {
		return seen.sessions, seen.inserted, err
	}
	if seen.sessions < limit {
		return seen.sessions, seen.inserted, s.EndChore(ctx, c)
	}
	return seen.sessions, seen.inserted, s.advanceChore(ctx, c, seen.last)
}

// advanceChore records the last session that was looked at, unless the chore was begun anew meanwhile.
func (s *Store) advanceChore(ctx context.Context, c Chore, last uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE chores
		   SET cursor = $4
		 WHERE tenant_id = $1 AND kind = $2 AND since = $3`, c.Tenant, c.Kind, c.Since, last)
	return err
}

// AuditNext continues with the round through the sessions of all tenants, which finds those that are due without a row.
// It looks at no more than this many sessions and tenants, and returns how many jobs it inserted.
func (s *Store) AuditNext(ctx context.Context, sessions, tenants int) (inserted int, err error) {
	var at session.Key // the last session that was looked at
	err = s.pool.QueryRow(ctx, `
		SELECT tenant, session
		  FROM rounds
		 WHERE kind = 'audit'`).Scan(&at.Tenant, &at.Key)
	for ; err == nil && sessions > 0 && tenants > 0; tenants-- {
		var seen slice
		seen, err = s.audit(ctx, at.Tenant, at.Key, sessions)
		inserted += seen.inserted
		at.Key = seen.last
		sessions -= seen.sessions
		if err != nil || sessions <= 0 {
			break
		}
		at.Key = uuid.Nil
		if at.Tenant, err = s.tenantAfter(ctx, at.Tenant); at.Tenant == uuid.Nil {
			break
		}
	}
	if err != nil {
		return inserted, err
	}
	return inserted, s.advanceRound(ctx, "audit", at)
}

// advanceRound records how far a round has come: a zero tenant ends it, and the next one begins.
func (s *Store) advanceRound(ctx context.Context, kind string, at session.Key) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE rounds
		   SET tenant = $2::uuid, session = $3,
		       finished_at = CASE WHEN $2::uuid = $4::uuid THEN now() ELSE finished_at END
		 WHERE kind = $1`, kind, at.Tenant, at.Key, uuid.Nil)
	return err
}

// tenantAfter returns the tenant after another, by id; none is uuid.Nil.
func (s *Store) tenantAfter(ctx context.Context, tenant uuid.UUID) (next uuid.UUID, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT id
		  FROM tenants
		 WHERE id > $1
		 ORDER BY id
		 LIMIT 1`, tenant).Scan(&next)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, nil
	}
	return next, err
}

// NextTenants returns the next tenants, at most limit, of the round through all of them, and advances it.
func (s *Store) NextTenants(ctx context.Context, limit int) (tenants []uuid.UUID, err error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id
		  FROM tenants
		 WHERE id > (SELECT tenant FROM rounds WHERE kind = 'tenants')
		 ORDER BY id
		 LIMIT $1`, limit)
	if err != nil {
		return nil, err
	}
	if tenants, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
		return nil, err
	}
	var at session.Key
	if len(tenants) == limit {
		at.Tenant = tenants[limit-1]
	}
	return tenants, s.advanceRound(ctx, "tenants", at)
}
