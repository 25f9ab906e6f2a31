package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/pack"
)

// StoredBody returns the content of a stored body that a hole names, verified.
//
// Errors: *session.DamagedError, also for a body that is gone; ErrNotFound if the session was erased.
func (s *Store) StoredBody(ctx context.Context, key session.Key, id uuid.UUID) ([]byte, error) {
	content, err := s.OpenBody(ctx, key, id)
	var body []byte
	if err == nil {
		body, err = content.All(ctx)
	}
	if !errors.Is(err, session.ErrNotFound) {
		return body, err
	}
	there, lookErr := s.isThere(ctx, key)
	if lookErr == nil && there {
		err = &session.DamagedError{What: fmt.Sprintf("body %s", id), Cause: err}
	}
	return nil, errors.Join(err, lookErr)
}

// StoredBodies are contents that the holes of a pack name, or the damage of each.
type StoredBodies map[uuid.UUID]storedContent

type storedContent struct {
	text   []byte
	damage error
}

// Of returns the content of a body; *session.DamagedError.
func (b StoredBodies) Of(id uuid.UUID) ([]byte, error) { return b[id].text, b[id].damage }

// StoredBodies reads the contents that the holes of a pack name, verified, in one statement unless they are large.
//
// Errors: ErrNotFound if the session was erased.
func (s *Store) StoredBodies(ctx context.Context, key session.Key, records []pack.Record) (StoredBodies, error) {
	found := StoredBodies{}
	for i := range records {
		for _, h := range records[i].Holes {
			found[h.Body] = storedContent{}
		}
	}
	if len(found) == 0 {
		return found, nil
	}
	opened, err := s.openBodies(ctx, key, slices.Collect(maps.Keys(found)))
	if err != nil {
		return nil, err
	}
	for id := range found {
		var held storedContent
		if content := opened[id]; content != nil {
			held.text, held.damage = content.All(ctx)
		} else {
			held.text, held.damage = s.StoredBody(ctx, key, id) // which says why it was not opened
		}
		if held.damage != nil && !errors.Is(held.damage, session.ErrDamaged) {
			return nil, held.damage
		}
		found[id] = held
	}
	return found, nil
}

// isThere reports whether there is a session.
func (s *Store) isThere(ctx context.Context, key session.Key) (bool, error) {
	return QueryRow(ctx, s, key.Tenant, pgx.RowTo[bool], `
		SELECT EXISTS (SELECT FROM sessions WHERE tenant_id = $1 AND key = $2)`, key.Tenant, key.Key)
}

// The bounds of a pack: bytes of messages, unless one message alone has more, and messages.
const (
	packBytes    = 512 << 10
	packMessages = 4096
)

// PackPlan is what a pack is made of: messages that no kept checkpoint needs, and the bodies that may leave holes.
type PackPlan struct {
	session.Key
	First, Last int64
	Messages    []PackMessage
	Stored      pack.Stored
	Sizes       pack.Sizes

	results  int          // stored results in the messages
	replaces []storedPack // packs whose place the new one takes
	rows     []int64      // messages whose bytes are in their rows
}

// PackMessage is a message that moves into a pack.
type PackMessage struct {
	Seq    int64
	Body   []byte
	View   []byte // what views show of it; nil if that is the message
	Shape  string
	Digest []byte // SHA-256 of Body; nil if it is not known
}

func (m *PackMessage) place() place {
	return place{seq: m.Seq, body: &m.Body, digest: m.Digest, shape: &m.Shape, view: &m.View}
}

// PlanPack plans the next pack of a session: the oldest messages that are in none, together with small packs before
// them; else a pack whose messages have more stored results than when it was made. The plan is nil if there is nothing
// to do, and n the newest checkpoint at that moment. Messages that are damaged stay in their rows.
//
// Errors: ErrNotFound; *session.DamagedError if a pack that is to be made again cannot be read.
func (s *Store) PlanPack(ctx context.Context, key session.Key) (plan *PackPlan, n int, err error) {
	var log logOf[PackMessage]
	err = s.inSnapshot(ctx, key.Tenant, func(tx pgx.Tx) error {
		at, err := readPacked(ctx, tx, key)
		if err != nil {
			return err
		}
		n = at.checkpoint
		if plan, err = at.plan(ctx, tx); err != nil || plan == nil {
			return err
		}
		if log, err = plan.read(ctx, tx, at.pinned); err != nil {
			return err
		}
		return plan.readResults(ctx, tx)
	})
	if err != nil || plan == nil {
		return nil, n, err
	}
	return plan, n, plan.take(ctx, s, &log)
}

