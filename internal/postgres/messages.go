package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Range is a piece of a log: seqs From..To, Limit messages at most. To 0 is the end. If Bytes is not 0, the message that
// takes the bodies' size over Bytes is the last, but two messages come in any case: who wants to know whether there are
// more asks for one more than needed.
type Range struct {
	From, To int64
	Limit    int
	Bytes    int64
}

// Messages reads a piece of a session's log as it was appended, removed messages included; ErrNotFound if there is no
// such session.
func (s *Store) Messages(ctx context.Context, at session.Address, r Range) (found []session.Message, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = InTenant(ctx, s.pool, at.Tenant, snapshot, func(tx pgx.Tx) error {
		key, err := SessionKey(ctx, tx, at)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT `+messageColumns+`
			  FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS bytes_before
			          FROM messages
			         WHERE tenant_id = $1
			           AND session_key = $2
			           AND seq >= $3
			           AND ($4::bigint = 0 OR seq <= $4)
			         ORDER BY seq
			         LIMIT $5) m
			 WHERE $6::bigint = 0 OR bytes_before <= $6 OR seq <= $3 + 1
			 ORDER BY seq`, [16]byte(at.Tenant), key, r.From, r.To, r.Limit, r.Bytes)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanMessage)
		return err
	})
	return found, err
}

const messageColumns = `seq, role, format, tokens, coalesce(client_id, ''), created_at, removed_at, body`

func scanMessage(row pgx.CollectableRow) (m session.Message, err error) {
	var format int16
	err = row.Scan(&m.Seq, &m.Role, &format, &m.Tokens, &m.ClientID, &m.CreatedAt, &m.RemovedAt, &m.Body)
	m.Format = formatName(format)
	return m, err
}

// SessionKey finds a session's key; ErrNotFound.
func SessionKey(ctx context.Context, tx pgx.Tx, at session.Address) (key [16]byte, err error) {
	err = tx.QueryRow(ctx, `
		SELECT key
		  FROM sessions
		 WHERE tenant_id = $1 AND id = $2`, [16]byte(at.Tenant), at.ID).Scan(&key)
	return key, notFound(err)
}
