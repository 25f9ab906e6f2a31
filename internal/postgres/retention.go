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

// retentionSQLs are the SQL expressions of a tenant's retention.
type retentionSQLs struct{ idle, age, archives, kept string }

var (
	// ofTenant is the retention that the tenant $1 has, held to what operators leave it.
	ofTenant = retentionSQLs{
		idle:     atMost(tenantHas(`coalesce(idle_seconds, archive_idle_seconds)`), mostIdle),
		age:      atMost(tenantHas(`coalesce(age_seconds, archive_age_seconds)`), mostAge),
		archives: tenantHas(`archives`),
		kept:     tenantHas(`archive_kept_seconds`),
	}

	// ofArguments is one that $2 to $5 say, which must be held to that.
	ofArguments = retentionSQLs{idle: `$2::bigint`, age: `$3::bigint`, archives: `$4::boolean`, kept: `$5::bigint`}
)

func tenantHas(value string) string {
	return `(SELECT ` + value + ` FROM retention WHERE tenant_id = $1)`
}

// retentionArgs returns the arguments that ofArguments stands for.
func retentionArgs(tenant uuid.UUID, by session.Retention) []any {
	return []any{tenant, by.IdleSeconds, by.AgeSeconds, by.Archives(), by.ArchiveSeconds}
}

// boundEnds is the SQL expression of when what operators leave the tenant $1 of a session s is over, NULL for never. No
// archive and no restoration makes that later.
var boundEnds = atMost(`s.created_at + `+mostAge+` * interval '1 second'`,
	`greatest(s.created_at, s.last_append_at) + `+mostIdle+` * interval '1 second'`)

// expiresAt returns the SQL expression of when a session s expires, NULL for never, by its own retention or else by the
// tenant's, and at the latest when the operators' bound ends. Where sessions are archived, that is when the archive
// expires.
func expiresAt(tenants retentionSQLs) string {
	return `(
		SELECT least(` + boundEnds + `,
		             CASE WHEN NOT s.archived OR r.archives IS NOT TRUE THEN e.at
		                  ELSE greatest(s.frozen_at, e.at) + r.kept * interval '1 second'
		             END)
		  FROM ` + ownOr(tenants) + `
		 CROSS JOIN LATERAL (
		       SELECT least(greatest(s.created_at, s.restored_at) + r.age * interval '1 second',
		                    greatest(s.created_at, s.last_append_at, s.restored_at)
		                    + r.idle * interval '1 second') AS at) e)`
}

// ownOr joins the retention of a session s as r, its own or else the tenant's.
func ownOr(tenants retentionSQLs) string {
	return `(SELECT) one
		 CROSS JOIN LATERAL (
		       SELECT ` + atMost(`coalesce(o.idle_seconds, o.archive_idle_seconds)`, mostIdle) + ` AS idle,
		              ` + atMost(`coalesce(o.age_seconds, o.archive_age_seconds)`, mostAge) + ` AS age,
		              o.archives, o.archive_kept_seconds AS kept
		         FROM session_retention o
		        WHERE o.tenant_id = $1 AND o.session_key = s.key
		        UNION ALL
		       SELECT ` + tenants.idle + `, ` + tenants.age + `, ` + tenants.archives + `, ` + tenants.kept + `
		        WHERE NOT EXISTS (
		              SELECT
		                FROM session_retention o
		               WHERE o.tenant_id = $1 AND o.session_key = s.key)) r`
}

// isArchived returns the condition that a session s is archived when it expires, and is not yet: when the operators'
// bound is over, it is too late for an archive.
func isArchived(tenants retentionSQLs) string {
	return `(NOT s.archived AND (` + boundEnds + ` <= now()) IS NOT TRUE
		AND (SELECT r.archives IS TRUE FROM ` + ownOr(tenants) + `))`
}

// heldSQL is the condition that a legal hold of its own keeps a session s.
const heldSQL = `EXISTS (SELECT FROM session_holds h WHERE h.tenant_id = $1 AND h.session_key = s.key)`

