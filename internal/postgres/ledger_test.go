package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/usage"
)

// used returns what the ledger has of all days of a tenant.
func used(t testing.TB, store *postgres.Store, tenant uuid.UUID) (sum session.Use) {
	t.Helper()
	days, err := usage.ByDay(t.Context(), store, tenant, time.Now().AddDate(0, 0, -2), time.Now().AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range days {
		sum.Add(d.Use)
	}
	return sum
}

// TestTheLedgerEqualsARecount appends, removes, erases and reads at once, while several processes count, of which some
// are killed with what they have not written. After the next round through all sessions, everything that was stored is
// counted once.
func TestTheLedgerEqualsARecount(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	const sessions, appends = 8, 40
	var stored, read session.Use
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range sessions {
		at := newSession(t, store, tenant, fmt.Sprint("s", i))
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 16))
			for range appends {
				messages := texts("abc", "defg")[:1+random.IntN(2)]
				mustAppend(t, store, batch(at, messages...))
				mu.Lock()
				for _, m := range messages {
					stored.Add(session.Use{Messages: 1, Bytes: int64(len(m.Body)), Tokens: int64(m.Tokens)})
				}
				mu.Unlock()
				if random.IntN(3) > 0 { // else the process is killed
					views := random.Int64N(3)
					mustCount(t, store, tenant, session.Reading{Session: at.ID, Views: views, TokensServed: 7 * views})
					mu.Lock()
					read.Views += views
					read.TokensServed += 7 * views
					mu.Unlock()
				}
			}
			if i%4 == 1 {
				mustRemove(t, store, at, 1)
			}
			if i%4 == 2 {
				if _, err := store.Delete(t.Context(), at, nil); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() { // another process
			for range appends {
				mustCount(t, store, tenant, session.Reading{Session: at.ID})
			}
		})
	}
	wg.Wait()
	if _, err := store.AuditNext(t.Context(), 1000, 1000); err != nil {
		t.Fatal(err)
	}
	got := used(t, store, tenant)
	if got.Messages != stored.Messages || got.Bytes != stored.Bytes || got.Tokens != stored.Tokens {
		t.Errorf("the ledger has %+v, want %+v", got, stored)
	}
	if got.Views != read.Views || got.TokensServed != read.TokensServed || got.TokensSaved <= 0 {
		t.Errorf("the ledger has %+v, want %+v", got, read)
	}
	page, err := usage.BySession(t.Context(), store, tenant, session.Page{Limit: 100})
	if err != nil || len(page) != sessions*3/4 {
		t.Errorf("%d sessions, %v", len(page), err)
	}
}

func mustCount(t testing.TB, store *postgres.Store, tenant uuid.UUID, read ...session.Reading) {
	t.Helper()
	if err := store.CountUsage(t.Context(), tenant, read); err != nil {
		t.Error(err)
	}
}

// TestAMessageCountsOnItsDay counts a message of yesterday evening on that day, and one that an import brought from last
// year today.
func TestAMessageCountsOnItsDay(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "acme")
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b", "c")...))
	owner, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	_, err = owner.Exec(t.Context(), `
		UPDATE messages
		   SET created_at = now() - CASE seq WHEN 1 THEN interval '23 hours' ELSE interval '1 year' END
		 WHERE seq <= 2`)
	if err != nil {
		t.Fatal(err)
	}
	mustCount(t, store, tenant, session.Reading{Session: "s"})
	days, err := usage.ByDay(t.Context(), store, tenant, time.Now().AddDate(-2, 0, 0), time.Now().AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	byDay := map[string]int64{}
	for _, d := range days {
		byDay[d.Day.Format(time.DateOnly)] = d.Messages
	}
	now := time.Now().UTC()
	yesterday, today := now.Add(-23*time.Hour).Format(time.DateOnly), now.Format(time.DateOnly)
	want := map[string]int64{today: 2}
	want[yesterday]++
	if len(byDay) != len(want) || byDay[today] != want[today] || byDay[yesterday] != want[yesterday] {
		t.Errorf("messages by day %v, want %v", byDay, want)
	}
}

func TestWhatIsErasedIsCountedBefore(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, texts("a", "b")...))
	if _, err := store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	if got := used(t, store, tenant); got.Messages != 2 || got.Tokens != 20 {
		t.Errorf("the ledger has %+v", got)
	}
}

// TestReadsOfAnErasedSessionCountForTheirDay writes reads that a process had counted before the session was erased.
func TestReadsOfAnErasedSessionCountForTheirDay(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	newSession(t, store, tenant, "kept")
	mustCount(t, store, tenant, session.Reading{Session: "gone", Views: 2, TokensServed: 9, ReadBacks: 1},
		session.Reading{Session: "kept", Views: 1})
	want := session.Use{Views: 3, TokensServed: 9, ReadBacks: 1}
	if got := used(t, store, tenant); got != want {
		t.Errorf("the ledger has %+v, want %+v", got, want)
	}
}
