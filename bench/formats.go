package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// A conversation of megabyte is measured where none of longBytes was recorded.
const (
	longBytes = 500_000
	megabyte  = 1_000_000
)

// measureFormats compares how messages are read and written with encoding/json doing the same into the structs of an
// ordinary client, and the rendering of whole views with encoding/json reading and writing the same messages.
func measureFormats(ctx context.Context, b *bench) error {
	defer oneCore()()
	recorded, _, err := compacttest.Recorded(b.data)
	if err != nil {
		return err
	}
	for _, f := range session.Formats() {
		views, what := viewsOf(f, recorded)
		s, err := newSpoken(f, views)
		if err != nil {
			return err
		}
		if err := b.measureSpoken(ctx, fmt.Sprintf("formats, %s, %s", f, what), s); err != nil {
			return err
		}
	}
	return nil
}

// viewsOf are the long ones of the recorded conversations of a format, or one that is made up where there are none.
func viewsOf(f session.Format, recorded []compacttest.Conversation) (views [][]wire.Stored, what string) {
	for i := range recorded {
		if c := &recorded[i]; c.Format == f && sizeOf(c.Messages) >= longBytes {
			views = append(views, storedOf(f, c.Messages))
		}
	}
	if len(views) > 0 {
		return views, fmt.Sprintf("%d recorded", len(views))
	}
	return [][]wire.Stored{storedOf(f, madeUp(f, megabyte))}, "made up"
}

// madeUp is a conversation of about so many bytes.
func madeUp(f session.Format, size int) [][]byte {
	const leastMessage = 100 // bytes, on the average
	bodies := compacttest.Session(rand.New(rand.NewPCG(1, 1)), f, compacttest.Options{Messages: size / leastMessage})
	n := 0
	for total := 0; n < len(bodies) && total < size; n++ {
		total += len(bodies[n])
	}
	return bodies[:n]
}

func sizeOf(bodies [][]byte) (size int) {
	for _, body := range bodies {
		size += len(body)
	}
	return size
}

func storedOf(f session.Format, bodies [][]byte) []wire.Stored {
	view := make([]wire.Stored, len(bodies))
	for i, body := range bodies {
		view[i] = wire.Stored{Format: f, Body: body, Seq: int64(i + 1)}
	}
	return view
}

// spoken are views of one format, and what they say in the two models that are compared.
type spoken struct {
	format   session.Format
	views    [][]wire.Stored
	size     int
	neutrals [][]wire.Message // of each view
	structs  structs
}

func newSpoken(f session.Format, views [][]wire.Stored) (*spoken, error) {
	s := &spoken{format: f, views: views, neutrals: make([][]wire.Message, len(views))}
	var bodies [][]byte
	for i, view := range views {
		for j := range view {
			bodies = append(bodies, view[j].Body)
			for _, n := range wire.Decode(f, view[j].Body) {
				n.Origin = j
				s.neutrals[i] = append(s.neutrals[i], anew(n))
			}
		}
	}
	s.size = sizeOf(bodies)
	var err error
	s.structs, err = clients[f](bodies)
	return s, err
}

// anew makes a message one that has to be written again: its texts, calls and results. Thoughts, images and what Varve has
// no words for stand as they are in every view of their own format.
func anew(n wire.Message) wire.Message {
	n.Edited = true
	editPieces(n.Blocks)
	return n
}

func editPieces(pieces []wire.Block) {
	for i := range pieces {
		p := &pieces[i]
		p.Edited = p.Kind == wire.Text || p.Kind == wire.Call || p.Kind == wire.Result
		editPieces(p.Content)
	}
}

func (s *spoken) decode() error {
	for _, view := range s.views {
		for i := range view {
			wire.Decode(s.format, view[i].Body)
		}
	}
	return nil
}

func (s *spoken) encode() error {
	for _, list := range s.neutrals {
		wire.Encode(s.format, list)
	}
	return nil
}

func (s *spoken) render(target session.Format) func() error {
	return func() error {
		for _, view := range s.views {
			wire.Render(target, view, wire.Options{})
		}
		return nil
	}
}

// measureSpoken measures both directions, and what a reader may ask for: the views in each format.
func (b *bench) measureSpoken(ctx context.Context, name string, s *spoken) error {
	type side struct {
		name        string
		ours, floor func() error
	}
	sides := []side{{"decode", s.decode, s.structs.read}, {"encode", s.encode, s.structs.write}}
	for _, f := range session.Formats() {
		sides = append(sides, side{"rendered in " + string(f), s.render(f), s.structs.pass})
	}
	for _, side := range sides {
		name := name + ": " + side.name
		if !b.wants(name) {
			continue
		}
		b.progress("%s", name)
		ours, floor, err := b.alternate(ctx, side.ours, side.floor)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.add(row{Name: name, Value: perSecond(s.size, ours), Unit: "MB/s", Goal: atLeast(1.2)}.beside(perSecond(s.size, floor)))
	}
	return nil
}