// packedLog is how far the log of a session is packed.
type packedLog struct {
	session.Key
	checkpoint int   // the newest
	pinned     int64 // leading system messages, which stay in their rows
	kept       int64 // the last seq that all kept checkpoints cover
	packed     int64 // the last seq of the last pack
}

func readPacked(ctx context.Context, tx pgx.Tx, key session.Key) (at packedLog, err error) {
	at.Key = key
	err = tx.QueryRow(ctx, `
		SELECT s.checkpoint_n, s.pinned,
		       coalesce((SELECT min(through_seq)
		                   FROM checkpoints
		                  WHERE tenant_id = $1 AND session_key = $2 AND body IS NOT NULL), 0),
		       coalesce((SELECT max(last_seq)
		                   FROM message_packs
		                  WHERE tenant_id = $1 AND session_key = $2), 0)
		  FROM sessions s
		 WHERE s.tenant_id = $1 AND s.key = $2`, key.Tenant, key.Key).
		Scan(&at.checkpoint, &at.pinned, &at.kept, &at.packed)
	return at, NotFound(err)
}

func (l *packedLog) plan(ctx context.Context, tx pgx.Tx) (*PackPlan, error) {
	fresh, size, err := l.unpacked(ctx, tx)
	if err != nil {
		return nil, err
	}
	if fresh.Last > 0 {
		fresh.replaces, err = l.smaller(ctx, tx, size)
		if len(fresh.replaces) > 0 {
			fresh.First = fresh.replaces[0].First
		}
		return &fresh, err
	}
	return l.outdated(ctx, tx)
}

// unpacked returns a plan of the oldest messages that are in no pack, and their size. It has no Last if there are none.
func (l *packedLog) unpacked(ctx context.Context, tx pgx.Tx) (p PackPlan, size int64, err error) {
	p = PackPlan{Key: l.Key, First: max(l.pinned, l.packed) + 1}
	err = tx.QueryRow(ctx, `
		SELECT coalesce(max(seq), 0), coalesce(sum(bytes), 0)
		  FROM (SELECT seq, octet_length(body) AS bytes, sum(octet_length(body)) OVER (ORDER BY seq) AS through
		          FROM messages
		         WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3 AND seq <= $4 AND body IS NOT NULL
		         ORDER BY seq
		         LIMIT $5) m
		 WHERE through <= $6 OR through = bytes`,
		l.Tenant, l.Key.Key, p.First, l.kept, packMessages, packBytes).Scan(&p.Last, &size)
	return p, size, err
}

// smaller returns the packs at the end of the log that messages of this size are packed together with: those of at most
// twice the size of all that comes after them. So a byte is packed again only a few times, and few packs stay small.
func (l *packedLog) smaller(ctx context.Context, tx pgx.Tx, size int64) (merged []storedPack, err error) {
	const looked = 8
	last, err := RowsIn(ctx, tx, scanPack, `
		SELECT `+packFacts+`
		  FROM message_packs
		 WHERE tenant_id = $1 AND session_key = $2
		 ORDER BY first_seq DESC
		 LIMIT $3`, l.Tenant, l.Key.Key, looked)
	for _, p := range last {
		if p.Raw > 2*size || p.Raw+size > packBytes {
			break
		}
		size += p.Raw
		merged = append([]storedPack{p}, merged...)
	}
	return merged, err
}

