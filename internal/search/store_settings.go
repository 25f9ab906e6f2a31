package search

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// rulesSQL are the rules of the tenant $1 in SQL, and resultsSQL whether they have results.
const (
	rulesSQL = `coalesce((SELECT language || CASE WHEN results THEN '` + withResults + `' ELSE '' END
		                    FROM search_settings
		                   WHERE tenant_id = $1), 'simple')`
	resultsSQL = `coalesce((SELECT results FROM search_settings WHERE tenant_id = $1), false)`
)

// stateIn reads how far a tenant's messages are found. A session is behind if it has more that is not indexed than a
// search reads.
func stateIn(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (state State, err error) {
	var by rules
	var since *time.Time // it is known of the first of those behind
	err = tx.QueryRow(ctx, `
		SELECT l.rules, b.sessions, b.since, p.in_part + u.in_part, now()
		  FROM (SELECT `+rulesSQL+` AS rules) l
		 CROSS JOIN LATERAL (
		       SELECT count(*) AS sessions, min(d.due_since) AS since
		         FROM (SELECT i.due_since, i.rules, i.session_key, s.last_seq - i.indexed_seq AS unread,
		                      row_number() OVER (ORDER BY i.due_since DESC, i.session_key) AS place
		                 FROM search_sessions i
		                 JOIN sessions s ON s.tenant_id = i.tenant_id AND s.key = i.session_key
		                WHERE i.tenant_id = $1
		                  AND i.due_since IS NOT NULL
		                  AND (s.last_seq > i.indexed_seq OR i.rules <> l.rules
		                       OR `+uploadsNotIndexed(`i.session_key`)+`)
		                LIMIT $2) d
		        WHERE d.place > $3 OR d.unread > $4 OR d.rules <> l.rules AND d.unread = 0
		           OR `+uploadsNotIndexed(`d.session_key`)+`) b
		 CROSS JOIN (SELECT coalesce(sum(in_part), 0) AS in_part
		               FROM search_sessions
		              WHERE tenant_id = $1 AND in_part > 0) p
		 CROSS JOIN (SELECT count(*) AS in_part
		               FROM uploads
		              WHERE tenant_id = $1 AND searched_in_part) u`, tenant, maxBehind, freshSessions, freshMessages).
		Scan(&by, &state.Behind, &since, &state.InPart, &state.Through)
	state.Settings = Settings{by.language(), by.results()}
	if since != nil {
		state.Through = *since
	}
	state.Through = state.Through.Add(-notedAfter)
	if err == nil {
		state.Cold, err = postgres.CountCold(ctx, tx, tenant, maxBehind)
	}
	return state, err
}

// notedAfter is how long it takes at the most until a process has noted which sessions its requests have changed.
const notedAfter = 10 * time.Second

// state returns how far a tenant's messages are found.
func (s store) state(ctx context.Context, tenant uuid.UUID) (State, error) {
	return postgres.ReadTx(ctx, s.Store, tenant, func(tx pgx.Tx) (State, error) { return stateIn(ctx, tx, tenant) })
}

// set has a tenant's messages indexed by other rules. All of them are indexed anew, which the sweep begins.
//
// Errors: InvalidError for a language that the database does not know.
func (s store) set(ctx context.Context, tenant uuid.UUID, want Settings) (State, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (state State, err error) {
		known, err := postgres.RowsIn(ctx, tx, pgx.RowTo[string], `
			SELECT cfgname::text
			  FROM pg_ts_config
			 WHERE cfgnamespace = 'pg_catalog'::regnamespace
			 ORDER BY cfgname`)
		if err == nil && !slices.Contains(known, want.Language) {
			err = session.Invalid("/language", "invalid_request", "must be one of %s, not %q",
				strings.Join(known, ", "), want.Language)
		}
		if err != nil {
			return state, err
		}
		before, err := postgres.RowIn(ctx, tx, pgx.RowTo[rules], `SELECT `+rulesSQL, tenant)
		if err != nil {
			return state, err
		}
		if before != want.rules() {
			err = change(ctx, tx, tenant, before, want)
		}
		if err != nil {
			return state, err
		}
		return stateIn(ctx, tx, tenant)
	})
}

// change stores the settings. The sweep goes through all sessions of a tenant whose policy has changed: it finds those
// with words by other rules on its way.
func change(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, before rules, want Settings) error {
	err := postgres.Exec(ctx, tx, `
		INSERT INTO search_settings (tenant_id, language, results)
		VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id) DO UPDATE
		   SET language = excluded.language, results = excluded.results`, tenant, want.Language, want.Results)
	if err == nil {
		err = postgres.AddTask(ctx, tx, tenant, postgres.TaskPolicy)
	}
	if err != nil {
		return err
	}
	return postgres.Record(ctx, tx, tenant, audit.SearchChange, audit.Tenant, tenant.String(),
		map[string]any{"language": want.Language, "results": want.Results, "before": before})
}
