package search

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// rankedPassages is how many of the passages that have the words of a search are ranked.
const rankedPassages = 5000

// searchPage is what to search for, behind the last passage of the page before.
type searchPage struct {
	Query string
	Rank  float32 // of the last passage of the page before; 0 for the first page
	ID    int64   // of that passage
	Limit int
}

// found is a page of what a search finds.
type found struct {
	Passages []passage
	Matches  int // that were ranked: there may be more if they are rankedPassages
	State    State
}

//go:embed search.sql
var passagesSQL string

// store has the SQL of the search.
type store struct{ *postgres.Store }

// search finds passages of a tenant's messages and uploaded results, the best first; of equal ones, those that were
// indexed last. A message
// that was removed is not found. One that a fork shares is found in the session that the fork was made of, as long as
// that has it.
//
// Errors: InvalidError for a query without a word that can be looked for.
func (s store) search(ctx context.Context, tenant uuid.UUID, page searchPage) (found, error) {
	return postgres.ReadTx(ctx, s.Store, tenant, func(tx pgx.Tx) (found found, err error) {
		if found.State, err = stateIn(ctx, tx, tenant); err != nil {
			return found, err
		}
		if err := checkQuery(ctx, tx, found.State.Language, page.Query); err != nil {
			return found, err
		}
		if page.Rank == 0 {
			page.Rank = float32(math.Inf(1))
		}
		rows, err := tx.Query(ctx, passagesSQL, tenant, found.State.Language, page.Query, rankedPassages, page.Rank,
			page.ID, page.Limit)
		if err != nil {
			return found, err
		}
		found.Passages, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p passage, err error) {
			err = row.Scan(&found.Matches, &p.ID, &p.Rank, &p.Session, &p.Key, &p.Seq, &p.Block, &p.At, &p.Bytes,
				&p.AppendedAt, &p.Upload)
			return p, err
		})
		if n := len(found.Passages); n > 0 && found.Passages[n-1].ID == 0 { // the row that has nothing but the matches
			found.Passages = found.Passages[:n-1]
		}
		return found, err
	})
}

// checkQuery returns an error for a query that would find everything or nothing.
func checkQuery(ctx context.Context, tx pgx.Tx, language, query string) error {
	needs, err := postgres.RowIn(ctx, tx, pgx.RowTo[string], `
		SELECT querytree(websearch_to_tsquery($1::text::regconfig, $2))`, language, query)
	if err == nil && (needs == "" || needs == "T") {
		err = session.Invalid("q", "invalid_request", "must have a word to look for: %q has none that the language %q "+
			"keeps", query, language)
	}
	return err
}

// stateIn reads how far a tenant's messages are indexed.
func stateIn(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (state State, err error) {
	err = tx.QueryRow(ctx, `
		SELECT `+searchLanguage+`,
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM search_sessions
		                 WHERE tenant_id = $1 AND due_since IS NOT NULL
		                 LIMIT $2) d),
		       (SELECT min(due_since)
		          FROM search_sessions
		         WHERE tenant_id = $1 AND due_since IS NOT NULL),
		       (SELECT coalesce(sum(in_part), 0)
		          FROM search_sessions
		         WHERE tenant_id = $1 AND in_part > 0)
		       + (SELECT count(*)
		            FROM uploads
		           WHERE tenant_id = $1 AND searched_in_part),
		       now()`, tenant, maxBehind).
		Scan(&state.Language, &state.Behind, &state.Since, &state.InPart, &state.Through)
	if state.Since != nil {
		state.Through = *state.Since
	}
	state.Through = state.Through.Add(-notedAfter)
	if err == nil {
		state.Cold, err = postgres.CountCold(ctx, tx, tenant, maxBehind)
	}
	return state, err
}

// notedAfter is how long it takes at the most until a process has noted which sessions its requests have changed.
const notedAfter = 10 * time.Second

// searchLanguage is the language of the tenant $1 in SQL.
const searchLanguage = `coalesce((SELECT language FROM search_settings WHERE tenant_id = $1), 'simple')`

// state returns how far a tenant's messages are indexed.
func (s store) state(ctx context.Context, tenant uuid.UUID) (State, error) {
	return postgres.ReadTx(ctx, s.Store, tenant, func(tx pgx.Tx) (State, error) { return stateIn(ctx, tx, tenant) })
}

// setSearchLanguage has a tenant's messages indexed by the rules of another language. All of them are indexed anew,
// which the sweep begins.
//
// Errors: InvalidError for a language that the database does not know.
func (s store) setSearchLanguage(
	ctx context.Context, tenant uuid.UUID, language string,
) (State, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (state State, err error) {
		known, err := postgres.RowsIn(ctx, tx, pgx.RowTo[string], `
			SELECT cfgname::text
			  FROM pg_ts_config
			 WHERE cfgnamespace = 'pg_catalog'::regnamespace
			 ORDER BY cfgname`)
		if err == nil && !slices.Contains(known, language) {
			err = session.Invalid("/language", "invalid_request", "must be one of %s, not %q",
				strings.Join(known, ", "), language)
		}
		if err != nil {
			return state, err
		}
		before, err := postgres.RowIn(ctx, tx, pgx.RowTo[string], `SELECT `+searchLanguage, tenant)
		if err != nil {
			return state, err
		}
		if before != language {
			err = changeSearchLanguage(ctx, tx, tenant, before, language)
		}
		if err != nil {
			return state, err
		}
		return stateIn(ctx, tx, tenant)
	})
}

// changeSearchLanguage stores the language. The sweep goes through all sessions of a tenant whose policy has changed:
// it finds those with words of another language on its way.
func changeSearchLanguage(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, before, language string) error {
	err := postgres.Exec(ctx, tx, `
		INSERT INTO search_settings (tenant_id, language)
		VALUES ($1, $2)
		ON CONFLICT (tenant_id) DO UPDATE
		   SET language = excluded.language`, tenant, language)
	if err == nil {
		err = postgres.AddChore(ctx, tx, tenant, postgres.ChorePolicy)
	}
	if err != nil {
		return err
	}
	return postgres.Record(ctx, tx, tenant, audit.SearchChange, audit.Tenant, tenant.String(),
		map[string]string{"language": language, "before": before})
}

// headlines returns what of each text to show for a query.
func (s store) headlines(
	ctx context.Context, tenant uuid.UUID, language, query string, texts []string,
) (shown []string, err error) {
	shown, err = postgres.QueryRows(ctx, s.Store, tenant, pgx.RowTo[string], `
		SELECT ts_headline($1::text::regconfig, t.text, websearch_to_tsquery($1::text::regconfig, $2),
		                   'StartSel="", StopSel="", MinWords=15, MaxWords=40, MaxFragments=2, FragmentDelimiter=" … "')
		  FROM unnest($3::text[]) WITH ORDINALITY AS t (text, n)
		 ORDER BY t.n`, language, query, texts)
	if err == nil && len(shown) != len(texts) {
		err = fmt.Errorf("%d headlines of %d texts", len(shown), len(texts))
	}
	return shown, err
}
