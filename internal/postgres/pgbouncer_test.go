package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// TestPgBouncerInTransactionMode does with the real one what other tests do with a pooler of their own.
func TestPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	bouncer := pgtest.NewPgBouncer(t, "transaction")
	admin, dsn := newStoreAt(t)
	if _, err := postgres.Open(t.Context(), bouncer.Through(pgtest.API(dsn)), 4); !errors.Is(err, postgres.ErrPooler) || !strings.Contains(err.Error(), "cache_describe") {
		t.Errorf("without the setting: %v", err)
	}
	if _, err := postgres.Open(t.Context(), bouncer.Through(dsn, describing...), 4); !errors.Is(err, postgres.ErrLogin) {
		t.Errorf("a superuser: %v", err)
	}
	if err := postgres.Migrate(t.Context(), bouncer.Through(dsn, describing...)); !errors.Is(err, postgres.ErrPooler) {
		t.Errorf("migrate: %v", err)
	}
	store := openStore(t, bouncer.Through(pgtest.API(dsn), describing...))
	appendsAndReads(t, store, newTenant(t, admin, "a"), newTenant(t, admin, "b"))
	ends, err := store.ListenForEnds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ends.Close(t.Context())
	if !ends.Deaf() {
		t.Error("it relies on notifications, which do not arrive")
	}
}

// TestPgBouncerInSessionMode needs no setting: a client keeps its connection.
func TestPgBouncerInSessionMode(t *testing.T) {
	t.Parallel()
	bouncer := pgtest.NewPgBouncer(t, "session")
	admin, dsn := newStoreAt(t)
	appendsAndReads(t, openStore(t, bouncer.Through(pgtest.API(dsn))), newTenant(t, admin, "a"), newTenant(t, admin, "b"))
}

// appendsAndReads appends for several tenants at once and reads what each has.
func appendsAndReads(t *testing.T, store *postgres.Store, tenants ...uuid.UUID) {
	t.Helper()
	const writers, appends = 4, 25
	var load sync.WaitGroup
	for _, tenant := range tenants {
		at := newSession(t, store, tenant, "s")
		for range writers {
			load.Go(func() {
				for range appends {
					if _, _, err := store.Append(t.Context(), batch(at, message("x", 10))); err != nil {
						t.Error(err)
						return
					}
					if v, err := store.View(t.Context(), at, postgres.Version{}); err != nil || v.LastSeq < 1 {
						t.Errorf("a view of %d: %v", v.LastSeq, err)
					}
				}
			})
		}
		defer func() {
			found, messages, err := store.Messages(t.Context(), at, postgres.Range{Limit: 1000})
			if err != nil || found.LastSeq != writers*appends || len(messages) != writers*appends {
				t.Errorf("the session has %d messages, last seq %d: %v", len(messages), found.LastSeq, err)
			}
		}()
	}
	load.Wait()
}
