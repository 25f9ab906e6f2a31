package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// today is the day for which is counted.
const today = `(now() AT TIME ZONE 'UTC')::date`

var (
	ledgerLockSQL  = statement("ledger_lock")
	ledgerCountSQL = statement("ledger_count", "{today}", today, "{over}", overWindow)
)

// CountUsage adds to the ledger what a process has counted of reads of a tenant's sessions, each once in the list, and
// what these sessions have stored since they were counted last. Reads of sessions that are gone count for their day.
// Those that have changed are told to whoever follows them.
func (s *Store) CountUsage(ctx context.Context, tenant uuid.UUID, read []session.Reading) error {
	return s.Seeing(WithCold).InTenant(ctx, tenant, func(tx pgx.Tx) error {
		changed := changedOf(read)
		batch := &pgx.Batch{}
		QueueUsage(batch, tenant, read).Query(func(rows pgx.Rows) error {
			behind, err := pgx.CollectRows(rows, pgx.RowTo[string])
			changed = append(changed, behind...)
			return err
		})
		if err := tx.SendBatch(ctx, batch).Close(); err != nil || len(changed) == 0 {
			return err
		}
		return s.changed(ctx, tx, tenant, changed)
	})
}

// changedOf returns the ids of the sessions that a process knows to have changed.
func changedOf(read []session.Reading) (ids []string) {
	for i := range read {
		if read[i].Changed {
			ids = append(ids, read[i].Session)
		}
	}
	return ids
}

func idsOf(read []session.Reading) []string {
	ids := make([]string, len(read))
	for i := range read {
		ids[i] = read[i].Session
	}
	return ids
}

// countStored counts what sessions have stored since they were counted last.
func (s *Store) countStored(ctx context.Context, tenant uuid.UUID, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	read := make([]session.Reading, len(ids))
	for i, id := range ids {
		read[i] = session.Reading{Session: id, Changed: true}
	}
	return s.CountUsage(ctx, tenant, read)
}

// QueueUsage queues the statements of CountUsage. The first locks what the second, which sees all that was committed
// before it had the locks, counts from. The second, which is returned, has the ids of the sessions that were behind.
func QueueUsage(batch *pgx.Batch, tenant uuid.UUID, read []session.Reading) *pgx.QueuedQuery {
	n := len(read)
	views, served := make([]int64, n), make([]int64, n)
	readBacks := make([]int64, n)
	for i := range read {
		views[i] = read[i].Views
		served[i] = read[i].TokensServed
		readBacks[i] = read[i].ReadBacks
	}
	ids := idsOf(read)
	batch.Queue(ledgerLockSQL, tenant, ids)
	return batch.Queue(ledgerCountSQL, tenant, ids, views, served, readBacks)
}

// UsageByDay returns what a tenant has used from one day in UTC to another, both included: the days with any use, in
// order.
func (s *Store) UsageByDay(ctx context.Context, tenant uuid.UUID, from, to time.Time) ([]session.DayOfUse, error) {
	return QueryRows(ctx, s, tenant, pgx.RowToStructByName[session.DayOfUse], `
		SELECT coalesce(d.day, m.day) AS day,
		       coalesce(d.messages, 0) AS messages, coalesce(d.bytes, 0) AS bytes, coalesce(d.tokens, 0) AS tokens,
		       coalesce(d.views, 0) AS views, coalesce(d.tokens_served, 0) AS tokens_served,
		       coalesce(d.tokens_saved, 0) AS tokens_saved, coalesce(d.read_backs, 0) AS read_backs,
		       coalesce(d.compactions, 0) AS compactions,
		       coalesce(m.calls, 0) AS model_calls, coalesce(m.input_tokens, 0) AS model_input_tokens,
		       coalesce(m.output_tokens, 0) AS model_output_tokens, coalesce(m.cost_micros, 0) AS model_cost_micros
		  FROM (SELECT * FROM usage_days WHERE tenant_id = $1 AND day BETWEEN $2 AND $3) d
		  FULL JOIN (SELECT * FROM model_spending WHERE tenant_id = $1 AND model = '' AND day BETWEEN $2 AND $3) m
		    ON m.day = d.day
		 ORDER BY 1`, tenant, from.UTC(), to.UTC())
}

// UsageBySession returns what a page of a tenant's sessions, archived ones included, newest first, have used.
func (s *Store) UsageBySession(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.SessionUse, error) {
	return QueryRows(ctx, s.Seeing(AllSessions), tenant, pgx.RowToStructByName[session.SessionUse], `
		SELECT s.id AS session, s.key, s.created_at,
		       u.messages, u.bytes, u.tokens, u.views, u.tokens_served, u.tokens_saved, u.read_backs, u.compactions,
		       m.model_calls + coalesce((a.model_use ->> 'calls')::bigint, 0) AS model_calls,
		       m.model_input_tokens + coalesce((a.model_use ->> 'input')::bigint, 0) AS model_input_tokens,
		       m.model_output_tokens + coalesce((a.model_use ->> 'output')::bigint, 0) AS model_output_tokens,
		       m.model_cost_micros + coalesce((a.model_use ->> 'cost')::bigint, 0) AS model_cost_micros
		  FROM sessions s
		  JOIN usage_sessions u ON u.tenant_id = s.tenant_id AND u.session_key = s.key
		 CROSS JOIN LATERAL (
		       SELECT count(*) AS model_calls, coalesce(sum(a.input_tokens), 0)::bigint AS model_input_tokens,
		              coalesce(sum(a.output_tokens), 0)::bigint AS model_output_tokens,
		              coalesce(sum(a.cost_micros), 0)::bigint AS model_cost_micros
		         FROM model_answers a
		        WHERE a.tenant_id = s.tenant_id AND a.session_key = s.key AND a.answer IS NOT NULL) m
		  LEFT JOIN session_archives a ON a.tenant_id = s.tenant_id AND a.session_key = s.key AND a.state = 'archived'
		 WHERE s.tenant_id = $1`+NewestFirst("s.created_at", "s.key"), PageArgs(tenant, page)...)
}
