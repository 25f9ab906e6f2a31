package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// grown is what a piece of a log adds to it. Answers has a character for each message: 1 for one of the assistant.
type grown struct {
	Seq        int64
	At         time.Time
	Tokens     int64
	ViewTokens int64
	Answers    string
}

// Timeline returns how a session's log has grown: at most this number of points, each the sum of the messages before.
// ErrNotFound if there is no such session. Each piece is a range of the primary key, so that PostgreSQL neither sorts
// the messages nor looks for their group.
func (s *Store) Timeline(ctx context.Context, at session.Address, points int64) ([]session.Growth, error) {
	pieces, err := InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]grown, error) {
		return RowsIn(ctx, tx, pgx.RowToStructByPos[grown], `
			SELECT m.seq, m.at, m.tokens, m.view_tokens, m.answers
			  FROM sessions s
			 CROSS JOIN generate_series(0, $3::bigint - 1) piece
			 CROSS JOIN LATERAL (
			       SELECT max(seq) AS seq, max(created_at) AS at, sum(tokens) AS tokens,
			              sum(coalesce(view_tokens, tokens)) AS view_tokens,
			              string_agg(CASE role WHEN 'assistant' THEN '1' ELSE '0' END, '') AS answers
			         FROM (SELECT seq, created_at, tokens, view_tokens, role
			                 FROM messages
			                WHERE tenant_id = $1
			                  AND session_key = $2
			                  AND seq > (piece * s.last_seq + $3 - 1) / $3
			                  AND seq <= ((piece + 1) * s.last_seq + $3 - 1) / $3
			                ORDER BY seq) m) m
			 WHERE s.tenant_id = $1 AND s.key = $2 AND m.seq IS NOT NULL
			 ORDER BY m.seq`, at.Tenant, key.Key, points)
	})
	return sumsOf(pieces), err
}

// sumsOf adds pieces of a log up. Answers that follow one another are of one request.
func sumsOf(pieces []grown) []session.Growth {
	list := make([]session.Growth, len(pieces))
	var sum session.Growth
	before := '0'
	for i := range pieces {
		p := &pieces[i]
		sum.Seq, sum.At = p.Seq, p.At
		sum.Tokens, sum.ViewTokens = sum.Tokens+p.Tokens, sum.ViewTokens+p.ViewTokens
		for _, is := range p.Answers {
			if is == '1' && before != '1' {
				sum.Requests++
			}
			before = is
		}
		list[i] = sum
	}
	return list
}
