package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// written is what a Counter has written: the views by session.
type written struct {
	views   map[string]int64
	failing error
}

func (w *written) counter() *Counter {
	w.views = map[string]int64{}
	write := func(_ context.Context, _ uuid.UUID, read []session.Reading) error {
		if len(read) > maxStatement {
			return fmt.Errorf("%d sessions in one statement", len(read))
		}
		for _, r := range read {
			if w.failing == nil {
				w.views[r.Session] += r.Views
			}
		}
		return w.failing
	}
	return newCounter(write, slog.New(slog.DiscardHandler), time.Hour)
}

func at(tenant byte, i int) session.Address {
	return session.Address{Tenant: uuid.UUID{tenant}, ID: fmt.Sprint(i)}
}

func TestAFloodOfSessionsNeedsBoundedMemory(t *testing.T) {
	t.Parallel()
	var w written
	c := w.counter()
	for i := range maxPending + 100 {
		c.Served(at(1, i), 10)
		c.Served(at(1, 0), 10)
	}
	c.Flush(t.Context())
	if len(w.views) != maxPending || w.views["0"] != maxPending+101 || len(c.pending) != 0 {
		t.Errorf("%d sessions are written, the first with %d; %d wait", len(w.views), w.views["0"], len(c.pending))
	}
}

func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	w := written{failing: errors.New("away")}
	c := w.counter()
	for i := range 25 {
		c.Served(at(byte(i%2), i), 10)
	}
	c.Flush(t.Context())
	if len(c.pending) != 25 || len(w.views) != 0 {
		t.Errorf("%d sessions wait, %v is written", len(c.pending), w.views)
	}
	c.Served(at(0, 0), 10)
	w.failing = nil
	c.Flush(t.Context())
	if len(c.pending) != 0 || len(w.views) != 25 || w.views["0"] != 2 {
		t.Errorf("%d sessions wait, %v is written", len(c.pending), w.views)
	}
}

func TestTheFirstCountSetsATimerAndSoDoesTheNextOneAfterIt(t *testing.T) {
	t.Parallel()
	wrote := make(chan int64)
	write := func(_ context.Context, _ uuid.UUID, read []session.Reading) error {
		wrote <- read[0].TokensServed
		return nil
	}
	c := newCounter(write, slog.New(slog.DiscardHandler), time.Millisecond)
	for i := range int64(3) {
		c.Served(at(1, 0), i)
		if got := <-wrote; got != i {
			t.Errorf("%d is written, want %d", got, i)
		}
	}
}

// TestWhatBeginsToChangeIsWrittenFirst has a session that changes, one that is read, and one that has changed before.
func TestWhatBeginsToChangeIsWrittenFirst(t *testing.T) {
	t.Parallel()
	var w written
	c := w.counter()
	c.Changed(at(1, 1))
	c.Flush(t.Context())
	c.Changed(at(1, 1))
	c.Served(at(1, 2), 10)
	c.Changed(at(1, 3))
	w.views = map[string]int64{}
	c.flushNew(t.Context())
	if _, written := w.views["3"]; !written || len(w.views) != 1 || len(c.pending) != 2 {
		t.Errorf("written are %v, %d wait", w.views, len(c.pending))
	}
	if got := c.take(true, time.Now().Add(2*knownFor)); len(got) != 1 || got[at(1, 1)] == nil {
		t.Errorf("later it takes %v", got)
	}
}
