package postgres

import (
	"bytes"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/zframe"
)

func TestTheBodyCacheKeepsToItsLimit(t *testing.T) {
	t.Parallel()
	c := newBodyCache(1000, (*heldBody).size)
	at := func(i int) session.Address { return session.Address{ID: string(rune('a' + i))} }
	put := func(i, n, size int) {
		body := bytes.Repeat([]byte{byte(n)}, size)
		c.put(at(i), size, func() heldBody { return heldBody{key: uuid.UUID{1}, n: n, body: body} })
	}
	for i := range 20 {
		put(i, i, 100)
	}
	if c.held > 1000 || c.lru.Len() != 10 {
		t.Errorf("%d bodies of %d bytes", c.lru.Len(), c.held)
	}
	if c.get(at(0)).body != nil || c.get(at(19)).n != 19 {
		t.Error("it does not hold those that were read last")
	}
	put(19, 21, 60) // a newer checkpoint takes the place of the older
	if held := c.get(at(19)); held.n != 21 || len(held.body) != 60 || c.held != 960 {
		t.Errorf("holds %d with %d bytes, %d in all", held.n, len(held.body), c.held)
	}
	put(1, 1, 126)
	if c.get(at(1)).body != nil {
		t.Error("it holds a body that takes an eighth of its room")
	}
}

func atOnce(_ int64, work func() error) error { return work() }

// TestAPlainBodyIsThatOfItsCheckpoint: also where bodies have the same size, as two checkpoints of a session may, and two
// sessions of one id one after another.
func TestAPlainBodyIsThatOfItsCheckpoint(t *testing.T) {
	t.Parallel()
	s := &Store{shared: &shared{plain: newBodyCache(1000, (*plainBody).size)}}
	at := session.Address{ID: "s"}
	for i, of := range []struct {
		key byte
		n   int
	}{{1, 1}, {1, 2}, {2, 2}, {2, 1}} {
		want := []byte{'a', 'b', byte('0' + i)}
		var v View
		v.Key, v.Checkpoint, v.Body, v.Size = uuid.UUID{of.key}, of.n, zframe.Compress(want), len(want)
		for range 2 { // the second time from memory
			if got, err := s.PlainBody(at, &v, atOnce); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s %d: %s, %v, want %s", v.Key, v.Checkpoint, got, err, want)
			}
		}
	}
}
