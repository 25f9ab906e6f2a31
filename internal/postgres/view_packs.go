package postgres

import (
	"bytes"
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// packed reports whether bytes of the view's tail are in packs, so that what was read is not all of it. That is so
// behind an older checkpoint or a removal: what the newest checkpoints do not cover is in no pack.
func (v *View) packed() bool { return bytes.IndexByte(v.TailShapes, packedShape[0]) >= 0 }

// readPackedView reads a view like readView, at one moment with the packs that its tail needs, and puts the tail
// together here.
func (s *Store) readPackedView(ctx context.Context, at session.Address, sql string, args []any, v *View) error {
	var tail logOf[TailMessage]
	var named bool
	err := s.inSnapshot(ctx, at.Tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		err = one(v.columns()...)(rows)
		rows.Close()
		if err != nil || !v.packed() {
			return err
		}
		tail, named, err = v.readTail(ctx, tx, at, args, wholeTail)
		return err
	})
	if err != nil || tail.place == nil {
		return err
	}
	messages, err := tail.complete(ctx, s)
	if err != nil {
		return err
	}
	v.setTail(messages, named)
	return nil
}

// TailMessage is a message of a view's tail.
type TailMessage struct {
	Seq    int64
	Tokens int64 // of what the view shows
	Body   []byte
	Shape  string
	raw    bool   // the view shows the message itself
	capped []byte // of a message in a pack: what other views show of it; nil if that is the message
}

// Stretch is a stretch of a view's tail: the messages from a seq on, as many as Messages at most.
type Stretch struct {
	First    int64
	Messages int
}

// wholeTail is all of it.
var wholeTail = Stretch{Messages: math.MaxInt32}

// readTail reads a stretch of the view's tail. named reports whether the shapes have their seqs and tokens.
func (v *View) readTail(ctx context.Context, tx pgx.Tx, at session.Address, args []any, part Stretch) (
	tail logOf[TailMessage], named bool, err error,
) {
	var raw bool // the log itself, in which nothing was capped
	var asOf *int64
	if len(args) > olderArg {
		raw, asOf = args[rawArg].(bool), args[asOfArg].(*int64)
	}
	key := session.Key{Tenant: at.Tenant, Key: v.Key}
	named, err = RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT context_tokens > $3 OR gap_seq > $4
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key, args[maxTokensArg], v.Through)
	if err != nil {
		return tail, named, err
	}
	tail, err = readLog(ctx, tx, key, (*TailMessage).place, scanTail(raw), `
		SELECT seq, CASE WHEN $5 THEN tokens ELSE coalesce(view_tokens, tokens) END,
		       CASE WHEN $5 THEN body ELSE coalesce(view_body, body) END,
		       CASE WHEN $5 THEN `+loggedShape+` ELSE shape END
		  FROM messages
		 WHERE tenant_id = $1
		   AND session_key = $2
		   AND (removed_at IS NULL OR removed_seq > $6::bigint)
		   AND seq > $3
		   AND seq <= $4
		 ORDER BY seq
		 LIMIT $7`, key.Tenant, key.Key, max(v.beforeTail(), part.First-1), v.LastSeq, raw, asOf, part.Messages)
	return tail, named, err
}

// The places of arguments of viewStatement.
const (
	maxTokensArg = 7
	largestArg   = 8
	olderArg     = 9
	rawArg       = 10
	asOfArg      = 12
)

func scanTail(raw bool) pgx.RowToFunc[TailMessage] {
	return func(row pgx.CollectableRow) (m TailMessage, err error) {
		m.raw = raw
		return m, row.Scan(&m.Seq, &m.Tokens, &m.Body, &m.Shape)
	}
}

func (m *TailMessage) place() place {
	return place{seq: m.Seq, body: &m.Body, shown: !m.raw, shape: &m.Shape, view: &m.capped}
}

// shapeWithout returns a shape without its sum, which is that of what other views show. What comes from a pack was
// checked when that was opened.
func shapeWithout(shape string) string {
	fields := strings.SplitAfter(shape, string(rune(fieldEnd)))
	return strings.Join(fields[:min(len(fields), fieldsOfShape-1)], "")
}

// setTail joins messages as viewStatement does.
func (v *View) setTail(messages []TailMessage, named bool) {
	v.Tail, v.TailShapes = v.Tail[:0], v.TailShapes[:0]
	for i := range messages {
		m := &messages[i]
		if i > 0 {
			v.Tail = append(v.Tail, ',')
			v.TailShapes = append(v.TailShapes, '\x1e')
		}
		v.Tail = append(v.Tail, m.Body...)
		if named {
			v.TailShapes = strconv.AppendInt(v.TailShapes, m.Seq, 10)
			v.TailShapes = append(v.TailShapes, '\x1c')
			v.TailShapes = strconv.AppendInt(v.TailShapes, m.Tokens, 10)
			v.TailShapes = append(v.TailShapes, '\x1c')
		}
		if m.raw && m.capped != nil {
			m.Shape = shapeWithout(m.Shape)
		}
		v.TailShapes = append(v.TailShapes, m.Shape...)
	}
}
