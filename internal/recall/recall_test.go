package recall

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestAFloodOfReadsNeedsBoundedMemory(t *testing.T) {
	t.Parallel()
	c := &Counter{timer: true}
	at := session.Address{Tenant: uuid.New(), ID: "s"}
	for i := range 3 * maxPending {
		c.Read(at, fmt.Sprintf("m%d", i+1), session.ViaREST)
		c.Read(at, "m1", session.ViaREST)
	}
	if n := c.pending[what{at.Tenant, "s", "m1", session.ViaREST}].reads; len(c.pending) != maxPending || n != 3*maxPending+1 {
		t.Errorf("%d counts are kept, the first is %d", len(c.pending), n)
	}
}

// TestWhatCannotBeWrittenIsWrittenLater breaks the database between a read and its count.
func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), pgtest.Admin(pgtest.New(t)), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store := postgres.New(pool, nil, nil)
	tenant, err := store.CreateTenant(t.Context(), "acme", policy.StoredDefault())
	if err != nil {
		t.Fatal(err)
	}
	at := session.Address{Tenant: tenant.ID, ID: "s"}
	if _, _, err := store.Create(t.Context(), at, session.Change{}, nil); err != nil {
		t.Fatal(err)
	}
	c := &Counter{Store: store, Log: slog.New(slog.DiscardHandler), timer: true}
	for i := range 2*maxStatement + 1 {
		c.Read(at, fmt.Sprintf("m%d", i+1), session.ViaMCP)
	}
	c.Read(session.Address{Tenant: tenant.ID, ID: "gone"}, "m1", session.ViaMCP)
	closed, err := postgres.Open(t.Context(), pool.Config().ConnString(), 1)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	c.Store = postgres.New(closed, nil, nil)
	c.Flush(t.Context())
	if len(c.pending) != 2*maxStatement+2 {
		t.Errorf("%d counts wait", len(c.pending))
	}
	c.Read(at, "m1", session.ViaMCP)
	c.Store = store
	c.Flush(t.Context())
	found, err := store.ReadsOf(t.Context(), at, []string{"m1", "m2", "m9999"})
	if err != nil || len(found) != 2 || found[0].Reads+found[1].Reads != 3 || len(c.pending) != 0 {
		t.Errorf("%+v, %v, %d wait", found, err, len(c.pending))
	}
}
