package tier

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/pack"
)

// Packer keeps one copy of each byte: it moves the old messages of a session into packs, in which results that have a
// body of their own leave holes.
type Packer struct {
	Store *postgres.Store
	CPU   *admit.Gate // processors; nil admits all
	Log   *slog.Logger
	Trace func(step string) // is called after packs_planned, packed, pack_committed
	Slice time.Duration     // how long Session works before others have their turn
}

// stalePlans bounds how often a pack is planned again because the session was rolled back meanwhile.
const stalePlans = 3

// Session packs the messages of a session that no kept checkpoint needs, one pack in a transaction. done is false if
// the time was up before the end; at the end its job is complete. A process that dies on the way leaves each message
// where it was or in a pack.
//
// Errors: ErrNotFound; ErrStale; *session.DamagedError if a pack that must be made again cannot be read.
func (p *Packer) Session(ctx context.Context, key session.Key, job int64) (done bool, err error) {
	end := time.Now().Add(p.Slice)
	for stale := 0; time.Now().Before(end); {
		plan, n, err := p.Store.PlanPack(ctx, key)
		damaged := errors.Is(err, session.ErrDamaged)
		if err != nil && !damaged {
			return false, err
		}
		if plan == nil || damaged { // damage is left alone, or the sweep would ask again and again
			done, endErr := p.Store.EndOffload(ctx, key, n, job)
			if done || err != nil || endErr != nil {
				return done, errors.Join(err, endErr)
			}
			continue
		}
		p.Trace("packs_planned")
		if err = p.commit(ctx, plan); errors.Is(err, session.ErrStale) && stale < stalePlans {
			stale++
			continue
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// commit makes the pack of a plan, verifies it, and puts it in the place of what it was made of.
func (p *Packer) commit(ctx context.Context, plan *postgres.PackPlan) error {
	packed, err := p.pack(ctx, plan)
	if err != nil {
		return err
	}
	p.Trace("packed")
	if err := p.Store.CommitPack(ctx, plan, packed); err != nil {
		return err
	}
	p.Trace("pack_committed")
	return nil
}

// pack encodes the messages of a plan, and decodes and fills them again. A message that does not come back byte for
// byte is packed whole.
func (p *Packer) pack(ctx context.Context, plan *postgres.PackPlan) ([]byte, error) {
	records := make([]pack.Record, len(plan.Messages))
	for i := range plan.Messages {
		m := &plan.Messages[i]
		records[i] = pack.Cut(m.Body, plan.Stored, plan.Sizes)
		records[i].Seq, records[i].Shape = m.Seq, m.Shape
		records[i].View = m.View
	}
	packed, err := p.encode(ctx, plan.Key.Tenant, records)
	if err != nil {
		return nil, err
	}
	wrong, err := p.wrong(ctx, plan, packed)
	if err != nil || len(wrong) == 0 {
		return packed, err
	}
	for _, i := range wrong {
		m := &plan.Messages[i]
		records[i] = pack.Record{Seq: m.Seq, Rest: m.Body, Shape: m.Shape, View: m.View}
	}
	if packed, err = p.encode(ctx, plan.Key.Tenant, records); err != nil {
		return nil, err
	}
	if wrong, err = p.wrong(ctx, plan, packed); err == nil && len(wrong) > 0 {
		err = errNotPacked
	}
	return packed, err
}

// encode makes a pack of records, with a share of the processors.
func (p *Packer) encode(ctx context.Context, tenant uuid.UUID, records []pack.Record) (packed []byte, err error) {
	bytes := int64(0)
	for i := range records {
		bytes += int64(len(records[i].Rest))
	}
	err = admit.Processors{Gate: p.CPU, Tenant: tenant}.Step(ctx, bytes, func(*admit.Step) error {
		packed = pack.Encode(records)
		return nil
	})
	return packed, err
}

var errNotPacked = errors.New("a pack does not give back what was put into it")

// wrong returns the places of the messages that a pack does not give back as they are.
func (p *Packer) wrong(ctx context.Context, plan *postgres.PackPlan, packed []byte) (wrong []int, err error) {
	records, err := pack.Decode(packed)
	if err != nil || len(records) != len(plan.Messages) {
		return nil, errors.Join(errNotPacked, err)
	}
	stored, err := p.Store.StoredBodies(ctx, plan.Key, records)
	if err != nil {
		return nil, err
	}
	for i := range records {
		m, r := &plan.Messages[i], &records[i]
		body, err := r.Fill(stored.Of)
		same := err == nil && r.Seq == m.Seq && r.Shape == m.Shape && (r.View == nil) == (m.View == nil) &&
			bytes.Equal(r.View, m.View) && bytes.Equal(body, m.Body)
		if !same {
			p.Log.ErrorContext(ctx, "a message cannot be filled again and stays whole", "tenant", plan.Tenant,
				"session_key", plan.Key.Key, "seq", m.Seq, "error", err)
			wrong = append(wrong, i)
		}
	}
	return wrong, nil
}
