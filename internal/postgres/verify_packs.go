package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/pack"
)

// Packs returns the messages that are in packs: from which seq to which.
func (a *Audit) Packs(ctx context.Context) ([]session.MessagesRef, error) {
	return RowsIn(ctx, a.tx, pgx.RowToStructByPos[session.MessagesRef], `
		SELECT first_seq, last_seq
		  FROM message_packs
		 WHERE tenant_id = $1 AND session_key = $2
		 ORDER BY first_seq`, a.Tenant, a.Key.Key)
}

// AuditedPack is a pack, with the rows of its messages and what it has of them.
type AuditedPack struct {
	session.MessagesRef
	Damaged  error                 // of the pack as a whole; then it has nothing else
	Messages []AuditedMessage      // that came back from the pack
	Failed   map[int64]error       // why the others did not, by seq
	Needs    map[int64][]uuid.UUID // the bodies that fill the holes of a message, by seq
	Extra    []int64               // seqs in the pack of messages whose rows have their bytes, or that have no row
}

// AuditPack reads the pack that begins with message first, and fills its messages: *session.DamagedError is no error
// here, but a part of what it returns. ErrNotFound if there is no such pack any more.
func (s *Store) AuditPack(ctx context.Context, key session.Key, first int64) (p AuditedPack, err error) {
	var stored storedPack
	var rows []AuditedMessage
	err = s.inSnapshot(ctx, key.Tenant, func(tx pgx.Tx) error {
		stored, err = RowIn(ctx, tx, scanPack, `
			SELECT `+packColumns+`
			  FROM message_packs
			 WHERE tenant_id = $1 AND session_key = $2 AND first_seq = $3`, key.Tenant, key.Key, first)
		if err != nil {
			return err
		}
		rows, err = RowsIn(ctx, tx, pgx.RowToStructByName[AuditedMessage], auditMessagesSQL,
			key.Tenant, key.Key, stored.First-1, packMessages, 0, stored.Last)
		return err
	})
	if err != nil {
		return p, err
	}
	p.MessagesRef = session.MessagesRef{First: stored.First, Last: stored.Last}
	records, err := openAudited(&stored)
	if err != nil {
		p.Damaged = err
		return p, nil
	}
	p.Failed, p.Needs = map[int64]error{}, map[int64][]uuid.UUID{}
	return p, s.fillAudited(ctx, key, &p, rows, records)
}

func openAudited(p *storedPack) ([]pack.Record, error) {
	if sum := sha256.Sum256(p.Body); !bytes.Equal(sum[:], p.Digest) {
		return nil, errPackDigest
	}
	return pack.Decode(p.Body)
}

func (s *Store) fillAudited(
	ctx context.Context, key session.Key, p *AuditedPack, rows []AuditedMessage, records []pack.Record,
) error {
	stored, err := s.StoredBodies(ctx, key, records)
	if err != nil {
		return err
	}
	packed := map[int64]*AuditedMessage{}
	for i := range rows {
		if rows[i].Packed {
			packed[rows[i].Seq] = &rows[i]
			p.Failed[rows[i].Seq] = errNoPack
		}
	}
	for i := range records {
		r := &records[i]
		m := packed[r.Seq]
		if m == nil {
			p.Extra = append(p.Extra, r.Seq)
			continue
		}
		for _, h := range r.Holes {
			p.Needs[r.Seq] = append(p.Needs[r.Seq], h.Body)
		}
		body, err := r.Fill(stored.Of)
		if err != nil {
			p.Failed[r.Seq] = err
			continue
		}
		delete(p.Failed, r.Seq)
		m.Body, m.ViewBody = body, r.View
		m.Shape = r.Shape
		p.Messages = append(p.Messages, *m)
	}
	slices.Sort(p.Extra)
	return nil
}
