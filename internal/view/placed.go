package view

import (
	"context"
	"slices"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Placed is a unit of a stored view with the messages of the log that it stands for.
type Placed struct {
	First, Last int64 // of these messages
	Tokens      int64 // of the unit; 0 for a separate system prompt
	Pinned      bool  // no bounded view leaves it out
	Messages    []wire.Stored
}

// stretchMargin is how many messages are read on both sides of a stretch, for units that begin before it or end behind
// it. A call whose result is further away is shown without it.
const stretchMargin = 128

// FillStretch does what Fill does, but reads no more of a long tail than it takes to Place the units from a seq on,
// until they have a number of messages.
func (r *Request) FillStretch(
	ctx context.Context, store *postgres.Store, at session.Address, v *postgres.View, from int64, messages int,
) error {
	part := postgres.Stretch{First: from - stretchMargin, Messages: messages + 2*stretchMargin}
	size, err := store.BytesOf(ctx, at, v, part)
	if err == nil {
		err = r.Admit(memoryPerByte * (size + int64(v.Size)))
	}
	if err != nil {
		return err
	}
	err = r.heavy(size+int64(v.Size), func() error { return store.FillStretch(ctx, at, v, part) })
	if err != nil || !v.LeftOut {
		return err
	}
	return r.Fill(ctx, store, at, v) // another stands in for it
}

// Bytes returns the size of the unit's messages.
func (p *Placed) Bytes() (size int) {
	for i := range p.Messages {
		size += len(p.Messages[i].Body)
	}
	return size
}

// Translate writes the unit's messages in a format, "" for those that they have. Nothing is repaired: that takes the
// whole view. Its messages keep their seqs if they are as many as before.
func (p *Placed) Translate(ctx context.Context, target session.Format) error {
	isOther := func(m wire.Stored) bool { return m.Format != target }
	if target == "" || !slices.ContainsFunc(p.Messages, isOther) {
		return nil
	}
	made, err := wire.Translate(ctx, target, p.Messages)
	if err != nil {
		return err
	}
	before := p.Messages
	p.Messages = make([]wire.Stored, len(made))
	for i, m := range made {
		p.Messages[i] = m.Stored
		p.Messages[i].Seq = 0
		if len(made) == len(before) {
			p.Messages[i].Seq = before[i].Seq
		}
	}
	return nil
}

// Place returns the units of a stored view: those of its separate system prompt, of the checkpoint and of the tail. A
// message has a seq if it stands for that message of the log alone.
func Place(v *postgres.View) ([]Placed, error) {
	o, err := open(v)
	if err != nil {
		return nil, err
	}
	list := make([]Placed, 0, len(o.head)+len(o.units)+len(o.tail))
	for _, m := range o.head {
		list = append(list, Placed{First: m.Seq, Last: m.Seq, Pinned: true, Messages: []wire.Stored{m}})
	}
	for _, u := range o.allUnits() {
		messages, err := u.messages(v.Format)
		if err != nil {
			return nil, err
		}
		if u.Joined != nil {
			u.number(messages)
		}
		list = append(list, Placed{u.FirstSeq, u.last, u.Tokens, u.Pinned, messages})
	}
	return list, nil
}

// number gives the messages of a unit of a checkpoint their seqs: those of the log if these are as many, else none.
func (u *unit) number(messages []wire.Stored) {
	known := u.Messages > 0 && int64(len(messages)) == u.last-u.FirstSeq+1
	for i := range messages {
		messages[i].Seq = 0
		if known {
			messages[i].Seq = u.FirstSeq + int64(i)
		}
	}
}
