package postgres

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// fleetLists says how the lists of sessions of all tenants are read: an index of the table has the column, then the
// session's key.
var fleetLists = map[session.FleetList]struct {
	table, column string
	of            string // the condition of the index
	isTime        bool   // the oldest is first, else the largest
	isDay         bool   // the time is a day
}{
	session.FleetTokens:      {table: `usage_sessions`, column: `tokens`, of: `true`},
	session.FleetBytes:       {table: `usage_sessions`, column: `bytes`, of: `true`},
	session.FleetIdle:        {`usage_sessions`, `appended_at`, `appended_at IS NOT NULL`, true, false},
	session.FleetUnread:      {`usage_sessions`, `read_on`, `true`, true, true},
	session.FleetOverWindow:  {table: `usage_sessions`, column: `tokens`, of: `over_window`},
	session.FleetFailing:     {`session_failures`, `since`, `true`, true, false},
	session.FleetQuarantined: {`session_failures`, `quarantined_at`, `quarantined_at IS NOT NULL`, true, false},
}

// Fleet returns sessions of a list of all tenants, or of one, behind a place, as a login of operators sees them, but
// archived ones. It looks at a bounded number: if it has not seen all then, the list continues behind the place beyond,
// else that is nil.
func (s *Store) Fleet(
	ctx context.Context, list session.FleetList, tenant *uuid.UUID, after *session.FleetPlace, limit int,
) (found []session.FleetSession, beyond *session.FleetPlace, err error) {
	looked, args := fleetListSQL(list, after)
	err = s.seeing(withCold).inSnapshot(ctx, uuid.Nil, func(tx pgx.Tx) error {
		places, err := rowsIn(ctx, tx, pgx.RowToStructByPos[fleetPlace], `
			SELECT *
			  FROM (`+looked+`) l
			 WHERE ($3::uuid IS NULL OR tenant_id = $3)
			 LIMIT $4`, append(args, tenant, limit)...)
		if err != nil {
			return err
		}
		if len(places) < limit {
			beyond, err = lastOfFleet(ctx, tx, looked, args)
		}
		if err == nil {
			found, err = fleetSessions(ctx, tx, places)
		}
		if n := len(places); len(found) < n && beyond == nil {
			beyond = &session.FleetPlace{Order: places[n-1].Order, Key: places[n-1].Session}
		}
		return err
	})
	return found, beyond, err
}

// lastOfFleet returns the last of the sessions that were looked at if there were as many as may be.
func lastOfFleet(ctx context.Context, tx pgx.Tx, looked string, args []any) (*session.FleetPlace, error) {
	last, err := rowsIn(ctx, tx, pgx.RowToStructByPos[session.FleetPlace], `
		SELECT place, session_key
		  FROM (`+looked+`) l
		OFFSET `+strconv.Itoa(scannedSessions-1), args...)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	return &last[0], nil
}

// fleetPlace is a session that a list has.
type fleetPlace struct {
	Tenant, Session uuid.UUID
	Order           int64
}

// fleetListSQL returns the statement of the sessions behind a place of a list that a page looks at, and its arguments.
func fleetListSQL(list session.FleetList, after *session.FleetPlace) (string, []any) {
	l := fleetLists[list]
	order, direction := l.column, ` DESC`
	behind := ` < ($1, $2)`
	begin := session.FleetPlace{Order: math.MaxInt64, Key: uuid.Max}
	if l.isTime {
		order, direction = `(extract(epoch FROM `+l.column+`) * 1000000)::bigint`, ``
		behind = ` > ('epoch'::timestamptz + $1::bigint * interval '1 microsecond', $2)`
		begin = session.FleetPlace{}
	}
	if l.isDay {
		behind = ` > ('epoch'::date + ($1::bigint / 86400000000)::integer, $2)`
	}
	if after == nil {
		after = &begin
	}
	return `SELECT tenant_id, session_key, ` + order + ` AS place
			          FROM ` + l.table + `
			         WHERE ` + l.of + ` AND (` + l.column + `, session_key)` + behind + `
			         ORDER BY ` + l.column + direction + `, session_key` + direction + `
			         LIMIT ` + hiddenLimit, []any{after.Order, after.Key}
}

// fleetSQL reads a session with the key $2 of the tenant $1, in a transaction that sees it.
var fleetSQL = `
	SELECT t.id, t.name, s.id, s.format, s.model, coalesce(u.messages, 0), coalesce(u.tokens, 0), coalesce(u.bytes, 0),
	       s.context_tokens, s.window_tokens, ` + overWindow + `, coalesce(f.failures, 0),
	       f.since, f.quarantined_at, s.created_at, s.last_append_at, nullif(u.read_at, 'epoch')
	  FROM sessions s
	  JOIN tenants t ON t.id = s.tenant_id
	  LEFT JOIN usage_sessions u ON u.tenant_id = $1 AND u.session_key = $2
	  LEFT JOIN session_failures f ON f.tenant_id = $1 AND f.session_key = $2
	 WHERE s.tenant_id = $1 AND s.key = $2`

// fleetSessions reads the sessions at some places in one round trip, each as its tenant sees it.
func fleetSessions(ctx context.Context, tx pgx.Tx, places []fleetPlace) ([]session.FleetSession, error) {
	found := make([]session.FleetSession, 0, len(places))
	batch := &pgx.Batch{}
	for _, p := range places {
		batch.Queue(setTenant, p.Tenant.String())
		batch.Queue(fleetSQL, p.Tenant, p.Session).QueryRow(func(row pgx.Row) error {
			f := session.FleetSession{Place: session.FleetPlace{Order: p.Order, Key: p.Session}}
			err := row.Scan(&f.Tenant, &f.TenantName, &f.Session, &f.Format, &f.Model, &f.Messages, &f.Tokens, &f.Bytes,
				&f.ContextTokens, &f.WindowTokens, &f.OverWindow, &f.Failures, &f.FailingSince, &f.QuarantinedAt,
				&f.CreatedAt, &f.LastAppendAt, &f.LastReadAt)
			if errors.Is(err, pgx.ErrNoRows) { // it is archived
				return nil
			}
			if err == nil {
				found = append(found, f)
			}
			return err
		})
	}
	return found, tx.SendBatch(ctx, batch).Close()
}
