package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// recompactionBatch is how many of a tenant's sessions one transaction examines.
	recompactionBatch = 1000

	// shownErrors is how many of a recompaction's newest errors are read with it.
	shownErrors = 10
)

// The condition that a filter sets on sessions s is in both statements; filterArgs returns its parameters.
var (
	filterSQL = statement("recompaction_filter")
	countSQL  = statement("count_recompaction", "{filter}", filterSQL)
	fillSQL   = statement("fill_recompaction", "{filter}", filterSQL)
)

func filterArgs(tenant uuid.UUID, f session.SessionFilter) pgx.NamedArgs {
	return pgx.NamedArgs{
		"tenant": tenant, "sessions": f.Sessions, "metadata": f.Metadata, "created_before": f.CreatedBefore,
		"created_after": f.CreatedAfter, "min_tokens": f.MinTokens, "engine_version": f.EngineVersionBelow,
		"policy_version": f.PolicyVersionBelow,
	}
}

// CountRecompaction counts the sessions that a filter finds, and samples at most this many of them, evenly by age.
func (s *Store) CountRecompaction(ctx context.Context, tenant uuid.UUID, f session.SessionFilter, sample int) (
	found session.RecompactionCount, err error,
) {
	var keys []uuid.UUID
	var ids []string
	args := filterArgs(tenant, f)
	args["sample"] = sample
	err = query(ctx, s.pool, tenant, countSQL, []any{args},
		one(&found.Sessions, &found.Messages, &found.TotalTokens, &found.ContextTokens, &keys, &ids))
	for i := range keys {
		key := session.Key{Tenant: tenant, Key: keys[i]}
		found.Sample = append(found.Sample, session.SampledSession{Key: key, ID: ids[i]})
	}
	return found, err
}

// CreateRecompaction begins a recompaction of the sessions that a filter finds and that exist now;
// ErrIdempotencyReused.
func (s *Store) CreateRecompaction(
	ctx context.Context, tenant uuid.UUID, r session.Recompaction, id *session.Idempotency,
) (session.Recompaction, bool, error) {
	return once(ctx, s, tenant, id, func(tx pgx.Tx) (session.Recompaction, uuid.UUID, error) {
		made := session.Recompaction{
			ID: uuid.Must(uuid.NewV7()), State: session.RecompactionQueued, Filter: r.Filter, Policy: r.Policy,
			MaxRunning: r.MaxRunning, Ask: r.Ask,
		}
		err := tx.QueryRow(ctx, `
			INSERT INTO recompactions (tenant_id, id, filter, policy, max_running, ask)
			VALUES ($1, $2, $3, $4, $5, $6)
			RETURNING created_at`, tenant, made.ID, r.Filter, r.Policy, r.MaxRunning, r.Ask).Scan(&made.CreatedAt)
		if err != nil {
			return made, uuid.Nil, err
		}
		if err := addChore(ctx, tx, tenant, ChoreRecompaction); err != nil {
			return made, uuid.Nil, err
		}
		if err := s.insertFill(ctx, tx, tenant, made.ID); err != nil {
			return made, uuid.Nil, err
		}
		err = emitRecompaction(ctx, tx, tenant, made.ID, session.EventRecompactionStarted, about{})
		if err != nil {
			return made, uuid.Nil, err
		}
		return made, made.ID, record(ctx, tx, tenant, deed{
			action: audit.RecompactionStart, object: audit.Recompaction, id: made.ID.String(),
			detail: about{"filter": r.Filter, "policy": r.Policy, "ask": r.Ask},
		})
	})
}

const recompactionColumns = `
	r.id, r.state, r.filter, r.policy, r.max_running, r.ask, r.total, r.changed, r.unchanged, r.failed, r.skipped,
	r.tokens_before, r.tokens_after, r.error, r.created_at, r.started_at, r.finished_at,
	(SELECT count(*)
	   FROM recompaction_sessions l
	  WHERE l.tenant_id = $1 AND l.recompaction_id = r.id AND l.state = 'running' AND l.finished_at IS NULL) AS running`

var scanRecompaction = pgx.RowToStructByNameLax[session.Recompaction]

// Recompaction reads a recompaction with the newest errors of its sessions; ErrNotFound.
func (s *Store) Recompaction(ctx context.Context, tenant, id uuid.UUID) (session.Recompaction, error) {
	return inTx(ctx, s, tenant, func(tx pgx.Tx) (session.Recompaction, error) {
		return readRecompaction(ctx, tx, tenant, id)
	})
}

