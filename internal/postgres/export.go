package postgres

import (
	"cmp"
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

const exportColumns = `
	s.key, s.id, s.format, s.model, s.window_tokens, s.window_source, s.overhead_tokens, s.metadata,
	s.created_at, s.last_seq,
	CASE WHEN p.session_version > 0 THEN p.patch END, s.calibration, s.unseen_tokens, s.last_usage,
	s.counted_tokens, s.exact_tokens, `

func scanExported(tenant uuid.UUID) func(row pgx.CollectableRow) (session.Exported, error) {
	return func(row pgx.CollectableRow) (session.Exported, error) {
		e := session.Exported{Key: session.Key{Tenant: tenant}}
		var usage session.TokenHistory
		err := row.Scan(&e.Key.Key, &e.ID, &e.Format, &e.Model, &e.WindowTokens, &e.WindowSource,
			&e.OverheadTokens, &e.Metadata, &e.CreatedAt, &e.LastSeq, &e.Policy,
			&usage.Calibration, &usage.Unseen, &usage.Last, &usage.Counted, &usage.Exact, &e.LeftOut)
		if usage != (session.TokenHistory{Calibration: 1}) {
			e.Tokens = &usage
		}
		return e, err
	}
}

// ExportSession reads a session as an export has it; ErrNotFound.
func (s *Store) ExportSession(ctx context.Context, at session.Address) (session.Exported, error) {
	sql := `
		SELECT ` + exportColumns + `false
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = s.tenant_id AND p.id = s.policy_id
		 WHERE s.tenant_id = $1 AND s.id = $2`
	return QueryRow(ctx, s.Seeing(WithCold), at.Tenant, scanExported(at.Tenant), sql, at.Tenant, at.ID)
}

// exportSQL returns the statement of ExportSessions with the conditions of a search.
func exportSQL(conditions string) string {
	return statement("export_sessions", "{columns}", exportColumns, "{conditions}", conditions, "{policy}", joinPolicy)
}

// ExportSessions reads the sessions of a tenant after a place, oldest first, which is the order that an import
// recreates. A Page without an ID is the beginning; its Time is not used, because an imported session may have any time
// of creation. Those that a search does not find are left out, but have their place: each call looks at a page only.
func (s *Store) ExportSessions(
	ctx context.Context, tenant uuid.UUID, search session.Search, page session.Page,
) ([]session.Exported, error) {
	search.ByAppend = true // the order is another, and all conditions are among those of searchSQL
	conditions, args := searchSQL(search, []any{tenant, page.Time, page.ID, page.Limit})
	return QueryRows(ctx, s.Seeing(WithCold), tenant, scanExported(tenant), exportSQL(conditions), args...)
}

// The bounds of one read of ExportMessages.
const (
	exportMessages = 1000
	exportBytes    = 4 << 20
)

// ExportMessages reads the next messages of a log, beginning with seq from; none at the end of the log. It omits
// removals that are younger than the export. ErrNotFound if the session has been erased.
func (s *Store) ExportMessages(
	ctx context.Context, e session.Exported, from int64,
) (found []session.Message, err error) {
	found, err = s.readComplete(ctx, e.Key.Tenant, func(tx pgx.Tx) (log logOf[session.Message], err error) {
		err = ExecOne(ctx, tx, session.ErrNotFound, `
			SELECT
			  FROM sessions
			 WHERE tenant_id = $1 AND key = $2`, e.Key.Tenant, e.Key.Key)
		if err != nil {
			return log, err
		}
		r := Range{After: from - 1, To: cmp.Or(e.LastSeq, -1), Removed: true, Limit: exportMessages, Bytes: exportBytes}
		return r.read(ctx, tx, e.Key)
	})
	for i := range found {
		m := &found[i]
		switch {
		case m.RemovedSeq > e.LastSeq:
			m.RemovedAt = nil
			m.RemovedSeq, m.SupersededBy = 0, 0
		case m.SupersededBy > e.LastSeq: // the id went to another since
			m.SupersededBy = m.RemovedSeq
		}
	}
	return found, err
}
