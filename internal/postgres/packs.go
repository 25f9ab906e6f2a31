package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/pack"
)

// messageBytes is the size of a message's body in SQL, wherever it is.
const messageBytes = `coalesce(bytes, octet_length(body))`

// packedShape is the shape of a message whose bytes are in a pack. No other shape has this character.
const packedShape = "\x1a"

// storedPack is a pack as it is stored.
type storedPack struct {
	First, Last int64
	Raw         int64 // bytes of its messages
	Results     int   // stored results that its messages had when it was made
	Digest      []byte
	Body        []byte
}

const packColumns = `first_seq, last_seq, raw, results, digest, body`

// packFacts are those columns of a pack whose bytes, which are many, nobody needs.
const packFacts = `first_seq, last_seq, raw, results, digest, NULL::bytea`

var scanPack = pgx.RowToStructByPos[storedPack]

var errPackDigest = errors.New("its pack has another digest")

// records opens the pack; *session.DamagedError names the message seq, for which it was opened.
func (p *storedPack) records(seq int64) ([]pack.Record, error) {
	if sum := sha256.Sum256(p.Body); !bytes.Equal(sum[:], p.Digest) {
		return nil, session.DamagedMessage(seq, errPackDigest)
	}
	records, err := pack.Decode(p.Body)
	if err != nil {
		return nil, session.DamagedMessage(seq, err)
	}
	return records, nil
}

// packs are packs of a session that a transaction read. They are opened when it has ended, one at a time, so messages
// should be asked for in the order of the log or its reverse.
type packs struct {
	key    session.Key
	stored []storedPack // by seq
	opened int          // the number of the open one, from 1; 0 for none
	open   []pack.Record
	filled map[uuid.UUID][]byte // contents that were read for the open pack
	size   int                  // of those
}

// readPacks reads the packs that have the messages with these seqs.
func readPacks(ctx context.Context, tx pgx.Tx, key session.Key, seqs []int64) (p packs, err error) {
	p.key = key
	if len(seqs) == 0 {
		return p, nil
	}
	p.stored, err = RowsIn(ctx, tx, scanPack, `
		SELECT `+packColumns+`
		  FROM message_packs
		 WHERE tenant_id = $1
		   AND session_key = $2
		   AND first_seq <= $4
		   AND last_seq >= $3
		 ORDER BY first_seq`, key.Tenant, key.Key, slices.Min(seqs), slices.Max(seqs))
	return p, err
}

var errNoPack = errors.New("its bytes are neither in its row nor in a pack")

// record returns what its pack has of message seq.
//
// Errors: *session.DamagedError.
func (p *packs) record(seq int64) (*pack.Record, error) {
	i, _ := slices.BinarySearchFunc(p.stored, seq, func(s storedPack, seq int64) int { return int(s.Last - seq) })
	if i == len(p.stored) {
		return nil, session.DamagedMessage(seq, errNoPack)
	}
	if p.opened != i+1 {
		records, err := p.stored[i].records(seq)
		if err != nil {
			return nil, err
		}
		p.open, p.opened = records, i+1
		p.filled, p.size = nil, 0
	}
	at, found := slices.BinarySearchFunc(p.open, seq, func(r pack.Record, seq int64) int { return int(r.Seq - seq) })
	if !found {
		return nil, session.DamagedMessage(seq, errNoPack)
	}
	return &p.open[at], nil
}

// heldContents bounds the memory for contents that several messages of a pack may have, in bytes.
const heldContents = 4 << 20

// body returns the bytes of a message from its pack. It must not be called in a transaction: what fills a hole may
// lie outside the database.
//
// Errors: *session.DamagedError, ErrResultStore; ErrNotFound if the session was erased meanwhile.
func (s *Store) body(ctx context.Context, p *packs, at place) ([]byte, error) {
	r, err := p.record(at.seq)
	if err != nil {
		return nil, err
	}
	if at.shape != nil {
		*at.shape = r.Shape
	}
	if at.view != nil {
		*at.view = r.View
	}
	if at.shown && r.View != nil {
		return r.View, nil
	}
	var unavailable error // the database or the store outside did not answer: nothing is damaged
	body, err := r.Fill(func(id uuid.UUID) ([]byte, error) {
		if held, ok := p.filled[id]; ok {
			return held, nil
		}
		content, err := s.StoredBody(ctx, p.key, id)
		if err != nil {
			if !errors.Is(err, session.ErrDamaged) {
				unavailable = err
			}
			return nil, err
		}
		if p.size += len(content); p.filled == nil || p.size > heldContents {
			p.filled, p.size = map[uuid.UUID][]byte{}, len(content)
		}
		p.filled[id] = content
		return content, nil
	})
	if unavailable != nil {
		return nil, unavailable
	}
	if err != nil {
		return nil, session.DamagedMessage(at.seq, err)
	}
	return body, nil
}

// place is where the body of a message that was read belongs, and its digest, which a message in a pack does not have.
// shown asks for what views show of the message. shape and view, if any, are where its shape belongs and, if that is
// not the message, what views show of it.
type place struct {
	seq    int64
	body   *[]byte
	digest []byte
	shown  bool
	shape  *string
	view   *[]byte
}

func ofMessage(m *session.Message) place { return place{seq: m.Seq, body: &m.Body, digest: m.Digest} }
func ofLogMessage(m *LogMessage) place   { return place{seq: m.Seq, body: &m.Body, digest: m.Digest} }
func ofStored(m *StoredMessage) place    { return place{seq: m.Seq, body: &m.Body, digest: m.Digest} }

// logOf are messages of a log as a transaction read them. Some of their bodies may be in packs.
type logOf[M any] struct {
	messages []M
	packs    packs
	place    func(*M) place
}

// readLog reads messages, as scan does from the rows of a statement, and the packs of those that have no body.
func readLog[M any](
	ctx context.Context, tx pgx.Tx, key session.Key, of func(*M) place, scan pgx.RowToFunc[M], sql string, args ...any,
) (log logOf[M], err error) {
	log.place = of
	if log.messages, err = RowsIn(ctx, tx, scan, sql, args...); err != nil {
		return log, err
	}
	log.packs, err = readPacks(ctx, tx, key, log.missing())
	return log, err
}

// missing returns the seqs of the messages that have no body.
func (l *logOf[M]) missing() (seqs []int64) {
	for i := range l.messages {
		if at := l.place(&l.messages[i]); *at.body == nil {
			seqs = append(seqs, at.seq)
		}
	}
	return seqs
}

// complete returns the messages with all their bodies, checked: as they came in. It must not be called in a
// transaction.
//
// Errors: *session.DamagedError; ErrNotFound if the session was erased meanwhile.
func (l *logOf[M]) complete(ctx context.Context, s *Store) ([]M, error) {
	for i := range l.messages {
		if err := l.completeOne(ctx, s, &l.messages[i]); err != nil {
			return nil, err
		}
	}
	return l.messages, nil
}

// completeOne does what complete does for one of the messages.
func (l *logOf[M]) completeOne(ctx context.Context, s *Store, m *M) error {
	at := l.place(m)
	if *at.body != nil {
		return session.CheckMessage(at.seq, *at.body, at.digest)
	}
	body, err := s.body(ctx, &l.packs, at)
	*at.body = body
	return err
}
