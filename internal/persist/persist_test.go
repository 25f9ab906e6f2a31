package persist_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) {
	if work := os.Getenv(victimWork); work != "" {
		os.Exit(victim(work, os.Getenv(victimStep), os.Getenv(victimPlaces)))
	}
	os.Exit(pgtest.Main(m))
}

// newResults returns a store with a session in it.
func newResults(t *testing.T) (*postgres.Store, session.Address, session.Key) {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Admin(pgtest.NewWarm(t)), 8)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	store := postgres.New(pool, inserts, nil)
	tenant, err := store.CreateTenant(t.Context(), "acme", session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	at := session.Address{Tenant: tenant.ID, ID: "s"}
	made, _, err := store.Create(t.Context(), at, session.Change{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store, at, session.Key{Tenant: tenant.ID, Key: made.Session.Key}
}

func result(seq int64, part int, body []byte) persist.NewResult {
	sum := sha256.Sum256(body)
	return persist.NewResult{Body: body, Result: persist.Result{
		Ref: session.NewResultRef(seq, part, sum).String(), Seq: seq, Part: part, Tool: "Read", CallID: "c", Category: "rereadable",
		MediaType: "text/plain; charset=utf-8", Bytes: int64(len(body)), Lines: 1, Tokens: 2, SHA256: sum[:],
	}}
}

func put(t testing.TB, store *postgres.Store, key session.Key, results ...persist.NewResult) {
	t.Helper()
	if _, err := store.PutResults(t.Context(), key, results); err != nil {
		t.Fatal(err)
	}
}

func TestAResultComesBackByteForByte(t *testing.T) {
	t.Parallel()
	store, at, key := newResults(t)
	random := make([]byte, 70_000)
	for i := range random {
		random[i] = byte(rand.IntN(256))
	}
	for i, body := range [][]byte{
		{}, []byte("x"), []byte("a\x00b"), []byte("\xff\xfe no UTF-8"), []byte(strings.Repeat("compressible ", 10_000)), random, bytes.Repeat([]byte("big"), 5<<20),
	} {
		want := result(int64(i+1), 0, body)
		put(t, store, key, want)
		ref, err := session.ParseResultRef(want.Ref)
		if err != nil {
			t.Fatal(err)
		}
		got, gotBody, err := store.Result(t.Context(), at, ref)
		if err != nil || !bytes.Equal(gotBody, body) {
			t.Errorf("result %d of %d bytes: %d bytes came back, %v", i, len(body), len(gotBody), err)
		}
		if diff := cmp.Diff(want.Result, got, cmpopts.IgnoreFields(persist.Result{}, "CreatedAt")); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPuttingAgainAndAtOnceChangesNothing(t *testing.T) {
	t.Parallel()
	store, at, key := newResults(t)
	var results []persist.NewResult
	for i := range 50 {
		results = append(results, result(int64(i+1), i%3, fmt.Appendf(nil, "result %d", i/2))) // each body twice
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := store.PutResults(t.Context(), key, results); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	found, err := store.Results(t.Context(), at, persist.Filter{}, persist.Place{}, 100)
	if err != nil || len(found) != len(results) {
		t.Errorf("%d results, want %d; %v", len(found), len(results), err)
	}
}

// TestAPlaceMayHaveTwoResults takes messages in another format than their session's: their parts had other numbers
// once. What is persisted under a ref is found by it, whatever else has its place.
func TestAPlaceMayHaveTwoResults(t *testing.T) {
	t.Parallel()
	store, at, key := newResults(t)
	for _, body := range []string{"as it was numbered", "as it is numbered"} {
		want := result(3, 2, []byte(body))
		put(t, store, key, want)
		ref, err := session.ParseResultRef(want.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := store.Result(t.Context(), at, ref); err != nil || string(got) != body {
			t.Errorf("%s is %q: %v", want.Ref, got, err)
		}
	}
}

func TestAListIsReadInPages(t *testing.T) {
	t.Parallel()
	store, at, key := newResults(t)
	want := []string{}
	for seq := range int64(5) {
		for part := range 3 {
			r := result(seq+1, part, fmt.Appendf(nil, "%d %d", seq, part))
			put(t, store, key, r)
			want = append(want, r.Ref)
		}
	}
	got, after := []string{}, persist.Place{}
	for {
		page, err := store.Results(t.Context(), at, persist.Filter{}, after, 4)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			got = append(got, r.Ref)
		}
		after = persist.Place{Seq: page[len(page)-1].Seq, Part: page[len(page)-1].Part}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMiscopiedRefMisses(t *testing.T) {
	t.Parallel()
	store, at, key := newResults(t)
	r := result(17, 1, []byte("content"))
	put(t, store, key, r)
	for at := range r.Ref {
		for _, digit := range "0123456789abcdefr.-" {
			wrong := r.Ref[:at] + string(digit) + r.Ref[at+1:]
			ref, err := session.ParseResultRef(wrong)
			if wrong == r.Ref || err != nil {
				continue
			}
			if _, _, err := store.Result(t.Context(), session.Address{Tenant: key.Tenant, ID: "s"}, ref); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s: %v", wrong, err)
			}
		}
	}
	if near, err := store.NearestResults(t.Context(), at, 18, 5); err != nil || len(near) != 1 || near[0] != r.Ref {
		t.Errorf("the nearest are %v, %v, want %s", near, err, r.Ref)
	}
}

func TestResultsOfNoSession(t *testing.T) {
	t.Parallel()
	store, at, key := newResults(t)
	at.ID = "none"
	if _, err := store.Results(t.Context(), at, persist.Filter{}, persist.Place{}, 10); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("list: %v", err)
	}
	key.Key[0] ^= 1
	if _, err := store.PutResults(t.Context(), key, []persist.NewResult{result(1, 0, []byte("x"))}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("put: %v", err)
	}
}