// outdated returns a plan of a pack that has results whole which were stored after it was made.
func (l *packedLog) outdated(ctx context.Context, tx pgx.Tx) (*PackPlan, error) {
	old, err := RowIn(ctx, tx, scanPack, `
		SELECT `+packFacts+`
		  FROM message_packs p
		 WHERE p.tenant_id = $1 AND p.session_key = $2
		   AND p.results < (SELECT count(*)
		                      FROM results r
		                     WHERE r.tenant_id = $1 AND r.session_key = $2
		                       AND r.seq >= p.first_seq AND r.seq <= p.last_seq AND r.body_id IS NOT NULL)
		 ORDER BY p.first_seq
		 LIMIT 1`, l.Tenant, l.Key.Key)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	return &PackPlan{Key: l.Key, First: old.First, Last: old.Last, replaces: []storedPack{old}}, err
}

func (p *PackPlan) read(ctx context.Context, tx pgx.Tx, pinned int64) (logOf[PackMessage], error) {
	return readLog(ctx, tx, p.Key, (*PackMessage).place, pgx.RowToStructByPos[PackMessage], `
		SELECT seq, body, view_body, shape, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3 AND seq <= $4
		 ORDER BY seq`, p.Tenant, p.Key.Key, max(p.First, pinned+1), p.Last)
}

func (p *PackPlan) readResults(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT r.body_id, b.sha256, r.bytes
		  FROM results r
		  LEFT JOIN result_bodies b ON b.tenant_id = $1 AND b.session_key = $2 AND b.id = r.body_id
		 WHERE r.tenant_id = $1 AND r.session_key = $2 AND r.seq >= $3 AND r.seq <= $4 AND r.body_id IS NOT NULL`,
		p.Tenant, p.Key.Key, p.First, p.Last)
	if err != nil {
		return err
	}
	p.Stored = pack.Stored{}
	var sizes []int
	var id uuid.UUID
	var sum []byte
	var bytes int
	_, err = pgx.ForEachRow(rows, []any{&id, &sum, &bytes}, func() error {
		p.results++
		if len(sum) == sha256.Size {
			p.Stored[[sha256.Size]byte(sum)] = id
			sizes = append(sizes, bytes)
		}
		return nil
	})
	p.Sizes = pack.NewSizes(sizes...)
	return err
}

// take takes the messages that were read into the plan, without those in rows that are damaged.
func (p *PackPlan) take(ctx context.Context, s *Store, log *logOf[PackMessage]) error {
	inPack := map[int64]bool{}
	for _, seq := range log.missing() {
		inPack[seq] = true
	}
	for i := range log.messages {
		m := &log.messages[i]
		err := log.completeOne(ctx, s, m)
		if errors.Is(err, session.ErrDamaged) && !inPack[m.Seq] {
			continue
		}
		if err != nil {
			return err
		}
		if !inPack[m.Seq] {
			p.rows = append(p.rows, m.Seq)
		}
		p.Messages = append(p.Messages, *m)
	}
	return nil
}

// CommitPack puts a pack in the place of the packs and the rows that it was made of, if nothing has changed since it
// was planned; ErrNotFound, ErrStale.
func (s *Store) CommitPack(ctx context.Context, p *PackPlan, packed []byte) error {
	return s.underLock(ctx, p.Key, func(tx pgx.Tx, _ lockedSession) error {
		at, err := readPacked(ctx, tx, p.Key)
		if err != nil {
			return err
		}
		if at.kept < p.Last {
			return session.ErrStale
		}
		if err := p.replace(ctx, tx); err != nil {
			return err
		}
		if err := p.insert(ctx, tx, packed); err != nil {
			return err
		}
		return p.clearRows(ctx, tx)
	})
}

func (p *PackPlan) insert(ctx context.Context, tx pgx.Tx, packed []byte) error {
	var raw int64
	for i := range p.Messages {
		raw += int64(len(p.Messages[i].Body))
	}
	sum := sha256.Sum256(packed)
	return Exec(ctx, tx, `
		INSERT INTO message_packs (tenant_id, session_key, first_seq, last_seq, raw, results, digest, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		p.Tenant, p.Key.Key, p.First, p.Last, raw, p.results, sum[:], packed)
}

