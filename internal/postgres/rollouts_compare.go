package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// RolloutFound is a rollout with what is known of its version beside the default.
type RolloutFound struct {
	session.Rollout
	Comparison session.RolloutComparison
	Replay     *session.Replay // the newest that measures both, nil for none
	Report     json.RawMessage // of the replay, nil if there is none yet
}

var compareRolloutSQL = statement("compare_rollout")

// Rollout reads a rollout with its comparison, at one moment; ErrNotFound.
func (s *Store) Rollout(ctx context.Context, tenant, id uuid.UUID) (found RolloutFound, err error) {
	err = s.inSnapshot(ctx, tenant, func(tx pgx.Tx) error {
		if found.Rollout, err = readRollout(ctx, tx, tenant, id); err != nil {
			return err
		}
		if found.Comparison, err = compareRollout(ctx, tx, tenant, found.Rollout); err != nil {
			return err
		}
		return found.readReplay(ctx, tx, tenant)
	})
	return found, err
}

// compareRollout counts what runs did since a rollout began, until it ended.
func compareRollout(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Rollout) (
	c session.RolloutComparison, err error,
) {
	for arm, version := range map[*session.RolloutArm]int{&c.Control: r.BaseVersion, &c.Canary: r.Version} {
		*arm, err = rowIn(ctx, tx, scanArm, compareRolloutSQL, pgx.NamedArgs{
			"tenant": tenant, "version": version, "from": r.StartedAt, "to": r.EndedAt,
		})
		if err != nil {
			return c, fmt.Errorf("comparison of rollout %s: %w", r.ID, err)
		}
		arm.Version = version
		arm.SetRates()
	}
	return c, nil
}

func scanArm(row pgx.CollectableRow) (a session.RolloutArm, err error) {
	m, b := &a.Summaries, &a.ReadBack
	err = row.Scan(&a.Sessions, &a.Compactions, &a.TokensBefore, &a.TokensAfter, &a.TokensSaved, &a.Trimmed,
		&a.Failures, &a.Quarantined, &m.Answered, &m.Calls, &m.Input, &m.Output, &m.CostMicros,
		&b.Parts, &b.Reads, &b.Tokens)
	return a, err
}

// readReplay looks for the newest replay that measures both versions by their names.
func (f *RolloutFound) readReplay(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	both := fmt.Sprintf(`[{"name":"tenant@%d"},{"name":"tenant@%d"}]`, f.BaseVersion, f.Version)
	id, err := rowIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT id
		  FROM replays
		 WHERE tenant_id = $1 AND contenders::jsonb @> $2::jsonb
		 ORDER BY created_at DESC, id DESC
		 LIMIT 1`, tenant, both)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	found, err := rowIn(ctx, tx, scanReplay, readReplaySQL, tenant, id)
	if err != nil {
		return err
	}
	f.Replay = &found
	f.Report, err = rowIn(ctx, tx, pgx.RowTo[json.RawMessage], `
		SELECT report
		  FROM replays
		 WHERE tenant_id = $1 AND id = $2`, tenant, id)
	return err
}

var takeBackSQL = statement("take_back_rollout")

// undoRollout makes a recompaction of the sessions that compactions under the version of a rollout changed, as one that
// has ended and is rolled back. It returns nil if there are none.
func (s *Store) undoRollout(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Rollout) (*uuid.UUID, error) {
	id := uuid.Must(uuid.NewV7())
	err := exec(ctx, tx, `
		INSERT INTO recompactions (tenant_id, id, state, filter, max_running, started_at, finished_at)
		VALUES ($1, $2, 'done', '{}', 1, $3, now())`, tenant, id, r.StartedAt)
	if err != nil {
		return nil, err
	}
	changed, err := rowIn(ctx, tx, pgx.RowTo[int64], takeBackSQL,
		pgx.NamedArgs{"tenant": tenant, "recompaction": id, "version": r.Version})
	if err != nil {
		return nil, err
	}
	if changed == 0 {
		return nil, exec(ctx, tx, `
			DELETE FROM recompactions
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
	}
	_, err = s.control(ctx, tx, tenant, id, RollBack)
	return &id, err
}

// GuardRollout ends the rollout of a tenant whose guard finds its version worse than the default. It returns the
// rollout that it ended, nil for none.
func (s *Store) GuardRollout(ctx context.Context, tenant uuid.UUID) (*session.Rollout, error) {
	return inTx(ctx, s, tenant, func(tx pgx.Tx) (*session.Rollout, error) {
		id, err := rowIn(ctx, tx, pgx.RowTo[uuid.UUID], `
			SELECT id
			  FROM policy_rollouts
			 WHERE tenant_id = $1 AND ended_at IS NULL AND guard IS NOT NULL`, tenant)
		if errors.Is(err, session.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		r, old, err := lockRollout(ctx, tx, tenant, id, nil)
		if errors.Is(err, session.ErrRolloutEnded) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		c, err := compareRollout(ctx, tx, tenant, r)
		if err != nil {
			return nil, err
		}
		rate := r.Guard.Trips(&c)
		if rate == "" {
			return nil, nil
		}
		r, err = backOut(ctx, tx, tenant, r, old, new(fmt.Sprintf("guard: %s is more than %v times that of version %d",
			rate, r.Guard.Factor, r.BaseVersion)))
		return &r, err
	})
}