// expiredSQL returns the statement that finds the tenant's expired sessions: their keys, whether a legal hold of their
// own keeps them, and whether they are to be archived. Each branch has an index, and none of them is one that appends
// write to: the ledger notes the last append of each session a few seconds later. A session may be there twice.
func expiredSQL(by retentionSQLs) string {
	condition := expiresAt(by) + ` <= now()`
	found := `
		SELECT s.key, s.id, ` + heldSQL + ` AS held, ` + isArchived(by) + ` AS archive`
	return found + `
		  FROM sessions s
		 WHERE s.tenant_id = $1 AND ` + before(`s.created_at`, by.age) + ` AND ` + condition + `
		 UNION ALL` + found + `
		  FROM usage_sessions u` + joinSession(`u`) + `
		 WHERE u.tenant_id = $1 AND ` + before(`u.appended_at`, by.idle) + ` AND ` + condition + `
		 UNION ALL` + found + `
		  FROM usage_sessions u` + joinSession(`u`) + `
		 WHERE u.tenant_id = $1 AND u.appended_at IS NULL AND ` + by.idle + ` IS NOT NULL AND ` + condition + `
		 UNION ALL` + found + `
		  FROM sessions s
		 WHERE s.tenant_id = $1 AND s.archived AND ` + by.archives + ` AND ` + before(`s.frozen_at`, by.kept) + `
		   AND ` + condition + `
		 UNION ALL` + found + `
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
	// expiredNow finds what has expired by the retention $2 to $5 of the tenant $1.
	expiredNow = expiredSQL(ofArguments)

	// ExpiresAt is when a session s of the tenant $1 expires, NULL for never.
	ExpiresAt = expiresAt(ofTenant)

	// IsExpired is the condition that a session s of the tenant $1 has expired, and is to be erased by an erasure $2,
	// whose metadata $3 is NULL.
	IsExpired = `$2::uuid IS NOT NULL AND $3::jsonb IS NULL
		AND ` + ExpiresAt + ` <= now() AND NOT ` + isArchived(ofTenant)
)

func scanRetention(row pgx.CollectableRow) (r session.Retention, err error) {
	var archives bool
	err = row.Scan(&r.IdleSeconds, &r.AgeSeconds, &archives, &r.ArchiveSeconds)
	r.Then = session.ThenErase
	if archives {
		r.Then = session.ThenArchive
	}
	return r, err
}

const retentionSQL = `
	SELECT coalesce(idle_seconds, archive_idle_seconds), coalesce(age_seconds, archive_age_seconds), archives,
	       archive_kept_seconds
	  FROM retention
	 WHERE tenant_id = $1`

// Retention returns a tenant's retention, as it was set, and what it is held to.
func (s *Store) Retention(ctx context.Context, tenant uuid.UUID) (session.TenantRetention, error) {
	return ReadTx(ctx, s, tenant, func(tx pgx.Tx) (session.TenantRetention, error) {
		return retentionOf(ctx, tx, tenant)
	})
}

func retentionOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (found session.TenantRetention, err error) {
	if found.Retention, err = orKept(RowIn(ctx, tx, scanRetention, retentionSQL, tenant)); err == nil {
		found.AtMost, err = mostRetention(ctx, tx, tenant)
	}
	return found, err
}

// orKept returns the retention of a tenant that has set none.
func orKept(found session.Retention, err error) (session.Retention, error) {
	if errors.Is(err, session.ErrNotFound) {
		return session.Retention{Then: session.ThenErase}, nil
	}
	return found, err
}

// SetRetention changes a tenant's retention. A worker looks for expired sessions at once. InvalidError for one that is
// longer than operators leave the tenant.
func (s *Store) SetRetention(
	ctx context.Context, tenant uuid.UUID, wanted session.Retention,
) (session.TenantRetention, error) {
	if wanted.Then == "" {
		wanted.Then = session.ThenErase
	}
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (set session.TenantRetention, err error) {
		if err := refuseLonger(ctx, tx, tenant, wanted, ""); err != nil {
			return set, err
		}
		if err := changeRetention(ctx, tx, tenant, wanted); err != nil {
			return set, err
		}
		return retentionOf(ctx, tx, tenant)
	})
}

func changeRetention(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, wanted session.Retention) error {
	if err := expectExpiry(ctx, tx, tenant); err != nil {
		return err
	}
	was, err := RowIn(ctx, tx, scanRetention, retentionSQL+` FOR UPDATE`, tenant)
	if err != nil {
		return err
	}
	d := auditEntry{action: audit.RetentionChange, object: audit.Tenant, id: tenant.String()}
	if d.before, err = json.Marshal(was); err != nil {
		return err
	}
	if d.after, err = json.Marshal(wanted); err != nil || string(d.before) == string(d.after) {
		return err
	}
	err = Exec(ctx, tx, `
		UPDATE retention
		   SET `+setRetention+`, looked_at = '-infinity'
		 WHERE tenant_id = $1`, retentionArgs(tenant, wanted)...)
	if err != nil {
		return err
	}
	return record(ctx, tx, tenant, d)
}

// setRetention sets the columns of a retention to $2 to $5. One that archives has its times where programs from before
// do not see them: they would erase.
const setRetention = `
	idle_seconds = CASE WHEN NOT $4 THEN $2::bigint END, age_seconds = CASE WHEN NOT $4 THEN $3::bigint END,
	archives = $4, archive_idle_seconds = CASE WHEN $4 THEN $2::bigint END,
	archive_age_seconds = CASE WHEN $4 THEN $3::bigint END, archive_kept_seconds = CASE WHEN $4 THEN $5::bigint END`

// expectExpiry makes workers look for the tenant's expired sessions.
func expectExpiry(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	return Exec(ctx, tx, `
		INSERT INTO retention (tenant_id)
		VALUES ($1)
		ON CONFLICT DO NOTHING`, tenant)
}

// ExpiredBy returns what a retention of a tenant would do now, which need not be the one that it has: nil is that.
func (s *Store) ExpiredBy(
	ctx context.Context, tenant uuid.UUID, wanted *session.Retention,
) (session.Expired, error) {
	return ReadTx(ctx, s.Seeing(AllSessions), tenant, func(tx pgx.Tx) (found session.Expired, err error) {
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
	return RowIn(ctx, tx, pgx.RowToStructByPos[session.Expired], `
		WITH found AS MATERIALIZED (`+expiredNow+`
		), kept AS (
			SELECT DISTINCT key, id, held OR (SELECT hold IS NOT NULL FROM tenants WHERE id = $1) AS held, archive
			  FROM found
		)
		SELECT count(*) FILTER (WHERE NOT held), count(*) FILTER (WHERE held), coalesce((
		       SELECT array_agg(id)
		         FROM (SELECT id FROM kept WHERE NOT held ORDER BY key LIMIT $6) first), '{}'),
		       count(*) FILTER (WHERE NOT held AND NOT archive), count(*) FILTER (WHERE NOT held AND archive)
		  FROM kept`, append(retentionArgs(tenant, by), previewedIDs)...)
}

// setOwnRetention changes the retention of a session's own, if a change says so.
func setOwnRetention(ctx context.Context, tx pgx.Tx, key session.Key, change session.Change) error {
	switch {
	case change.DefaultRetention:
		return Exec(ctx, tx, `
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
	err := Exec(ctx, tx, `
		INSERT INTO session_retention (tenant_id, session_key)
		VALUES ($1, $2)
		ON CONFLICT DO NOTHING`, key.Tenant, key.Key)
	if err == nil {
		err = Exec(ctx, tx, `
			UPDATE session_retention
			   SET `+setRetention+`
			 WHERE tenant_id = $1 AND session_key = $6`,
			append(retentionArgs(key.Tenant, *change.Retention), key.Key)...)
	}
	if err != nil {
		return err
	}
	return LookAtOwn(ctx, tx, key)
}

