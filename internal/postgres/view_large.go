package postgres

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/varve-dev/varve/internal/session"
)

// Large views are read in three ways beside that of view.go, which leaves them out:
//
//   - FillView reads all of a view at one moment, message by message and never joined. Its caller has the memory.
//   - OpenView reads the shapes only, and the checkpoint, so that its caller learns whether the view can go out as
//     it is;
//   - then AppendTail reads the messages, a page at a time, and Seen tells in the end whether they were the same ones.

// presentSQL reads the messages of a session, by key, behind the seq $3 and through $4 that were not removed.
const presentSQL = `
		  FROM messages
		 WHERE tenant_id = $1
		   AND session_key = $2
		   AND removed_at IS NULL
		   AND seq > $3
		   AND seq <= $4`

// beforeTail returns the seq behind which the messages of the tail begin.
func (v *View) beforeTail() int64 { return max(v.Through, v.Separate()) }

// Seen is a running digest of which messages a reader has seen. Its zero value has seen none.
type Seen struct{ sum uint64 }

var seenSeed = maphash.MakeSeed()

// Add adds a message by its seq and its shape, which has the sum of its bytes.
func (s *Seen) Add(seq int64, shape string) {
	s.sum = maphash.Comparable(seenSeed, struct {
		before uint64
		seq    int64
		shape  string
	}{s.sum, seq, shape})
}

// FillView reads what was left out of a view. Where the checkpoint turns out to be damaged, v is the newest whole view
// before it, as ViewInto has it, and may have been left out itself.
//
// Errors: ErrNotFound, ErrPruned, *session.DamagedError.
func (s *Store) FillView(ctx context.Context, at session.Address, v *View) error {
	return s.fill(ctx, at, v, wholeTail)
}

// FillStretch does what FillView does, but reads no more of the tail than a part.
func (s *Store) FillStretch(ctx context.Context, at session.Address, v *View, part Stretch) error {
	return s.fill(ctx, at, v, part)
}

// BytesOf returns the size of the messages of a stretch of a view that was left out, removed ones included.
func (s *Store) BytesOf(ctx context.Context, at session.Address, v *View, part Stretch) (int64, error) {
	return QueryRow(ctx, s, at.Tenant, pgx.RowTo[int64], `
		SELECT coalesce(sum(size), 0)::bigint
		  FROM (SELECT `+messageBytes+` AS size
		          FROM messages
		         WHERE tenant_id = $1
		           AND session_key = $2
		           AND seq > $3
		           AND seq <= $4
		         ORDER BY seq
		         LIMIT $5) m`, at.Tenant, v.Key, max(v.beforeTail(), part.First-1), v.LastSeq, part.Messages)
}

func (s *Store) fill(ctx context.Context, at session.Address, v *View, part Stretch) error {
	var tail logOf[TailMessage]
	v.IsStretch = part != wholeTail
	err := s.readLeftOut(ctx, at, v, func(tx pgx.Tx) (err error) {
		if tail, _, err = v.readTail(ctx, tx, at, v.args, part); err != nil || part != wholeTail {
			return err
		}
		return v.checkCount(ctx, tx, at, len(tail.messages))
	})
	if err != nil || v.LeftOut {
		return err
	}
	v.Loose, err = tail.complete(ctx, s)
	for i := range v.Loose {
		if err == nil {
			err = v.Loose[i].check()
		}
	}
	return err
}

