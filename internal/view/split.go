package view

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

// Split returns the messages that are joined by commas. It checks that they are JSON.
func Split(joined []byte) ([][]byte, error) {
	array := inArray(joined)
	if err := rawjson.Check(array, rawjson.Limits{}); err != nil {
		return nil, err
	}
	return elements(array), nil
}

func inArray(joined []byte) []byte {
	array := make([]byte, 0, len(joined)+2)
	array = append(array, '[')
	array = append(array, joined...)
	return append(array, ']')
}

func elements(array []byte) (bodies [][]byte) {
	for span := range rawjson.Elements(array, 0) {
		bodies = append(bodies, span.Of(array))
	}
	return bodies
}

// Unit is a unit of a checkpoint.
type Unit struct {
	compact.Unit
	Joined []byte // its messages, joined by commas
}

// Units splits a checkpoint's body into its units. A body without units is one, whose tokens are not known.
func Units(body []byte, stored []compact.Unit) ([]Unit, error) {
	switch {
	case len(body) == 0:
		return nil, nil
	case len(stored) == 0:
		return []Unit{{Unit: compact.Unit{Messages: 1}, Joined: body}}, nil
	case stored[0].Offset != 0:
		return nil, errors.New("its units do not begin where its body does")
	}
	list := make([]Unit, len(stored))
	for i, u := range stored {
		end := len(body)
		if i+1 < len(stored) {
			end = stored[i+1].Offset - 1 // without the comma
		}
		if u.Offset < 0 || u.Offset > end || end > len(body) {
			return nil, fmt.Errorf("its unit %d lies outside of its body", i)
		}
		list[i] = Unit{Unit: u, Joined: body[u.Offset:end]}
	}
	return list, nil
}

// StoredUnits splits the body of a checkpoint as the store has it: compressed, size bytes long, its units as JSON. Its
// callers know the checkpoint, and make the error a *session.DamagedError.
func StoredUnits(compressed []byte, size int, units []byte) ([]Unit, error) {
	if size == 0 {
		return nil, nil
	}
	var stored []compact.Unit
	if err := json.Unmarshal(units, &stored); err != nil {
		return nil, err
	}
	body, err := zframe.Decompress(nil, compressed, size)
	if err != nil {
		return nil, err
	}
	return Units(body, stored)
}

// opened is a view message by message.
type opened struct {
	stored *postgres.View
	head   []wire.Stored // the separate system prompt
	units  []unit        // of the checkpoint
	tail   []wire.Stored
	tokens []int64 // of the messages of the tail, if the view was read with them

	removed []int64 // the messages of the tail behind removed ones: see behindRemoved

	limit     int64        // the tokens that the view may have
	size      int64        // tokens of the view without what its provider has compacted
	compacted *wire.Repair // tells of that; nil for nothing
	summary   int64        // the seq of the message of the tail that stands for it; 0 for none
}

func open(v *postgres.View) (o opened, err error) {
	o = opened{stored: v, size: v.Tokens}
	separate := v.Separate()
	if o.head, _, err = logged(v.System, v.SystemShapes, 0, separate); err != nil {
		return o, fmt.Errorf("the system prompt: %w", err)
	}
	if v.Loose != nil {
		o.tail, o.tokens, err = loose(v.Loose)
	} else {
		o.tail, o.tokens, err = logged(v.Tail, v.TailShapes, max(v.Through, separate), v.LastSeq)
	}
	if err != nil {
		return o, fmt.Errorf("the messages after checkpoint %d: %w", v.Checkpoint, err)
	}
	o.removed = behindRemoved(v, o.tail)
	list, err := StoredUnits(v.Body, v.Size, v.Units)
	if err != nil {
		return o, session.DamagedCheckpoint(v.Checkpoint, err)
	}
	for _, u := range list {
		if u.Tokens == 0 {
			u.Tokens = v.Tokens // of a body without units
		}
		o.units = append(o.units, unit{Unit: u})
	}
	return o, nil
}

// logged splits messages of the log, which were checked when they were appended, and returns their tokens, too. They
// are those behind the seq after through the seq through. If their shapes do not name their seqs, no seq is left out.
func logged(joined, shapes []byte, after, through int64) (messages []wire.Stored, tokens []int64, err error) {
	if len(shapes) == 0 {
		return nil, nil, nil
	}
	list, err := wire.ParseShapes(shapes)
	if err != nil {
		return nil, nil, err
	}
	bodies := elements(inArray(joined))
	if len(bodies) != len(list) || list[0].Seq == 0 && int64(len(list)) != through-after {
		return nil, nil, fmt.Errorf("%d messages with %d shapes after seq %d through %d",
			len(bodies), len(list), after, through)
	}
	for i, m := range list {
		seq := cmp.Or(m.Seq, after+1+int64(i))
		messages = append(messages, wire.Stored{Format: m.Format, Body: bodies[i], Seq: seq, Flags: m.Flags})
		tokens = append(tokens, m.Tokens)
	}
	return messages, tokens, nil
}

// loose does what logged does for messages that were read one by one.
func loose(list []postgres.TailMessage) (messages []wire.Stored, tokens []int64, err error) {
	messages, tokens = make([]wire.Stored, len(list)), make([]int64, len(list))
	for i := range list {
		m := &list[i]
		shapes, err := wire.ParseShapes([]byte(m.Shape))
		if err != nil || len(shapes) != 1 {
			return nil, nil, fmt.Errorf("message %d has %d shapes: %w", m.Seq, len(shapes), err)
		}
		messages[i] = wire.Stored{Format: shapes[0].Format, Body: m.Body, Seq: m.Seq, Flags: shapes[0].Flags}
		tokens[i] = m.Tokens
	}
	return messages, tokens, nil
}

// messages returns the messages of the head, of the units and of the tail.
func (o *opened) messages() ([]wire.Stored, error) {
	all := make([]wire.Stored, 0, len(o.head)+len(o.tail))
	all = append(all, o.head...)
	for i := range o.units {
		messages, err := o.units[i].messages(o.stored.Format)
		if err != nil {
			return nil, session.DamagedCheckpoint(o.stored.Checkpoint, err)
		}
		all = append(all, messages...)
	}
	return append(all, o.tail...), nil
}

// unit is a part of a view that is kept or left out as a whole: a unit of the checkpoint or of the tail.
type unit struct {
	Unit
	last int64         // seq of its messages in the log; it is known of a view that is bounded
	tail []wire.Stored // the messages, if it is of the tail
	tied bool          // it answers a call of the checkpoint
}

// messages returns the messages of a unit. Those of a checkpoint are of the session's format.
func (u *unit) messages(own session.Format) ([]wire.Stored, error) {
	if u.Joined == nil {
		return u.tail, nil
	}
	bodies, err := Split(u.Joined)
	if err != nil {
		return nil, err
	}
	list := make([]wire.Stored, len(bodies))
	for i, body := range bodies {
		list[i] = wire.Stored{Format: own, Body: body, Seq: u.FirstSeq}
	}
	return list, nil
}

// Bodies returns the messages of a stored view as a reader gets them who asks for it as it is.
func Bodies(v *postgres.View) ([][]byte, error) {
	opened, err := open(v)
	if err != nil {
		return nil, err
	}
	messages, err := opened.messages()
	bodies := make([][]byte, len(messages))
	for i := range messages {
		bodies[i] = messages[i].Body
	}
	return bodies, err
}
