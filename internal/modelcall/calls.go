package modelcall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Calls has the SQL of calls: of the tables model_answers and model_spending.
type Calls struct{ *postgres.Store }

// Begin takes the right to make a call, and reserves the most that it can use of the tenant's budget of the day,
// in one transaction. Whoever has it must end it with End, before its time is over.
//
// Errors: ErrModelAsked if another has the right, ErrModelBudget if the call could pass the budget, ErrExists if the
// answer is kept, ErrNotFound if the session is gone.
func (c Calls) Begin(ctx context.Context, call session.ModelCall, budget session.ModelBudget) (
	session.ModelLease, error,
) {
	lease := session.ModelLease{Call: call, ID: uuid.New()}
	var spent error
	err := c.InTenant(ctx, call.Tenant, func(tx pgx.Tx) error {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
			if err := takeLease(ctx, tx, lease); err != nil {
				return err
			}
			return reserve(ctx, tx, call, budget)
		})
		if errors.Is(err, session.ErrModelBudget) { // nothing stays but an event
			spent = err
			return emitSpent(ctx, tx, call.Tenant, call.Model, budget)
		}
		return err
	})
	if err == nil {
		err = spent
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23503" { // the row that names the session
		err = session.ErrNotFound
	}
	return lease, err
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
	return postgres.Emit(ctx, tx, tenant, postgres.Happening{
		Kind: session.EventBudgetSpent, Topic: "budget", Once: string(session.EventBudgetSpent) + " " + day,
		Data: map[string]any{"day": day, "model": model, "used": used, "budget": budget},
	})
}

// takeLease inserts the row of a call, or takes it over from a process that is dead. What that one has reserved stays
// spent.
func takeLease(ctx context.Context, tx pgx.Tx, lease session.ModelLease) error {
	call := lease.Call
	var owner *uuid.UUID // NULL for a call that is of no session
	if call.Session != uuid.Nil {
		owner = &call.Session
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO model_answers AS a (tenant_id, key, session_key, provider, model, prompt_version, digest, lease,
		                                leased_until, reserved_day, reserved_input, reserved_output, reserved_cost)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + $9::interval, `+today+`, $10, $11, $12)
		ON CONFLICT (tenant_id, key) DO UPDATE
		   SET session_key = excluded.session_key, lease = excluded.lease, leased_until = excluded.leased_until,
		       reserved_day = excluded.reserved_day, reserved_input = excluded.reserved_input,
		       reserved_output = excluded.reserved_output, reserved_cost = excluded.reserved_cost
		 WHERE a.answer IS NULL AND a.leased_until < now()`,
		call.Tenant, call.Key[:], owner, call.Provider, call.Model, call.PromptVersion,
		call.Digest[:], lease.ID, call.Time, call.Bound.Input, call.Bound.Output, call.Bound.CostMicros)
	if err != nil || tag.RowsAffected() > 0 {
		return err
	}
	answered, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT answer IS NOT NULL
		  FROM model_answers
		 WHERE tenant_id = $1 AND key = $2`, call.Tenant, call.Key[:])
	switch {
	case err == nil && answered:
		return session.ErrExists
	case err == nil || errors.Is(err, session.ErrNotFound): // it has ended without an answer since
		return session.ErrModelAsked
	}
	return err
}

// Renew gives a call as much time again as it had at its beginning; ErrStale if it has ended, its session's
// answers were forgotten, or its time was over and another process has taken it over.
func (c Calls) Renew(ctx context.Context, lease session.ModelLease) error {
	call := lease.Call
	return c.InTenant(ctx, call.Tenant, func(tx pgx.Tx) error {
		return postgres.ExecOne(ctx, tx, session.ErrStale, `
			UPDATE model_answers
			   SET leased_until = now() + $4::interval
			 WHERE tenant_id = $1 AND key = $2 AND lease = $3`, call.Tenant, call.Key[:], lease.ID, call.Time)
	})
}

// today is the day whose budget calls use.
const today = `(now() AT TIME ZONE 'UTC')::date`

// addSpending adds to what a model has used. $4 to $7 may be below 0.
const addSpending = `
	INSERT INTO model_spending AS s (tenant_id, day, model, calls, input_tokens, output_tokens, cost_micros)
	VALUES ($1, coalesce($2, ` + today + `), $3, $4, $5, $6, $7)
	ON CONFLICT (tenant_id, day, model) DO UPDATE
	   SET calls = s.calls + excluded.calls, input_tokens = s.input_tokens + excluded.input_tokens,
	       output_tokens = s.output_tokens + excluded.output_tokens,
	       cost_micros = s.cost_micros + excluded.cost_micros`

// reserve adds a call's bound to what the tenant has used today, unless that passes the budget. The row of all models
// is locked first, so that no two calls are allowed what only one of them may use.
func reserve(ctx context.Context, tx pgx.Tx, call session.ModelCall, budget session.ModelBudget) error {
	if !budget.Allows(call.Bound) {
		return overBudget(call.Bound, budget)
	}
	args := func(model string) []any {
		b := call.Bound
		return []any{call.Tenant, nil, model, b.Calls, b.Input, b.Output, b.CostMicros}
	}
	tag, err := tx.Exec(ctx, addSpending+`
		 WHERE ($8 = 0 OR s.calls + excluded.calls <= $8)
		   AND ($9 = 0 OR s.input_tokens + s.output_tokens + excluded.input_tokens + excluded.output_tokens <= $9)
		   AND ($10 = 0 OR s.cost_micros + excluded.cost_micros <= $10)`,
		append(args(""), budget.Calls, budget.Tokens, budget.CostMicros)...)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return overBudget(call.Bound, budget)
	}
	return postgres.Exec(ctx, tx, addSpending, args(call.Model)...)
}

