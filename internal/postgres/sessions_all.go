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

// sessionOrders says how the sessions of all tenants are read in an order: an index of the table has the column, then
// the session's key.
var sessionOrders = map[session.SessionOrder]struct {
	table, column string
	of            string // the condition of the index
	isTime        bool   // the oldest is first, else the largest
	isDay         bool   // the time is a day
}{
	session.ByTokens:      {table: `usage_sessions`, column: `tokens`, of: `true`},
	session.ByBytes:       {table: `usage_sessions`, column: `bytes`, of: `true`},
	session.ByIdle:        {`usage_sessions`, `appended_at`, `appended_at IS NOT NULL`, true, false},
	session.ByUnread:      {`usage_sessions`, `read_on`, `true`, true, true},
	session.ByOverWindow:  {table: `usage_sessions`, column: `tokens`, of: `over_window`},
	session.ByFailing:     {`session_failures`, `since`, `true`, true, false},
	session.ByQuarantined: {`session_failures`, `quarantined_at`, `quarantined_at IS NOT NULL`, true, false},
}

// AllSessions lists sessions of all tenants, or of one, behind a place of an order, as a login of operators sees them,
// but archived ones. It looks at a bounded number: if it has not seen all then, the list continues behind the place
// beyond, else that is nil.
func (s *Store) AllSessions(
	ctx context.Context, order session.SessionOrder, tenant *uuid.UUID, after *session.SessionPlace, limit int,
) (found []session.SessionOfTenant, beyond *session.SessionPlace, err error) {
	looked, args := orderedSQL(order, after)
	err = s.Seeing(WithCold).inSnapshot(ctx, uuid.Nil, func(tx pgx.Tx) error {
		places, err := RowsIn(ctx, tx, pgx.RowToStructByPos[placedSession], `
			SELECT *
			  FROM (`+looked+`) l
			 WHERE ($3::uuid IS NULL OR tenant_id = $3)
			 LIMIT $4`, append(args, tenant, limit)...)
		if err != nil {
			return err
		}
		if len(places) < limit {
			beyond, err = lastOrdered(ctx, tx, looked, args)
		}
		if err == nil {
			found, err = sessionsAt(ctx, tx, places)
		}
		if n := len(places); len(found) < n && beyond == nil {
			beyond = &session.SessionPlace{Order: places[n-1].Order, Key: places[n-1].Session}
		}
		return err
	})
	return found, beyond, err
}

// lastOrdered returns the last of the sessions that were looked at if there were as many as may be.
func lastOrdered(ctx context.Context, tx pgx.Tx, looked string, args []any) (*session.SessionPlace, error) {
	last, err := RowsIn(ctx, tx, pgx.RowToStructByPos[session.SessionPlace], `
		SELECT place, session_key
		  FROM (`+looked+`) l
		OFFSET `+strconv.Itoa(scannedSessions-1), args...)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	return &last[0], nil
}

// placedSession is a session and its place in an order.
type placedSession struct {
	Tenant, Session uuid.UUID
	Order           int64
}

// orderedSQL returns the statement of the sessions behind a place of an order that a page looks at, and its arguments.
func orderedSQL(order session.SessionOrder, after *session.SessionPlace) (string, []any) {
	l := sessionOrders[order]
	place, direction := l.column, ` DESC`
	behind := ` < ($1, $2)`
	begin := session.SessionPlace{Order: math.MaxInt64, Key: uuid.Max}
	if l.isTime {
		place, direction = `(extract(epoch FROM `+l.column+`) * 1000000)::bigint`, ``
		behind = ` > ('epoch'::timestamptz + $1::bigint * interval '1 microsecond', $2)`
		begin = session.SessionPlace{}
	}
	if l.isDay {
		behind = ` > ('epoch'::date + ($1::bigint / 86400000000)::integer, $2)`
	}
	if after == nil {
		after = &begin
	}
	return `SELECT tenant_id, session_key, ` + place + ` AS place
			          FROM ` + l.table + `
			         WHERE ` + l.of + ` AND (` + l.column + `, session_key)` + behind + `
			         ORDER BY ` + l.column + direction + `, session_key` + direction + `
			         LIMIT ` + hiddenLimit, []any{after.Order, after.Key}
}

// sessionOfTenantSQL reads a session with the key $2 of the tenant $1, in a transaction that sees it.
var sessionOfTenantSQL = `
	SELECT t.id, t.name, s.id, s.format, s.model, coalesce(u.messages, 0), coalesce(u.tokens, 0), coalesce(u.bytes, 0),
	       s.context_tokens, s.window_tokens, ` + overWindow + `, coalesce(f.failures, 0),
	       f.since, f.quarantined_at, s.created_at, s.last_append_at, nullif(u.read_at, 'epoch')
	  FROM sessions s
	  JOIN tenants t ON t.id = s.tenant_id
	  LEFT JOIN usage_sessions u ON u.tenant_id = $1 AND u.session_key = $2
	  LEFT JOIN session_failures f ON f.tenant_id = $1 AND f.session_key = $2
	 WHERE s.tenant_id = $1 AND s.key = $2`

// sessionsAt reads the sessions at some places in one round trip, each as its tenant sees it.
func sessionsAt(ctx context.Context, tx pgx.Tx, places []placedSession) ([]session.SessionOfTenant, error) {
	found := make([]session.SessionOfTenant, 0, len(places))
	batch := &pgx.Batch{}
	for _, p := range places {
		batch.Queue(setTenant, p.Tenant.String())
		batch.Queue(sessionOfTenantSQL, p.Tenant, p.Session).QueryRow(func(row pgx.Row) error {
			f := session.SessionOfTenant{Place: session.SessionPlace{Order: p.Order, Key: p.Session}}
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
