package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// expiredAtOnce is how many sessions one erasure of expired sessions erases: its receipt names each of them.
const expiredAtOnce = 10_000

// previewedIDs is how many sessions a preview names.
const previewedIDs = 100

// lookedBehind is how many sessions with a retention of their own one look brings up to date.
const lookedBehind = 10_000

// The retention of the tenant $1, in seconds, as SQL expressions.
const (
	tenantIdle = `least((SELECT idle_seconds FROM retention WHERE tenant_id = $1), ` + mostIdle + `)`
	tenantAge  = `least((SELECT age_seconds FROM retention WHERE tenant_id = $1), ` + mostAge + `)`
)

// expiresAt returns the SQL expression of when a session s of the tenant $1 expires, NULL for never, by its own
// retention, held to what operators leave the tenant, or else by the tenant's, which two SQL expressions give in
// seconds.
func expiresAt(idle, age string) string {
	return `(
		SELECT CASE WHEN r.session_key IS NULL
		            THEN least(s.created_at + ` + age + ` * interval '1 second',
		                       greatest(s.created_at, s.last_append_at) + ` + idle + ` * interval '1 second')
		            ELSE least(s.created_at + least(r.age_seconds, ` + mostAge + `) * interval '1 second',
		                       greatest(s.created_at, s.last_append_at)
		                       + least(r.idle_seconds, ` + mostIdle + `) * interval '1 second')
		       END
		  FROM (SELECT) one
		  LEFT JOIN session_retention r ON r.tenant_id = s.tenant_id AND r.session_key = s.key)`
}

// heldSQL is the condition that a legal hold of its own keeps a session s.
const heldSQL = `EXISTS (SELECT FROM session_holds h WHERE h.tenant_id = $1 AND h.session_key = s.key)`

// expiredSQL returns the statement that finds the tenant's expired sessions: their keys, and whether a legal hold of
// their own keeps them. Each branch has an index, and none of them is one that appends write to: the ledger notes the
// last append of each session a few seconds later. A session may be there twice.
func expiredSQL(idle, age string) string {
	condition := expiresAt(idle, age) + ` <= now()`
	return `
		SELECT s.key, s.id, ` + heldSQL + ` AS held
		  FROM sessions s
		 WHERE s.tenant_id = $1 AND ` + before(`s.created_at`, age) + ` AND ` + condition + `
		 UNION ALL
		SELECT s.key, s.id, ` + heldSQL + `
		  FROM usage_sessions u` + joinSession(`u`) + `
		 WHERE u.tenant_id = $1 AND ` + before(`u.appended_at`, idle) + ` AND ` + condition + `
		 UNION ALL
		SELECT s.key, s.id, ` + heldSQL + `
		  FROM usage_sessions u` + joinSession(`u`) + `
		 WHERE u.tenant_id = $1 AND u.appended_at IS NULL AND ` + idle + ` IS NOT NULL AND ` + condition + `
		 UNION ALL
		SELECT s.key, s.id, ` + heldSQL + `
		  FROM session_retention r` + joinSession(`r`) + `
		 WHERE r.tenant_id = $1 AND r.look_at <= now() AND ` + condition
}

// before returns the condition that a time lies a number of seconds back. A range with two ends is thought to have few
// rows, whatever its ends are, and so its index is read.
func before(time, seconds string) string {
	return time + ` > '-infinity' AND ` + time + ` <= now() - ` + seconds + ` * interval '1 second'`
}

// joinSession joins the session of a row as s, so that the planner cannot begin with all sessions.
func joinSession(row string) string {
	return `
		 CROSS JOIN LATERAL (
		       SELECT *
		         FROM sessions
		        WHERE tenant_id = $1 AND key = ` + row + `.session_key
		       OFFSET 0) s`
}

var (
	// expiredNow finds what has expired by the retention $2 and $3 of the tenant $1.
	expiredNow = expiredSQL(`$2::bigint`, `$3::bigint`)

	// isExpired is the condition that a session s has expired. It has the arguments of ofErasureSQL.
	isExpired = `$2::uuid IS NOT NULL AND $3::jsonb IS NULL
		AND ` + expiresAt(tenantIdle, tenantAge) + ` <= now()`
)

var scanRetention = pgx.RowToStructByPos[session.Retention]

const retentionSQL = `
	SELECT idle_seconds, age_seconds
	  FROM retention
	 WHERE tenant_id = $1`

// Retention returns a tenant's retention, as it was set, and what it is held to.
func (s *Store) Retention(ctx context.Context, tenant uuid.UUID) (session.TenantRetention, error) {
	return readTx(ctx, s, tenant, func(tx pgx.Tx) (session.TenantRetention, error) {
		return retentionOf(ctx, tx, tenant)
	})
}

func retentionOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (found session.TenantRetention, err error) {
	if found.Retention, err = orKept(rowIn(ctx, tx, scanRetention, retentionSQL, tenant)); err == nil {
		found.AtMost, err = mostRetention(ctx, tx, tenant)
	}
	return found, err
}

// orKept returns the retention of a tenant that has set none.
func orKept(found session.Retention, err error) (session.Retention, error) {
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return found, err
}

// SetRetention changes a tenant's retention. A worker looks for expired sessions at once. InvalidError for one that is
// longer than operators leave the tenant.
func (s *Store) SetRetention(
	ctx context.Context, tenant uuid.UUID, wanted session.Retention,
) (session.TenantRetention, error) {
	return inTx(ctx, s, tenant, func(tx pgx.Tx) (set session.TenantRetention, err error) {
		if err := refuseLonger(ctx, tx, tenant, wanted, ""); err != nil {
			return set, err
		}
		if err := setRetention(ctx, tx, tenant, wanted); err != nil {
			return set, err
		}
		return retentionOf(ctx, tx, tenant)
	})
}

func setRetention(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, wanted session.Retention) error {
	if err := expectExpiry(ctx, tx, tenant); err != nil {
		return err
	}
	was, err := rowIn(ctx, tx, scanRetention, retentionSQL+` FOR UPDATE`, tenant)
	if err != nil {
		return err
	}
	d := deed{action: audit.RetentionChange, object: audit.Tenant, id: tenant.String()}
	if d.before, err = json.Marshal(was); err != nil {
		return err
	}
	if d.after, err = json.Marshal(wanted); err != nil || string(d.before) == string(d.after) {
		return err
	}
	err = exec(ctx, tx, `
		UPDATE retention
		   SET idle_seconds = $2, age_seconds = $3, looked_at = '-infinity'
		 WHERE tenant_id = $1`, tenant, wanted.IdleSeconds, wanted.AgeSeconds)
	if err != nil {
		return err
	}
	return record(ctx, tx, tenant, d)
}

// expectExpiry makes workers look for the tenant's expired sessions.
func expectExpiry(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	return exec(ctx, tx, `
		INSERT INTO retention (tenant_id)
		VALUES ($1)
		ON CONFLICT DO NOTHING`, tenant)
}

// ExpiredBy returns what a retention of a tenant would erase now, which need not be the one that it has: nil is that.
func (s *Store) ExpiredBy(
	ctx context.Context, tenant uuid.UUID, wanted *session.Retention,
) (session.Expired, error) {
	return readTx(ctx, s, tenant, func(tx pgx.Tx) (found session.Expired, err error) {
		has, err := retentionOf(ctx, tx, tenant)
		if err != nil {
			return found, err
		}
		if wanted != nil {
			has.Retention = *wanted
		}
		return expiredBy(ctx, tx, tenant, has.Held())
	})
}

func expiredBy(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, by session.Retention) (session.Expired, error) {
	return rowIn(ctx, tx, pgx.RowToStructByPos[session.Expired], `
		WITH found AS MATERIALIZED (`+expiredNow+`
		), kept AS (
			SELECT DISTINCT key, id, held OR (SELECT hold IS NOT NULL FROM tenants WHERE id = $1) AS held
			  FROM found
		)
		SELECT count(*) FILTER (WHERE NOT held), count(*) FILTER (WHERE held), coalesce((
		       SELECT array_agg(id)
		         FROM (SELECT id FROM kept WHERE NOT held ORDER BY key LIMIT $4) first), '{}')
		  FROM kept`, tenant, by.IdleSeconds, by.AgeSeconds, previewedIDs)
}

