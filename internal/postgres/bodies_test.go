package postgres

import (
	"bytes"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

func TestTheBodyCacheKeepsToItsLimit(t *testing.T) {
	t.Parallel()
	c := newBodyCache(1000)
	at := func(i int) session.Address { return session.Address{ID: string(rune('a' + i))} }
	view := func(n, size int) *View {
		return &View{Version: Version{Key: uuid.UUID{1}, Checkpoint: n}, Body: bytes.Repeat([]byte{byte(n)}, size)}
	}
	for i := range 20 {
		c.put(at(i), view(i, 100))
	}
	if c.size > 1000 || c.lru.Len() != 10 {
		t.Errorf("%d bodies of %d bytes", c.lru.Len(), c.size)
	}
	if c.get(at(0)).body != nil || c.get(at(19)).n != 19 {
		t.Error("it does not hold those that were read last")
	}
	c.put(at(19), view(21, 60)) // a newer checkpoint takes the place of the older
	if held := c.get(at(19)); held.n != 21 || len(held.body) != 60 || c.size != 960 {
		t.Errorf("holds %d with %d bytes, %d in all", held.n, len(held.body), c.size)
	}
	c.put(at(1), view(1, 126))
	if c.get(at(1)).body != nil {
		t.Error("it holds a body that takes an eighth of its room")
	}
}
