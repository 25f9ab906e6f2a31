package jobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// newWorldOfPackedBatch returns a world with a session that has a batch with client ids and more, in packs, and all its
// messages.
func newWorldOfPackedBatch(t *testing.T) (w *world, first session.Append, bodies [][]byte) {
	t.Helper()
	w, _ = newWorldOfPacks(t)
	at := w.session("s")
	w.work(jobs.Config{KeepWhole: true})
	bodies = turns(60, 1500)
	first = jobstest.Batch(w, at, bodies[:20]...)
	for i := range first.Messages {
		first.Messages[i].ClientID = fmt.Sprint("c", i)
	}
	if _, _, err := w.store.Append(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.appendLog(at, session.OpenAIChat, bodies[20:])
	w.mustPack(at)
	return w, first, bodies
}

// TestWhatAnAppendLooksForInPacksIsFound sends a batch again, another with its ids, and an answer whose call is in
// a pack, to a store that caps answers.
func TestWhatAnAppendLooksForInPacksIsFound(t *testing.T) {
	t.Parallel()
	w, first, bodies := newWorldOfPackedBatch(t)
	at := first.Session
	if done, _, err := w.store.Append(t.Context(), first); err != nil || !done.Replayed || done.FirstSeq != 1 {
		t.Errorf("sent again: %+v, %v", done, err)
	}
	other := first
	other.Messages = slices.Clone(first.Messages)
	other.Messages[2].Body = bytes.Replace(other.Messages[2].Body, []byte("line"), []byte("lime"), 1)
	if _, _, err := w.store.Append(t.Context(), other); !errors.Is(err, session.ErrClientIDReused) {
		t.Errorf("another message with a known client_id: %v", err)
	}
	earlier := w.earlierOf(at, bodies)
	if len(earlier) != 2 || !bytes.Equal(earlier[0], bodies[31]) {
		t.Errorf("of call c15 are found %d messages: %.300q", len(earlier), earlier)
	}
	bodies = append(bodies, bodies[32])
	w.whole(at, bodies)
}

// earlierOf appends the answer to call c15 again, and returns the messages that are found for the function that caps it.
func (w *world) earlierOf(at session.Address, bodies [][]byte) (earlier [][]byte) {
	w.Helper()
	w.asOwner(`UPDATE policies SET document = document::jsonb || '{"cap": {"enabled": true, "at_insertion": true, "max_tokens": 1}}'`)
	inserts, err := queue.New(w.store.Pool())
	if err != nil {
		w.Fatal(err)
	}
	capping := postgres.New(w.store.Pool(), inserts, func(batch postgres.IngestBatch) ([]postgres.ViewMessage, []persist.NewResult, error) {
		earlier = batch.Earlier
		return nil, nil, nil
	})
	capping.UseResultStores(*w.store.ResultStores())
	a := jobstest.Batch(w, at, turn(15, 1500)[1])
	a.Messages[0].Answers = []string{"c15"}
	if _, _, err := capping.Append(w.Context(), a); err != nil {
		w.Fatal(err)
	}
	return earlier
}