// setOwnRetention changes the retention of a session's own, if a change says so.
func setOwnRetention(ctx context.Context, tx pgx.Tx, key session.Key, change session.Change) error {
	switch {
	case change.DefaultRetention:
		return exec(ctx, tx, `
			DELETE FROM session_retention
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	case change.Retention == nil:
		return nil
	}
	if err := refuseLonger(ctx, tx, key.Tenant, *change.Retention, "/retention"); err != nil {
		return err
	}
	if err := expectExpiry(ctx, tx, key.Tenant); err != nil {
		return err
	}
	err := exec(ctx, tx, `
		INSERT INTO session_retention AS r (tenant_id, session_key, idle_seconds, age_seconds)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, session_key) DO UPDATE
		   SET idle_seconds = excluded.idle_seconds, age_seconds = excluded.age_seconds`,
		key.Tenant, key.Key, change.Retention.IdleSeconds, change.Retention.AgeSeconds)
	if err != nil {
		return err
	}
	return exec(ctx, tx, `
		UPDATE session_retention r
		   SET look_at = `+expiresAt(tenantIdle, tenantAge)+`
		  FROM sessions s
		 WHERE r.tenant_id = $1 AND r.session_key = $2 AND s.tenant_id = $1 AND s.key = $2`, key.Tenant, key.Key)
}

// TenantsToLookAt returns the tenants in which nobody has looked for expired sessions for a time, those first that have
// waited the longest, at most limit.
func (s *Store) TenantsToLookAt(ctx context.Context, every time.Duration, limit int) ([]uuid.UUID, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT tenant_id
		  FROM retention
		 WHERE looked_at <= now() - $1::interval
		 ORDER BY looked_at
		 LIMIT $2`, every, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// EraseExpired looks for expired sessions of a tenant, and begins their erasure if there are any: one at a time, and
// none while a legal hold keeps the tenant.
func (s *Store) EraseExpired(ctx context.Context, tenant uuid.UUID) (begun bool, err error) {
	err = s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		err := exec(ctx, tx, `
			UPDATE retention
			   SET looked_at = now()
			 WHERE tenant_id = $1`, tenant)
		if err != nil {
			return err
		}
		if err := lookAgain(ctx, tx, tenant); err != nil {
			return err
		}
		has, err := retentionOf(ctx, tx, tenant)
		if err != nil {
			return err
		}
		by := has.Held()
		begun, err = rowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM (`+expiredNow+`) e WHERE NOT e.held)
			   AND NOT EXISTS (SELECT FROM tenants WHERE id = $1 AND hold IS NOT NULL)
			   AND NOT EXISTS (
			       SELECT
			         FROM erasures
			        WHERE tenant_id = $1 AND kind = 'retention' AND state <> 'done')`,
			tenant, by.IdleSeconds, by.AgeSeconds)
		if err != nil || !begun {
			return err
		}
		return s.beginErasure(ctx, tx, erasing{
			tenant: tenant, id: uuid.Must(uuid.NewV7()), kind: session.ErasureOfExpired,
		})
	})
	return begun, err
}

// lookAgain says when to look again at sessions with a retention of their own to which something was appended.
func lookAgain(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	return exec(ctx, tx, `
		WITH behind AS (
			SELECT r.session_key, `+expiresAt(tenantIdle, tenantAge)+` AS expires_at
			  FROM (SELECT session_key
			          FROM session_retention
			         WHERE tenant_id = $1 AND look_at <= now()
			         ORDER BY look_at
			         LIMIT $2) r
			  JOIN sessions s ON s.tenant_id = $1 AND s.key = r.session_key
		)
		UPDATE session_retention r
		   SET look_at = b.expires_at
		  FROM behind b
		 WHERE r.tenant_id = $1 AND r.session_key = b.session_key
		   AND (b.expires_at > now() OR b.expires_at IS NULL)`, tenant, lookedBehind)
}

// expiredSessions returns the next sessions that an erasure of expired ones is to erase, at most limit.
func (s *Store) expiredSessions(ctx context.Context, w ErasureWork, limit int) ([]uuid.UUID, error) {
	has, err := s.Retention(ctx, w.Tenant)
	if err != nil {
		return nil, err
	}
	by := has.Held()
	return queryRows(ctx, s, w.Tenant, pgx.RowTo[uuid.UUID], `
		SELECT e.key
		  FROM (`+expiredNow+`) e
		 WHERE NOT e.held
		   AND NOT EXISTS (
		       SELECT
		         FROM erasure_sessions l
		        WHERE l.tenant_id = $1 AND l.erasure_id = $4 AND l.session_key = e.key AND l.state = 'held')
		   AND NOT EXISTS (SELECT FROM tenants WHERE id = $1 AND hold IS NOT NULL)
		   AND (SELECT sessions FROM erasures WHERE tenant_id = $1 AND id = $4) < $6
		 LIMIT $5`,
		w.Tenant, by.IdleSeconds, by.AgeSeconds, w.ID, limit, expiredAtOnce)
}

// lookSoon has workers look for more expired sessions if an erasure has left some for the next.
func lookSoon(ctx context.Context, tx pgx.Tx, w ErasureWork) error {
	return exec(ctx, tx, `
		UPDATE retention
		   SET looked_at = '-infinity'
		 WHERE tenant_id = $1
		   AND (SELECT sessions FROM erasures WHERE tenant_id = $1 AND id = $2) >= $3`,
		w.Tenant, w.ID, expiredAtOnce)
}