// replace deletes the packs whose place the new one takes; ErrStale if they are not those that were read.
func (p *PackPlan) replace(ctx context.Context, tx pgx.Tx) error {
	var firsts []int64
	var digests [][]byte
	for i := range p.replaces {
		firsts = append(firsts, p.replaces[i].First)
		digests = append(digests, p.replaces[i].Digest)
	}
	return execAll(ctx, tx, len(firsts), `
		DELETE FROM message_packs
		 WHERE tenant_id = $1 AND session_key = $2 AND first_seq = ANY ($3) AND digest = ANY ($4)`,
		p.Tenant, p.Key.Key, firsts, digests)
}

// clearRows takes the bytes out of the messages' rows. They never come back there.
func (p *PackPlan) clearRows(ctx context.Context, tx pgx.Tx) error {
	return execAll(ctx, tx, len(p.rows), `
		UPDATE messages
		   SET bytes = octet_length(body), shape = $4,
		       body = NULL, view_body = NULL, digest = NULL, calls = NULL, answers = NULL
		 WHERE tenant_id = $1 AND session_key = $2 AND seq = ANY ($3) AND body IS NOT NULL`,
		p.Tenant, p.Key.Key, p.rows, packedShape)
}

// execAll runs a statement that must change exactly n rows; ErrStale if it changes others.
func execAll(ctx context.Context, tx pgx.Tx, n int, sql string, args ...any) error {
	tag, err := tx.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != int64(n) {
		err = session.ErrStale
	}
	return err
}

// EndOffload completes the job that packed a session's messages, and records that nothing was left to pack when
// checkpoint n was the newest. It does neither if there is a newer one, whose job was dropped as a duplicate of this:
// done is false. ErrNotFound.
func (s *Store) EndOffload(ctx context.Context, key session.Key, n int, job int64) (done bool, err error) {
	err = s.underLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		if done = row.checkpoint == n; !done {
			return nil
		}
		err := Exec(ctx, tx, `
			UPDATE sessions
			   SET offloaded_n = $3
			 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key, n)
		if err != nil {
			return err
		}
		return s.queue.Complete(ctx, tx, job)
	})
	return done, err
}

// packedAlready reports whether a new checkpoint leaves nothing to pack, and records it: all was packed after its base,
// the oldest kept checkpoint frees no more messages, and none of the results that it names has a body that a pack could
// leave out.
func packedAlready(ctx context.Context, tx pgx.Tx, key session.Key, o Outcome) (bool, error) {
	tag, err := tx.Exec(ctx, `
		WITH packed AS (
			SELECT coalesce(max(last_seq), 0) AS through
			  FROM message_packs
			 WHERE tenant_id = $1 AND session_key = $2
		)
		UPDATE sessions s
		   SET offloaded_n = $3
		  FROM packed p
		 WHERE s.tenant_id = $1 AND s.key = $2 AND s.offloaded_n = $4
		   AND greatest(s.pinned, p.through) >= (SELECT min(through_seq)
		                                           FROM checkpoints
		                                          WHERE tenant_id = $1 AND session_key = $2 AND body IS NOT NULL)
		   AND NOT EXISTS (
		       SELECT
		         FROM results
		        WHERE tenant_id = $1 AND session_key = $2 AND ref = ANY ($5) AND seq <= p.through
		          AND body_id IS NOT NULL)`,
		key.Tenant, key.Key, o.Base+1, o.Base, o.Checkpoint.Refs)
	return tag.RowsAffected() > 0, err
}

// offloadsAtOnce is how many sessions of a tenant a sweep asks for: the sessions of an older version have their turn a
// few at a time.
const offloadsAtOnce = 20

var offloadSweepSQL = `
	SELECT s.tenant_id, s.key
	  FROM sessions s
	 WHERE s.tenant_id = $1
	   AND s.checkpoint_n > s.offloaded_n
	   AND NOT ` + queue.HasOffload(`s.key`) + `
	 LIMIT ` + strconv.Itoa(offloadsAtOnce)

// RequeueOffloads inserts the job of some of a tenant's sessions that have a checkpoint after which no messages were
// packed, because the job was lost or the session is from before there were packs. It returns how many it inserted.
func (s *Store) RequeueOffloads(ctx context.Context, tenant uuid.UUID) (inserted int, err error) {
	return Requeue[queue.OffloadArgs](ctx, s, tenant, offloadSweepSQL)
}
