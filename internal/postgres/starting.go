package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// StartingRun returns the run that will soon change a session's view: one that runs, or that starts when a worker is
// free. If the session is due and has no run, StartingRun asks for one. A run that nothing has happened to for longer
// than patience is none: its worker needs long, or there is no worker.
//
// Errors: ErrNotFound, also if there is no such run.
func (s *Store) StartingRun(ctx context.Context, at session.Address, patience time.Duration) (session.Run, error) {
	pen, err := s.TurnToWrite(ctx, at)
	if err != nil {
		return session.Run{}, err
	}
	defer pen.Done()
	return InTx(ctx, s, at.Tenant, func(tx pgx.Tx) (session.Run, error) {
		row, err := lockSession(ctx, tx, at)
		if err != nil {
			return session.Run{}, err
		}
		found, err := startingRun(ctx, tx, row.Key, patience)
		if err == nil || !errors.Is(err, session.ErrNotFound) {
			return found, err
		}
		if err := s.compactIfDue(ctx, tx, row.Key, causes[due.Hard]); err != nil {
			return session.Run{}, err
		}
		return startingRun(ctx, tx, row.Key, patience)
	})
}

func startingRun(ctx context.Context, tx pgx.Tx, key session.Key, patience time.Duration) (session.Run, error) {
	return RowIn(ctx, tx, scanRun, `
		SELECT `+runColumns+`
		  FROM runs r
		  JOIN sessions s ON s.tenant_id = r.tenant_id AND s.key = r.session_key
		 WHERE r.tenant_id = $1
		   AND r.session_key = $2
		   AND r.state IN ('queued', 'running')
		   AND greatest(r.triggered_at, r.started_at, s.last_append_at) > now() - $3::interval
		   AND `+queue.IsStarting(`r.job_id`)+`
		 ORDER BY r.triggered_at DESC, r.id DESC
		 LIMIT 1`, key.Tenant, key.Key, patience)
}
