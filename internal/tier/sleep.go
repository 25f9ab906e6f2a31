package tier

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// asleepSQL finds sessions of the tenant $1 that nothing was appended to, nobody read, and no use brought back, for the
// time $2. One that came back for work that reads many is left alone for ten minutes. What is to come must come first:
// a compaction, an upload, the end of a legal hold.
const asleepSQL = `
	SELECT s.key, s.id
	  FROM usage_sessions u
	  JOIN sessions s ON s.tenant_id = u.tenant_id AND s.key = u.session_key
	 WHERE u.tenant_id = $1
	   AND NOT u.away
	   AND s.frozen_at IS NULL
	   AND greatest(u.appended_at, u.thawed_at) <= now() - $2::interval
	   AND s.last_append_at <= now() - $2::interval
	   AND u.read_at <= now() - $2::interval
	   AND (u.back_at IS NULL OR u.back_at <= now() - least($2::interval, interval '10 minutes'))
	   AND NOT EXISTS (SELECT FROM tenants WHERE id = $1 AND (hold IS NOT NULL OR suspended IS NOT NULL))
	   AND NOT EXISTS (SELECT FROM session_holds WHERE tenant_id = $1 AND session_key = s.key)
	   AND NOT EXISTS (SELECT FROM due_sessions WHERE tenant_id = $1 AND session_key = s.key)
	   AND NOT EXISTS (SELECT FROM session_failures WHERE tenant_id = $1 AND session_key = s.key)
	   AND NOT EXISTS (SELECT FROM uploads WHERE tenant_id = $1 AND session_key = s.key AND finished_at IS NULL)
	   AND NOT EXISTS (SELECT FROM runs
	                    WHERE tenant_id = $1 AND session_key = s.key AND state IN ('queued', 'running'))
	   AND NOT EXISTS (SELECT FROM recompaction_sessions
	                    WHERE tenant_id = $1 AND session_key = s.key AND state IN ('queued', 'running'))
	   AND NOT EXISTS (SELECT FROM summaries
	                    WHERE tenant_id = $1 AND session_key = s.key AND state IN ('due', 'asking'))`

// sleeping is a session that is to be frozen.
type sleeping struct {
	Key uuid.UUID
	ID  string
}

// FreezeSleeping begins to freeze sessions of a tenant that have slept for a time, those first that sleep the longest,
// at most limit of them. It returns how many.
func FreezeSleeping(
	ctx context.Context, s *postgres.Store, tenant uuid.UUID, slept time.Duration, limit int,
) (begun int, err error) {
	found, err := postgres.QueryRows(ctx, s, tenant, pgx.RowToStructByPos[sleeping], asleepSQL+`
		 ORDER BY greatest(u.appended_at, u.thawed_at)
		 LIMIT $3`, tenant, slept, limit)
	if err != nil {
		return 0, err
	}
	for _, f := range found {
		err := freezeAsleep(ctx, s.Seeing(postgres.AllSessions), session.Key{Tenant: tenant, Key: f.Key}, slept)
		switch {
		case err == nil:
			begun++
		case !errors.Is(err, session.ErrNotFound):
			return begun, err
		}
	}
	return begun, nil
}

// freezeAsleep begins to freeze a session if it still sleeps; ErrNotFound if not.
func freezeAsleep(ctx context.Context, s *postgres.Store, key session.Key, slept time.Duration) error {
	return underLock(ctx, s, key, func(tx pgx.Tx) error {
		f, err := postgres.RowIn(ctx, tx, pgx.RowToStructByPos[sleeping], asleepSQL+` AND s.key = $3`,
			key.Tenant, slept, key.Key)
		if err != nil {
			return err
		}
		return freeze(ctx, s, tx, key, f.ID, false)
	})
}

// Thawing is what BeginThaw has found.
type Thawing struct {
	Archive uuid.UUID // which the caller is to restore; Nil if not
	Wait    bool      // another restores it
	objects []object  // that nothing names any more
}

// thawAlone is how long a thaw has before a worker takes it over: whoever thaws a session may be killed.
const thawAlone = 30 * time.Second

// BeginThaw begins to bring a cold session back, which is done at once if it was not frozen yet. used says that
// somebody uses the session: it is not frozen before it has slept again. A session that is not cold needs nothing.
//
// Errors: ErrNotFound if there is no such session.
func BeginThaw(ctx context.Context, s *postgres.Store, key session.Key, used bool) (t Thawing, err error) {
	s = s.Seeing(postgres.AllSessions)
	err = s.InTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
		row, err := postgres.LockKey(ctx, tx, key)
		if err != nil {
			return err
		}
		t, err = beginThaw(ctx, s, tx, key, true, row.Now.Add(thawAlone))
		if errors.Is(err, session.ErrNotFound) {
			return nil
		}
		if err == nil && used {
			err = noteUse(ctx, tx, key)
		}
		return err
	})
	if err == nil {
		forget(ctx, s, key.Tenant, t.objects)
	}
	return t, err
}

// beginThaw begins to bring a session back that a transaction has locked, a cold one or one that was archived. One that
// is not frozen yet is back at once; for another, a job restores it from a time on. ErrNotFound if it is neither.
func beginThaw(
	ctx context.Context, s *postgres.Store, tx pgx.Tx, key session.Key, cold bool, start time.Time,
) (t Thawing, err error) {
	var state session.ArchiveState
	err = tx.QueryRow(ctx, `
		SELECT a.id, a.state
		  FROM session_archives a
		  JOIN sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
		 WHERE a.tenant_id = $1 AND a.session_key = $2 AND s.archived <> $3`, key.Tenant, key.Key, cold).
		Scan(&t.Archive, &state)
	switch {
	case err != nil:
		return Thawing{}, postgres.NotFound(err)
	case state == session.Restoring:
		return Thawing{Wait: true}, nil
	case state == session.Archiving:
		_, objects, err := end(ctx, s, tx, key)
		return Thawing{objects: objects}, err
	}
	err = postgres.Exec(ctx, tx, `
		UPDATE session_archives
		   SET state = 'restoring', done = 0, error = NULL, failed_at = NULL
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	if err != nil {
		return Thawing{}, err
	}
	return t, insertJob(ctx, s, tx, key, t.Archive, true, start)
}

// noteUse notes that a session is used, so that it is not frozen soon.
func noteUse(ctx context.Context, tx pgx.Tx, key session.Key) error {
	return postgres.Exec(ctx, tx, `
		UPDATE usage_sessions
		   SET thawed_at = now()
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
}
