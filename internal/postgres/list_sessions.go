package postgres

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// scannedSessions is how many sessions a page of a search looks at. What most searches go by changes with every append
// and has no index, which would cost each append more than a search costs. Metadata and the origin of forks have one.
const scannedSessions = 10_000

// scannedLimit is scannedSessions as the limit of a statement.
var scannedLimit = strconv.Itoa(scannedSessions)

// hiddenLimit is scannedLimit for a statement of many rows. The planner does not see its value, and expects that a
// tenth of them is read. Where it sees a limit beyond the rows that it expects, it prefers a scan of the table and a
// sort to an index if VACUUM has not marked the table's pages as visible to all.
var hiddenLimit = `(SELECT ` + scannedLimit + `)`

// FindSessions lists those of a tenant's sessions that a search asks for, newest first or by their last append, as the
// ledger has seen it. It looks at a bounded number of sessions: if it has not seen all then, beyond is the session
// behind which the search continues, else nil.
func (s *Store) FindSessions(ctx context.Context, tenant uuid.UUID, search session.Search, page session.Page) (
	found []session.Listed, beyond *session.Page, err error,
) {
	err = s.Seeing(WithCold).inSnapshot(ctx, tenant, func(tx pgx.Tx) error {
		pair, err := RarestPair(ctx, tx, tenant, search.Metadata)
		if err != nil {
			return err
		}
		scanned, own := scannedSQL(search, pair, PageArgs(tenant, page))
		conditions, args := searchSQL(search, own)
		found, err = RowsIn(ctx, tx, scanListed, `
			SELECT `+sessionColumns+`, NULL::jsonb, NULL::jsonb, s.listed_at
			  FROM (SELECT *
			          FROM (`+scanned+`) s
			         WHERE true`+conditions+`
			         ORDER BY s.listed_at DESC, s.listed_key DESC -- as they come: only what the page needs is read
			         LIMIT $4) s`+joinPolicy+`
			 ORDER BY s.listed_at DESC, s.listed_key DESC`, args...)
		if err != nil || len(found) == page.Limit {
			return err
		}
		beyond, err = lastScanned(ctx, tx, scanned, own)
		return err
	})
	return found, beyond, err
}

// lastScanned returns the last of the sessions that were looked at if there were as many as may be.
func lastScanned(ctx context.Context, tx pgx.Tx, scanned string, args []any) (*session.Page, error) {
	last, err := RowsIn(ctx, tx, pgx.RowToStructByPos[session.Page], `
		SELECT s.listed_at, s.key, 0
		  FROM (`+scanned+`) s
		 WHERE $4 > 0 -- the arguments are those of a page
		 OFFSET `+strconv.Itoa(scannedSessions-1), args...)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	return &last[0], nil
}

// scannedSQL returns the statement of the sessions that a page of a search looks at, and args with its own behind them.
// All sessions that the search finds have the pair, if there is one.
func scannedSQL(search session.Search, pair *MetadataPair, args []any) (string, []any) {
	args = slices.Clip(args)
	own := len(args) + 1
	switch {
	case search.ForkedFrom != "" && !search.ByAppend: // it has an index
		return newestWhereSQL(` AND s.forked_from = $` + strconv.Itoa(own)), append(args, search.ForkedFrom)
	case pair != nil && pair.Few && search.ByAppend:
		return listedSQL(appendedPairedSQL(own), scannedLimit), append(args, pair.Hash)
	case pair != nil && !search.ByAppend:
		return listedSQL(createdPairedSQL(own), scannedLimit), append(args, pair.Hash)
	case search.ByAppend:
		return listedSQL(`SELECT session_key, appended_at AS listed_at
			           FROM usage_sessions
			          WHERE tenant_id = $1
			            AND appended_at IS NOT NULL
			            AND (appended_at, session_key) < ($2, $3)
			          ORDER BY appended_at DESC, session_key DESC`, hiddenLimit), args
	}
	return newestWhereSQL(``), args
}

// newestWhereSQL returns the statement of the newest sessions with a condition.
func newestWhereSQL(condition string) string {
	return `SELECT s.*, s.created_at AS listed_at, s.key AS listed_key
			   FROM sessions s
			  WHERE s.tenant_id = $1` + condition + `
			    AND (s.created_at, s.key) < ($2, $3)
			  ORDER BY s.created_at DESC, s.key DESC
			  LIMIT ` + hiddenLimit
}

// listedSQL returns the statement of the sessions that another lists by session_key and listed_at, in its order, up to
// a limit.
func listedSQL(listed, limit string) string {
	return `SELECT s.*, l.listed_at, l.session_key AS listed_key
			   FROM (` + listed + `
			          LIMIT ` + limit + `) l
			  CROSS JOIN LATERAL (
			        SELECT *
			          FROM sessions s
			         WHERE s.tenant_id = $1 AND s.key = l.session_key
			         LIMIT 1) s
			  ORDER BY l.listed_at DESC, l.session_key DESC`
}

// searchSQL returns the conditions of a search, and args with its own behind them. What is not asked for is not in it.
func searchSQL(search session.Search, args []any) (conditions string, _ []any) {
	add := func(asked bool, condition string, value any) {
		if asked {
			args = append(args, value)
			conditions += ` AND ` + condition + ` $` + strconv.Itoa(len(args))
		}
	}
	add(search.Metadata != nil, `s.metadata @>`, search.Metadata)
	add(search.ForkedFrom != "" && search.ByAppend, `s.forked_from =`, search.ForkedFrom)
	add(search.Model != "", `s.model =`, search.Model)
	add(search.Format != "", `s.format =`, search.Format.Number())
	add(!search.UpdatedAfter.IsZero(), `s.last_append_at >`, search.UpdatedAfter)
	add(search.MinTokens > 0, `s.context_tokens >=`, search.MinTokens)
	add(search.PolicyVersionBelow > 0, `s.policy_version <`, search.PolicyVersionBelow)
	if search.OverWindow {
		conditions += ` AND ` + overWindow
	}
	if search.Failing || search.Quarantined {
		conditions += ` AND EXISTS (
			         SELECT
			           FROM session_failures f
			          WHERE f.tenant_id = $1 AND f.session_key = s.key`
		if search.Quarantined {
			conditions += ` AND f.quarantined_at IS NOT NULL`
		}
		conditions += `)`
	}
	if search.Due {
		conditions += ` AND EXISTS (
			         SELECT
			           FROM due_sessions d
			          WHERE d.tenant_id = $1 AND d.session_key = s.key)`
	}
	return conditions, args
}
