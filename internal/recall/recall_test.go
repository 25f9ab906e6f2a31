package recall

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestReadsThatCannotBeWrittenAreWrittenLater breaks the database between a read and its count.
func TestReadsThatCannotBeWrittenAreWrittenLater(t *testing.T) {
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
	c := New(store, slog.New(slog.DiscardHandler))
	c.reads.After = time.Hour
	for i := range 2*maxStatement + 1 {
		c.Read(at, fmt.Sprintf("m%d", i+1), session.ViaMCP)
	}
	c.Read(session.Address{Tenant: tenant.ID, ID: "gone"}, "m1", session.ViaMCP)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	c.Flush(cancelled)
	if n := c.reads.Waiting(); n != 2*maxStatement+2 {
		t.Errorf("%d counts wait", n)
	}
	c.Read(at, "m1", session.ViaMCP)
	c.Flush(t.Context())
	found, err := store.ReadsOf(t.Context(), at, []string{"m1", "m2", "m9999"})
	if err != nil || len(found) != 2 || found[0].Reads+found[1].Reads != 3 || c.reads.Waiting() != 0 {
		t.Errorf("%+v, %v, %d wait", found, err, c.reads.Waiting())
	}
}