// LookAtOwn notes when to look at a session, if it has a retention of its own.
func LookAtOwn(ctx context.Context, tx pgx.Tx, key session.Key) error {
	return Exec(ctx, tx, `
		UPDATE session_retention r
		   SET look_at = `+ExpiresAt+`
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

// EraseExpired looks for expired sessions of a tenant that are to be erased, and begins their erasure if there are any:
// one at a time, and none while a legal hold keeps the tenant.
func (s *Store) EraseExpired(ctx context.Context, tenant uuid.UUID) (begun bool, err error) {
	err = s.Seeing(AllSessions).InTenant(ctx, tenant, func(tx pgx.Tx) error {
		err := Exec(ctx, tx, `
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
		begun, err = RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM (`+expiredNow+`) e WHERE NOT e.held AND NOT e.archive)
			   AND NOT EXISTS (SELECT FROM tenants WHERE id = $1 AND hold IS NOT NULL)
			   AND NOT EXISTS (
			       SELECT
			         FROM erasures
			        WHERE tenant_id = $1 AND kind = 'retention' AND state <> 'done')`,
			retentionArgs(tenant, has.Held())...)
		if err != nil || !begun {
			return err
		}
		return s.BeginErasure(ctx, tx, Erasing{
			Tenant: tenant, ID: uuid.Must(uuid.NewV7()), Kind: session.ErasureOfExpired,
		})
	})
	return begun, err
}

// beginArchive begins to archive a session that a transaction has locked.
type beginArchive func(ctx context.Context, s *Store, tx pgx.Tx, key session.Key, id string) error

// ArchiveExpired begins to archive expired sessions of a tenant that are to be archived, at most limit of them, and
// returns how many. If there may be more, workers look again soon.
func (s *Store) ArchiveExpired(
	ctx context.Context, tenant uuid.UUID, limit int, begin beginArchive,
) (begun int, err error) {
	has, err := s.Retention(ctx, tenant)
	if err != nil {
		return 0, err
	}
	keys, err := QueryRows(ctx, s.Seeing(WithCold), tenant, pgx.RowTo[uuid.UUID], `
		SELECT DISTINCT e.key
		  FROM (`+expiredNow+`) e
		 WHERE e.archive AND NOT e.held
		   AND NOT EXISTS (SELECT FROM tenants WHERE id = $1 AND hold IS NOT NULL)
		 LIMIT $6`, append(retentionArgs(tenant, has.Held()), limit)...)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		err := s.archiveExpired(ctx, session.Key{Tenant: tenant, Key: key}, begin)
		switch {
		case err == nil:
			begun++
		case errors.Is(err, session.ErrRestoring): // somebody uses it just now
		case !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrHeld):
			return begun, err
		}
	}
	if begun < limit {
		return begun, nil
	}
	return begun, s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			UPDATE retention
			   SET looked_at = '-infinity'
			 WHERE tenant_id = $1`, tenant)
	})
}

