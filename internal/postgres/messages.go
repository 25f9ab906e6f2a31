package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Range is a piece of a log: at most Limit messages behind After or, if it descends, before it. It ends early with
// the message that takes the bodies' size over Bytes, but has two messages in any case: a caller that asks for one
// more than it needs knows whether there are more.
type Range struct {
	After      int64 // a seq; 0 for the beginning, or the end if it descends
	To         int64 // the last seq, which is the lowest if it descends; 0 for no bound
	Descending bool
	Removed    bool // with removed messages
	Limit      int
	Bytes      int64 // 0 for no bound
}

// SQL returns the statement that reads the range.
//
//	$1 tenant  $2 session key  $3 after  $4 to  $5 limit  $6 bytes
func (r Range) SQL() string {
	beyond, last := `>`, `<=`
	direction := `ASC`
	present := `AND removed_at IS NULL`
	if r.Descending {
		beyond, last = `<`, `>=`
		direction = `DESC`
	}
	bound := `seq ` + last + ` $4` // no OR stands here: behind one, the index is read to its end
	if r.To == 0 {
		bound = `$4::bigint = 0`
	}
	if r.Removed {
		present = ``
	}
	return `
	SELECT ` + messageColumns + `
	  FROM (SELECT *, row_number() OVER before AS place,
	               sum(` + messageBytes + `) OVER before - ` + messageBytes + ` AS bytes_before
	          FROM messages
	         WHERE tenant_id = $1
	           AND session_key = $2
	           AND seq ` + beyond + ` $3
	           AND ` + bound + `
	           ` + present + `
	        WINDOW before AS (ORDER BY seq ` + direction + `)
	         ORDER BY seq ` + direction + `
	         LIMIT $5) m
	 WHERE $6::bigint = 0 OR bytes_before <= $6 OR place <= 2
	 ORDER BY seq ` + direction
}

// Messages reads a session and a piece of its log as it was appended; ErrNotFound.
func (s *Store) Messages(ctx context.Context, at session.Address, r Range) (session.Session, []session.Message, error) {
	if r.Descending && r.After == 0 {
		r.After = session.MaxSessionMessages + 1
	}
	var found session.Session
	messages, err := s.readComplete(ctx, at.Tenant, func(tx pgx.Tx) (log logOf[session.Message], err error) {
		if found, err = readSession(ctx, tx, at); err != nil {
			return log, err
		}
		return r.read(ctx, tx, session.Key{Tenant: at.Tenant, Key: found.Key})
	})
	return found, messages, err
}

// readComplete reads messages in a transaction, and behind it the bodies of those that are in packs.
func (s *Store) readComplete(
	ctx context.Context, tenant uuid.UUID, read func(tx pgx.Tx) (logOf[session.Message], error),
) ([]session.Message, error) {
	log, err := ReadTx(ctx, s, tenant, read)
	if err != nil {
		return nil, err
	}
	return log.complete(ctx, s)
}

func (r Range) read(ctx context.Context, tx pgx.Tx, key session.Key) (logOf[session.Message], error) {
	return readLog(ctx, tx, key, ofMessage, scanMessage,
		r.SQL(), key.Tenant, key.Key, r.After, r.To, r.Limit, r.Bytes)
}

// MessagesAt reads messages of a log by their seqs, removed ones, too.
func (s *Store) MessagesAt(ctx context.Context, key session.Key, seqs []int64) ([]session.Message, error) {
	return s.readComplete(ctx, key.Tenant, func(tx pgx.Tx) (logOf[session.Message], error) {
		return readLog(ctx, tx, key, ofMessage, scanMessage, `
			SELECT `+messageColumns+`
			  FROM messages
			 WHERE tenant_id = $1 AND session_key = $2 AND seq = ANY ($3)
			 ORDER BY seq`, key.Tenant, key.Key, seqs)
	})
}

// messageColumns are those of a session.Message, in their order.
const messageColumns = `seq, role, format, tokens, coalesce(client_id, ''), body, created_at, removed_at,
	coalesce(removed_seq, 0), digest, coalesce(superseded_by, 0)`

var scanMessage = pgx.RowToStructByPos[session.Message]

// sessionKey returns the key of a session's rows; ErrNotFound.
func sessionKey(ctx context.Context, tx pgx.Tx, at session.Address) (uuid.UUID, error) {
	return RowIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT key
		  FROM sessions
		 WHERE tenant_id = $1 AND id = $2`, at.Tenant, at.ID)
}
