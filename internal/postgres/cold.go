package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// PlaceOf returns where what was said in a session is; ErrNotFound.
func (s *Store) PlaceOf(ctx context.Context, at session.Address) (session.Place, error) {
	return QueryRow(ctx, s.Seeing(AllSessions), at.Tenant, pgx.RowToStructByPos[session.Place], `
		SELECT s.key, s.archived, s.frozen_at IS NOT NULL AND NOT s.archived,
		       coalesce(u.back_at > now() - interval '1 minute', false)
		  FROM sessions s
		  LEFT JOIN usage_sessions u ON u.tenant_id = s.tenant_id AND u.session_key = s.key
		 WHERE s.tenant_id = $1 AND s.id = $2`, at.Tenant, at.ID)
}

// ColdState returns how far a cold session is on its way there or back; "" for one that is not cold, or not there.
func (s *Store) ColdState(ctx context.Context, key session.Key) (session.ArchiveState, error) {
	return QueryRow(ctx, s.Seeing(WithCold), key.Tenant, pgx.RowTo[session.ArchiveState], `
		SELECT coalesce((SELECT a.state
		                   FROM session_archives a
		                   JOIN sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
		                  WHERE a.tenant_id = $1 AND a.session_key = $2 AND NOT s.archived), '')`, key.Tenant, key.Key)
}

// CountCold counts a tenant's cold sessions, up to a limit, in a transaction that sees none of them.
func CountCold(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, limit int) (cold int64, err error) {
	if err := Exec(ctx, tx, seeMore, WithCold); err != nil {
		return 0, err
	}
	cold, err = RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT count(*)
		  FROM (SELECT
		          FROM sessions
		         WHERE tenant_id = $1 AND frozen_at IS NOT NULL AND NOT archived
		         LIMIT $2) s`, tenant, limit)
	if err != nil {
		return 0, err
	}
	return cold, Exec(ctx, tx, seeMore, Served)
}

// ColdOf returns those of a list of sessions' ids that are cold.
func (s *Store) ColdOf(ctx context.Context, tenant uuid.UUID, ids []string) ([]string, error) {
	return QueryRows(ctx, s.Seeing(AllSessions), tenant, pgx.RowTo[string], `
		SELECT id
		  FROM sessions
		 WHERE tenant_id = $1 AND id = ANY ($2) AND frozen_at IS NOT NULL AND NOT archived`, tenant, ids)
}

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

// Freeze begins to freeze sessions of a tenant that have slept for a time, those first that sleep the longest, at most
// limit of them. It returns how many.
func (s *Store) Freeze(ctx context.Context, tenant uuid.UUID, slept time.Duration, limit int) (begun int, err error) {
	found, err := QueryRows(ctx, s, tenant, pgx.RowToStructByPos[sleeping], asleepSQL+`
		 ORDER BY greatest(u.appended_at, u.thawed_at)
		 LIMIT $3`, tenant, slept, limit)
	if err != nil {
		return 0, err
	}
	for _, f := range found {
		err := s.freezeAsleep(ctx, session.Key{Tenant: tenant, Key: f.Key}, slept)
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
func (s *Store) freezeAsleep(ctx context.Context, key session.Key, slept time.Duration) error {
	s = s.Seeing(AllSessions)
	return s.underLock(ctx, key, func(tx pgx.Tx, _ lockedSession) error {
		f, err := RowIn(ctx, tx, pgx.RowToStructByPos[sleeping], asleepSQL+` AND s.key = $3`,
			key.Tenant, slept, key.Key)
		if err != nil {
			return err
		}
		return s.freeze(ctx, tx, key, f.ID, false)
	})
}

// Thaw is what BeginThaw has found.
type Thaw struct {
	Archive uuid.UUID    // which the caller is to restore; Nil if not
	Wait    bool         // another restores it
	Objects []AwayObject // that nothing names any more
}

// thawAlone is how long a thaw has before a worker takes it over: whoever thaws a session may be killed.
const thawAlone = 30 * time.Second

// BeginThaw begins to bring a cold session back, which is done at once if it was not frozen yet. used says that
// somebody uses the session: it is not frozen before it has slept again. A session that is not cold needs nothing.
//
// Errors: ErrNotFound if there is no such session.
func (s *Store) BeginThaw(ctx context.Context, key session.Key, used bool) (t Thaw, err error) {
	s = s.Seeing(AllSessions)
	err = s.underLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		t, err = s.beginThaw(ctx, tx, key, true, row.now.Add(thawAlone))
		if errors.Is(err, session.ErrNotFound) {
			return nil
		}
		if err == nil && used {
			err = noteUse(ctx, tx, key)
		}
		return err
	})
	return t, err
}

// beginThaw begins to bring a session back that this transaction has locked, a cold one or one that was archived. One
// that is not frozen yet is back at once; for another, a job restores it from a time on. ErrNotFound if it is neither.
func (s *Store) beginThaw(
	ctx context.Context, tx pgx.Tx, key session.Key, cold bool, start time.Time,
) (t Thaw, err error) {
	var state session.ArchiveState
	err = tx.QueryRow(ctx, `
		SELECT a.id, a.state
		  FROM session_archives a
		  JOIN sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
		 WHERE a.tenant_id = $1 AND a.session_key = $2 AND s.archived <> $3`, key.Tenant, key.Key, cold).
		Scan(&t.Archive, &state)
	switch {
	case err != nil:
		return Thaw{}, NotFound(err)
	case state == session.Restoring:
		return Thaw{Wait: true}, nil
	case state == session.Archiving:
		objects, err := s.endArchive(ctx, tx, key)
		return Thaw{Objects: objects}, err
	}
	err = Exec(ctx, tx, `
		UPDATE session_archives
		   SET state = 'restoring', done = 0, error = NULL, failed_at = NULL
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
	if err != nil {
		return Thaw{}, err
	}
	return t, s.insertArchiving(ctx, tx, key, t.Archive, true, start)
}

// noteUse notes that a session is used, so that it is not frozen soon.
func noteUse(ctx context.Context, tx pgx.Tx, key session.Key) error {
	return Exec(ctx, tx, `
		UPDATE usage_sessions
		   SET thawed_at = now()
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
}

// archiveCold makes a cold session that this transaction has locked an archived one: its archive is what it was. It
// returns the state of that. ErrNotFound if the session is not cold; ErrRestoring.
func archiveCold(ctx context.Context, tx pgx.Tx, key session.Key) (state session.ArchiveState, err error) {
	state, err = RowIn(ctx, tx, pgx.RowTo[session.ArchiveState], `
		UPDATE session_archives
		   SET archived_at = CASE WHEN state = 'archived' THEN now() END
		 WHERE tenant_id = $1 AND session_key = $2
		RETURNING state`, key.Tenant, key.Key)
	if err == nil && state == session.Restoring {
		err = session.ErrRestoring
	}
	if err != nil {
		return state, err
	}
	return state, Exec(ctx, tx, `
		UPDATE sessions
		   SET frozen_at = now(), archived = true
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
}
