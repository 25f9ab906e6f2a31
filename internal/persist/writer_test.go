package persist_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// newBody inserts a body to be written.
func newBody(t testing.TB, store *postgres.Store, key session.Key, kind persist.Kind) (id uuid.UUID) {
	t.Helper()
	err := postgres.InTenant(t.Context(), store.Pool(), key.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) (err error) {
		id, err = persist.NewBody(t.Context(), tx, key, kind)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func writer(t testing.TB, store *postgres.Store, key session.Key, id uuid.UUID) *postgres.BodyWriter {
	t.Helper()
	w, err := store.WriteBody(t.Context(), key, id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func noMore(pgx.Tx, uuid.UUID, persist.Body) error { return nil }

// write writes a body in pieces, each by a writer of its own that saves, and one that dies without.
func write(t testing.TB, store *postgres.Store, key session.Key, kind persist.Kind, body []byte) uuid.UUID {
	t.Helper()
	id := newBody(t, store, key, kind)
	for done := 0; done < len(body); {
		for _, save := range []bool{false, true} {
			w := writer(t, store, key, id)
			if w.Offset() != int64(done) {
				t.Fatalf("the writer begins at %d, want %d", w.Offset(), done)
			}
			n := min(rand.IntN(900_000)+1, len(body)-done)
			if err := w.Write(t.Context(), body[done:done+n]); err != nil {
				t.Fatal(err)
			}
			if !save {
				continue
			}
			if err := w.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
			done += n
		}
	}
	made, whole, err := writer(t, store, key, id).Complete(t.Context(), noMore)
	if err != nil || whole.SHA256 != sha256.Sum256(body) || whole.Bytes != int64(len(body)) {
		t.Fatalf("%+v, %v", whole, err)
	}
	return made
}

// text returns lines that compress as logs do.
func text(size int) []byte {
	var out bytes.Buffer
	for n := 0; out.Len() < size; n++ {
		fmt.Fprintf(&out, "%d: GET /v1/things/%d took %d ms\n", n, rand.IntN(1e9), rand.IntN(100))
	}
	return out.Bytes()[:size]
}

func mustHave(t testing.TB, store *postgres.Store, key session.Key, id uuid.UUID, want []byte) {
	t.Helper()
	c, err := store.OpenBody(t.Context(), key, id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.All(t.Context())
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes came back, %d were written; %v", len(got), len(want), err)
	}
}

func TestABodyIsWrittenAsItArrives(t *testing.T) {
	t.Parallel()
	store, _, key := newResults(t)
	for _, size := range []int{0, 1, 200_000, 3 << 20} {
		body := text(size)
		mustHave(t, store, key, write(t, store, key, persist.Postgres, body), body)
	}
}

func TestABodyThatIsThereIsNotKeptTwice(t *testing.T) {
	t.Parallel()
	store, at, key := newResults(t)
	body := text(400_000)
	first := write(t, store, key, persist.Postgres, body)
	if second := write(t, store, key, persist.Postgres, body); second != first {
		t.Errorf("the second is %s, the first %s", second, first)
	}
	put(t, store, key, result(1, 0, body))
	var bodies, chunks int
	err := postgres.InTenant(t.Context(), store.Pool(), at.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM result_bodies), (SELECT count(*) FROM result_chunks)`).Scan(&bodies, &chunks)
	})
	if err != nil || bodies != 1 || chunks != 4 {
		t.Errorf("%d bodies, %d chunks, %v", bodies, chunks, err)
	}
}

func TestOneOfTwoWritersGoesOn(t *testing.T) {
	t.Parallel()
	store, _, key := newResults(t)
	id := newBody(t, store, key, persist.Postgres)
	first, second := writer(t, store, key, id), writer(t, store, key, id)
	if err := errors.Join(first.Write(t.Context(), []byte("a")), first.Save(t.Context()), second.Write(t.Context(), []byte("b"))); err != nil {
		t.Fatal(err)
	}
	if err := second.Save(t.Context()); !errors.Is(err, session.ErrWritten) {
		t.Errorf("the second writer saves: %v", err)
	}
	if _, _, err := second.Complete(t.Context(), noMore); !errors.Is(err, session.ErrWritten) {
		t.Errorf("the second writer completes: %v", err)
	}
	if _, err := store.OpenBody(t.Context(), key, id); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a body that is not complete is opened: %v", err)
	}
	if _, _, err := first.Complete(t.Context(), noMore); err != nil {
		t.Fatal(err)
	}
	mustHave(t, store, key, id, []byte("a"))
	if _, err := store.WriteBody(t.Context(), key, id); !errors.Is(err, session.ErrWritten) {
		t.Errorf("a complete body is written: %v", err)
	}
}
