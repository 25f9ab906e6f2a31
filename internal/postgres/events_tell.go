package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/session"
)

// emitCompacted tells that a compaction has made a checkpoint, and what left the view with it.
func emitCompacted(ctx context.Context, tx pgx.Tx, key session.Key, o Outcome) error {
	if o.Checkpoint == nil {
		return nil
	}
	id, err := idOf(ctx, tx, key)
	if err != nil {
		return err
	}
	lost, err := manifest.Parse([]json.RawMessage{o.Checkpoint.Manifest})
	if err != nil {
		return err
	}
	n := o.Base + 1
	data := about{
		"run": o.Run.ID, "cause": o.Run.Cause, "checkpoint": n, "through_seq": o.Checkpoint.Through,
		"tokens_before": o.Run.TokensBefore, "tokens_after": o.Run.TokensAfter, "tokens_saved": o.Saved,
		"results_persisted": o.Run.ResultsPersisted,
		"loss": about{
			"entries": len(lost[0]), "tokens_saved": lost[0].Saved(), "stages": lost[0].Stages(),
			"manifest": fmt.Sprintf("/v1/sessions/%s/checkpoints/%d", url.PathEscape(id), n),
		},
	}
	if o.Part != nil {
		maps.Copy(data, o.Part.About)
	}
	return emit(ctx, tx, key.Tenant, happening{
		kind: session.EventCompacted, topic: session.TopicOf(id), data: data,
	})
}

// emitSpent tells once a day that a tenant's budget does not allow the next call of a model.
func emitSpent(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, model string, budget session.ModelBudget) error {
	var used session.ModelSpending
	var day string
	err := tx.QueryRow(ctx, `
		SELECT `+today+`::text, coalesce(sum(calls), 0)::bigint, coalesce(sum(input_tokens), 0)::bigint,
		       coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(cost_micros), 0)::bigint
		  FROM model_spending
		 WHERE tenant_id = $1 AND day = `+today+` AND model = ''`, tenant).
		Scan(&day, &used.Calls, &used.Input, &used.Output, &used.CostMicros)
	if err != nil {
		return err
	}
	return emit(ctx, tx, tenant, happening{
		kind: session.EventBudgetSpent, topic: "budget", once: string(session.EventBudgetSpent) + " " + day,
		data: about{"day": day, "model": model, "used": used, "budget": budget},
	})
}

// unlessSpent does what a call reserves. If the budget of the day does not allow it, nothing of that stays but an
// event.
func unlessSpent(
	ctx context.Context, tx pgx.Tx, call session.ModelCall, budget session.ModelBudget, do func(pgx.Tx) error,
) (refused, err error) {
	err = pgx.BeginFunc(ctx, tx, do) // a savepoint
	if errors.Is(err, session.ErrModelBudget) {
		return err, emitSpent(ctx, tx, call.Tenant, call.Model, budget)
	}
	return nil, err
}