func readRecompaction(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (session.Recompaction, error) {
	found, err := rowIn(ctx, tx, scanRecompaction, `
		SELECT `+recompactionColumns+`
		  FROM recompactions r
		 WHERE r.tenant_id = $1 AND r.id = $2`, tenant, id)
	if err != nil {
		return found, err
	}
	found.Errors, err = rowsIn(ctx, tx, pgx.RowToStructByName[session.RecompactionError], `
		SELECT coalesce((SELECT s.id FROM sessions s WHERE s.tenant_id = $1 AND s.key = l.session_key), '') AS session,
		       l.error, l.finished_at AS at
		  FROM recompaction_sessions l
		 WHERE l.tenant_id = $1 AND l.recompaction_id = $2 AND l.state = 'failed'
		 ORDER BY l.finished_at DESC
		 LIMIT $3`, tenant, id, shownErrors)
	return found, err
}

// Recompactions lists a tenant's recompactions, newest first, without the errors of their sessions.
func (s *Store) Recompactions(ctx context.Context, tenant uuid.UUID, page session.Page) (
	[]session.Recompaction, error,
) {
	sql := `
		SELECT ` + recompactionColumns + `
		  FROM recompactions r
		 WHERE r.tenant_id = $1` + newestFirst(`r.created_at`, `r.id`)
	return queryRows(ctx, s, tenant, scanRecompaction, sql, pageArgs(tenant, page)...)
}

// CancelRecompaction lets the sessions of a recompaction that are running finish, and starts no others. One that has
// ended, or is being cancelled, stays as it is.
//
// Errors: ErrNotFound, ErrIdempotencyReused.
func (s *Store) CancelRecompaction(ctx context.Context, tenant, id uuid.UUID, key *session.Idempotency) (
	session.Recompaction, bool, error,
) {
	return once(ctx, s, tenant, key, func(tx pgx.Tx) (session.Recompaction, uuid.UUID, error) {
		c, err := lockRecompaction(ctx, tx, tenant, id)
		if err != nil {
			return session.Recompaction{}, uuid.Nil, err
		}
		goesOn := !c.State.Ended() && c.State != session.RecompactionCancelling
		if !c.State.Ended() {
			c.State = session.RecompactionCancelling
			if err := s.advance(ctx, tx, c); err != nil {
				return session.Recompaction{}, uuid.Nil, err
			}
		}
		found, err := readRecompaction(ctx, tx, tenant, id)
		if err != nil || !goesOn {
			return found, id, err
		}
		return found, id, record(ctx, tx, tenant, deed{
			action: audit.RecompactionCancel, object: audit.Recompaction, id: id.String(),
		})
	})
}

// FillRecompaction looks for the next sessions of a recompaction and completes the job that does so. It inserts
// another such job if there may be more sessions, otherwise the jobs of the first sessions.
//
// Errors: ErrNotFound.
func (s *Store) FillRecompaction(ctx context.Context, tenant, id uuid.UUID, job int64) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		c, err := lockRecompaction(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if err := s.queue.Complete(ctx, tx, job); err != nil {
			return err
		}
		if c.State != session.RecompactionQueued {
			return s.advance(ctx, tx, c)
		}
		if err := c.fill(ctx, tx); err != nil {
			return err
		}
		if c.State == session.RecompactionQueued {
			return s.insertFill(ctx, tx, tenant, id)
		}
		return s.advance(ctx, tx, c)
	})
}

// insertFill inserts the job that looks for the next sessions of a recompaction, unless there is a live one.
func (s *Store) insertFill(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	_, _, err := s.queue.Insert(ctx, tx, queue.FillArgs{Tenant: tenant, Recompaction: id}, time.Time{})
	return err
}

// fill adds the next sessions that the filter finds, and sets the recompaction running after the last ones. Sessions
// that are younger than the recompaction do not belong to it: it would never end.
func (c *lockedRecompaction) fill(ctx context.Context, tx pgx.Tx) error {
	args := filterArgs(c.TenantID, c.Filter)
	args["cursor"] = c.Cursor
	args["batch"] = recompactionBatch
	args["id"] = c.ID
	args["created_at"] = c.CreatedAt
	var looked, found int64
	var last uuid.UUID
	err := tx.QueryRow(ctx, fillSQL, args).Scan(&looked, &found, &last)
	if err != nil {
		return fmt.Errorf("sessions of recompaction %s: %w", c.ID, err)
	}
	if looked > 0 {
		c.Cursor = last
	}
	if looked < recompactionBatch {
		c.State = session.RecompactionRunning
	}
	return exec(ctx, tx, `
		UPDATE recompactions
		   SET total = total + $3, cursor = $4, state = $5, started_at = coalesce(started_at, now())
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID, found, c.Cursor, c.State)
}

// FailRecompaction ends a recompaction whose sessions could not be found.
func (s *Store) FailRecompaction(ctx context.Context, tenant, id uuid.UUID, reason string) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		return emitEnded(ctx, tx, tenant, id, `
			UPDATE recompactions
			   SET state = 'failed', error = $3, finished_at = now()
			 WHERE tenant_id = $1 AND id = $2 AND state = 'queued'`, tenant, id, Text(reason))
	})
}