// archiveExpired begins to archive a session if it is still expired; ErrNotFound if not.
func (s *Store) archiveExpired(ctx context.Context, key session.Key, begin beginArchive) error {
	return s.Seeing(AllSessions).underLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		id, err := RowIn(ctx, tx, pgx.RowTo[string], `
			SELECT s.id
			  FROM sessions s
			 WHERE s.tenant_id = $1 AND s.key = $2
			   AND `+ExpiresAt+` <= now() AND `+isArchived(ofTenant), key.Tenant, key.Key)
		if err != nil {
			return err
		}
		return begin(ctx, s, tx, row.Key, id)
	})
}

// lookAgain says when to look again at sessions with a retention of their own to which something was appended.
func lookAgain(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	return Exec(ctx, tx, `
		WITH behind AS (
			SELECT r.session_key, `+ExpiresAt+` AS expires_at
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

// ExpiredSessions returns the next sessions that an erasure of expired ones is to erase, at most limit.
func (s *Store) ExpiredSessions(ctx context.Context, tenant, erasure uuid.UUID, limit int) ([]uuid.UUID, error) {
	has, err := s.Retention(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return QueryRows(ctx, s, tenant, pgx.RowTo[uuid.UUID], `
		SELECT e.key
		  FROM (`+expiredNow+`) e
		 WHERE NOT e.held AND NOT e.archive
		   AND NOT EXISTS (
		       SELECT
		         FROM erasure_sessions l
		        WHERE l.tenant_id = $1 AND l.erasure_id = $6 AND l.session_key = e.key AND l.state = 'held')
		   AND NOT EXISTS (SELECT FROM tenants WHERE id = $1 AND hold IS NOT NULL)
		   AND (SELECT sessions FROM erasures WHERE tenant_id = $1 AND id = $6) < $8
		 LIMIT $7`, append(retentionArgs(tenant, has.Held()), erasure, limit, expiredAtOnce)...)
}

// LookSoon has workers look for more expired sessions if an erasure has left some for the next.
func LookSoon(ctx context.Context, tx pgx.Tx, tenant, erasure uuid.UUID) error {
	return Exec(ctx, tx, `
		UPDATE retention
		   SET looked_at = '-infinity'
		 WHERE tenant_id = $1
		   AND (SELECT sessions FROM erasures WHERE tenant_id = $1 AND id = $2) >= $3`,
		tenant, erasure, expiredAtOnce)
}