// OpenView reads what was left out of a newest view but the messages after its checkpoint, of which it hands over the
// shapes, one after another. It may return another view as FillView does.
//
// Errors: those of FillView, and of each.
func (s *Store) OpenView(
	ctx context.Context, at session.Address, v *View, each func(seq int64, shape string) error,
) error {
	var stopped error // by each, which is no failure of the database
	err := s.readLeftOut(ctx, at, v, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT seq, shape`+presentSQL+`
			 ORDER BY seq`, at.Tenant, v.Key, v.beforeTail(), v.LastSeq)
		if err != nil {
			return err
		}
		var seq int64
		var shape string
		count := 0
		_, err = pgx.ForEachRow(rows, []any{&seq, &shape}, func() error {
			count++
			stopped = each(seq, shape)
			return stopped
		})
		switch {
		case stopped != nil:
			return nil
		case err != nil:
			return err
		}
		return v.checkCount(ctx, tx, at, count)
	})
	return cmp.Or(stopped, err)
}

// checkCount returns a *session.DamagedError if fewer messages are behind the checkpoint than have been appended there
// and not removed.
func (v *View) checkCount(ctx context.Context, tx pgx.Tx, at session.Address, count int) error {
	after := v.beforeTail()
	missing := v.LastSeq - after - int64(count)
	if missing == 0 {
		return nil
	}
	removed, err := RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT gap_seq > $3
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, at.Tenant, v.Key, v.Through)
	if err != nil || removed {
		return err
	}
	return missingMessages(after, v.LastSeq, missing)
}

// readLeftOut reads a view anew, with its checkpoint and its system prompt, and calls rest in the same snapshot. A view
// that stands in for a damaged one may be left out: for that, rest is not called.
func (s *Store) readLeftOut(ctx context.Context, at session.Address, v *View, rest func(tx pgx.Tx) error) error {
	v.LeftOut = false
	err := s.inSnapshot(ctx, at.Tenant, func(tx pgx.Tx) error {
		if err := v.readRow(ctx, tx); err != nil {
			return err
		}
		if err := v.readCheckpoint(ctx, tx, at); err != nil {
			return err
		}
		if err := v.readSystem(ctx, tx, at); err != nil {
			return err
		}
		return rest(tx)
	})
	if err != nil || v.Checkpoint == 0 {
		return err
	}
	damaged := v.checkCheckpoint()
	if isNewest := len(v.args) <= olderArg; isNewest && damaged != nil {
		return s.standIn(ctx, at, damaged, v)
	}
	return damaged
}

// readRow reads what the session's row has of a view. That of a moment does not change, and to add its messages up
// again would take as long as the first time.
func (v *View) readRow(ctx context.Context, tx pgx.Tx) error {
	if len(v.args) > olderArg && v.args[asOfArg].(*int64) != nil {
		return nil
	}
	rows, err := tx.Query(ctx, v.sql, v.withoutBodies()...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return one(v.columns()...)(rows)
}

// withoutBodies returns the arguments of the view's statement with which it returns no messages.
func (v *View) withoutBodies() []any {
	args := append([]any(nil), v.args...)
	args[largestArg] = int64(-1)
	return args
}

// readCheckpoint reads the checkpoint of a view as viewStatement does; ErrPruned.
func (v *View) readCheckpoint(ctx context.Context, tx pgx.Tx, at session.Address) error {
	v.Body, v.Proof = nil, nil
	v.Validator, v.OpenCalls = nil, nil
	v.Units = nil
	if v.Checkpoint == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		SELECT body, `+proofSQL+`, validator_state, array_to_string(open_calls, E'\x1d'), units::text
		  FROM checkpoints
		 WHERE tenant_id = $1 AND session_key = $2 AND n = $3`, at.Tenant, v.Key, v.Checkpoint)
	if err != nil {
		return err
	}
	err = one((*reused)(&v.Body), (*reused)(&v.Proof), (*reused)(&v.Validator), (*reused)(&v.OpenCalls), &v.Units)(rows)
	rows.Close()
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil // checkCheckpoint says so
	case err == nil && v.Size > 0 && len(v.Body) == 0:
		return pruned(v.Checkpoint)
	}
	return err
}

// readSystem reads the separate system prompt of a view.
func (v *View) readSystem(ctx context.Context, tx pgx.Tx, at session.Address) error {
	v.System, v.SystemShapes = v.System[:0], v.SystemShapes[:0]
	separate := v.Separate()
	if separate == 0 {
		return nil
	}
	head := View{Version: v.Version}
	head.LastSeq = separate
	log, named, err := head.readTail(ctx, tx, at, v.args, wholeTail)
	if err != nil {
		return err
	}
	head.setTail(log.messages, named)
	v.System, v.SystemShapes = head.Tail, head.TailShapes
	return logged{v.System, v.SystemShapes, 0, separate}.check()
}

// pageMessages and pageBytes bound a page of a large view: one message more is read in any case.
const (
	pageMessages = 2000
	pageBytes    = 1 << 20
)

// PageMemory is about how much memory a reader of pages takes.
const PageMemory = 4 * pageBytes

// AppendTail appends messages of a newest view behind a seq to page, each behind a comma: about a MiB of them and at
// least one, in one statement. It returns the seq of the last one, 0 if none are left, and adds all to seen.
//
// Errors: *session.DamagedError.
func (s *Store) AppendTail(
	ctx context.Context, at session.Address, v *View, after int64, page []byte, seen *Seen,
) (joined []byte, last int64, err error) {
	joined = page
	sql := `
		SELECT seq, coalesce(view_tokens, tokens), coalesce(view_body, body), shape
		  FROM (SELECT seq, tokens, view_tokens, view_body, body, shape,
		               sum(octet_length(coalesce(view_body, body))) OVER before
		               - octet_length(coalesce(view_body, body)) AS bytes_before` + presentSQL + `
		        WINDOW before AS (ORDER BY seq)
		         ORDER BY seq
		         LIMIT $5) m
		 WHERE bytes_before < $6
		 ORDER BY seq`
	args := []any{at.Tenant, v.Key, max(after, v.beforeTail()), v.LastSeq, pageMessages, pageBytes}
	err = s.query(ctx, at.Tenant, sql, args, func(rows pgx.Rows) error {
		var m TailMessage
		body := (*pgtype.DriverBytes)(&m.Body) // of the row: it is copied once, into the page
		_, err := pgx.ForEachRow(rows, []any{&m.Seq, &m.Tokens, body, &m.Shape}, func() error {
			joined = append(append(joined, ','), m.Body...)
			last = m.Seq
			seen.Add(m.Seq, m.Shape)
			return m.check()
		})
		return err
	})
	return joined, last, err
}

// check returns a *session.DamagedError if the message is not what was stored. One from a pack was checked when that
// was opened, and one from before there were sums is not checked.
func (m *TailMessage) check() error {
	sum := sumOf([]byte(m.Shape))
	if sum == nil || m.raw && m.capped != nil {
		return nil
	}
	_, err := cutLast(m.Body, sum, false)
	if err != nil {
		return session.DamagedMessage(m.Seq, err)
	}
	return nil
}