func overBudget(bound session.ModelSpending, budget session.ModelBudget) error {
	return fmt.Errorf("%w for today: the next call takes up to %d tokens and %d millionths; "+
		"the day's budget is %d calls, %d tokens and %d millionths (0: no bound)", session.ErrModelBudget,
		bound.Input+bound.Output, bound.CostMicros, budget.Calls, budget.Tokens, budget.CostMicros)
}

// Keep ends a call with its answer, in one transaction: it keeps the answer, and counts what the call has used
// instead of what it had reserved.
//
// Errors: ErrStale if another process has taken the call over, or the session's answers were forgotten or it is gone.
// Then nothing is kept, and what was reserved stays counted.
func (c Calls) Keep(ctx context.Context, lease session.ModelLease, answer session.ModelAnswer) error {
	call, used := lease.Call, answer.Spent
	return c.endCall(ctx, lease, used, `
		UPDATE model_answers
		   SET answer = $4, answered_by = $5, input_tokens = $6, cached_tokens = $7, output_tokens = $8,
		       cost_micros = $9, lease = NULL, leased_until = NULL, created_at = now()
		 WHERE tenant_id = $1 AND key = $2 AND lease = $3
		RETURNING reserved_day`, call.Tenant, call.Key[:], lease.ID, []byte(answer.Text),
		postgres.Text(answer.AnsweredBy), used.Input, answer.Cached, used.Output, used.CostMicros)
}

// End ends a call that has no answer to keep, and counts what it has used instead of what it had reserved. Its
// errors are those of Keep.
func (c Calls) End(ctx context.Context, lease session.ModelLease, used session.ModelSpending) error {
	call := lease.Call
	return c.endCall(ctx, lease, used, `
		DELETE FROM model_answers
		 WHERE tenant_id = $1 AND key = $2 AND lease = $3
		RETURNING reserved_day`, call.Tenant, call.Key[:], lease.ID)
}

// endCall ends the lease by a statement that returns its day, and corrects what that day has used. The row of the
// answer is locked before those of the spending, as Begin does.
func (c Calls) endCall(
	ctx context.Context, lease session.ModelLease, used session.ModelSpending, sql string, args ...any,
) error {
	call := lease.Call
	return c.InTenant(ctx, call.Tenant, func(tx pgx.Tx) error {
		day, err := postgres.RowIn(ctx, tx, pgx.RowTo[time.Time], sql, args...)
		if errors.Is(err, session.ErrNotFound) {
			return session.ErrStale
		}
		if err != nil {
			return err
		}
		for _, model := range []string{"", call.Model} {
			err := postgres.Exec(ctx, tx, addSpending, call.Tenant, day, model, used.Calls-call.Bound.Calls,
				used.Input-call.Bound.Input, used.Output-call.Bound.Output, used.CostMicros-call.Bound.CostMicros)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Forget deletes a kept answer that is older than this: one that could not be used, so that the model may be
// asked again.
func (c Calls) Forget(ctx context.Context, tenant uuid.UUID, key [32]byte, older time.Duration) error {
	return c.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		return postgres.Exec(ctx, tx, `
			DELETE FROM model_answers
			 WHERE tenant_id = $1 AND key = $2 AND answer IS NOT NULL AND created_at < now() - $3::interval`,
			tenant, key[:], older)
	})
}

// Kept returns the answer to a call that was made before, and how old it is; ErrNotFound.
func (c Calls) Kept(ctx context.Context, tenant uuid.UUID, key [32]byte) (
	found session.ModelAnswer, age time.Duration, err error,
) {
	found.Spent.Calls = 1
	var text []byte
	_, err = postgres.QueryRow(ctx, c.Store, tenant, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&text, &found.AnsweredBy, &found.Spent.Input, &found.Cached, &found.Spent.Output,
			&found.Spent.CostMicros, &age)
	}, `
		SELECT answer, answered_by, input_tokens, cached_tokens, output_tokens, cost_micros, now() - created_at
		  FROM model_answers
		 WHERE tenant_id = $1 AND key = $2 AND answer IS NOT NULL`, tenant, key[:])
	found.Text = string(text)
	return found, age, err
}

// Spending returns what a tenant's calls have used on a day in UTC, of all models first and then of each.
func (c Calls) Spending(ctx context.Context, tenant uuid.UUID, day time.Time) ([]session.ModelSpent, error) {
	return postgres.QueryRows(ctx, c.Store, tenant, pgx.RowToStructByPos[session.ModelSpent], `
		SELECT model, calls, input_tokens, output_tokens, cost_micros
		  FROM model_spending
		 WHERE tenant_id = $1 AND day = $2
		 ORDER BY model`, tenant, day.UTC())
}
