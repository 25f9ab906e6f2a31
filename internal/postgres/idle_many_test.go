// Not under the race detector: it reads too many bytes.

package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// TestTenThousandSleepingSessionsCostOneJobEach has its sessions from one statement; each crosses by an append of its
// own.
func TestTenThousandSleepingSessionsCostOneJobEach(t *testing.T) {
	t.Parallel()
	sessions := 10_000
	if testing.Short() {
		sessions = 500
	}
	first, tenant := idle(t)
	store, counter := counted(t, first)
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
			INSERT INTO sessions (tenant_id, key, id, window_tokens, context_tokens, policy_id)
			SELECT $1, gen_random_uuid(), 's' || n, 1000, 450, $2
			  FROM generate_series(1, $3::int) n`, [16]byte(tenant), [16]byte(uuid.Nil), sessions)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	appendToAll := func() {
		var group sync.WaitGroup
		for worker := range 4 {
			group.Go(func() {
				for n := worker + 1; n <= sessions; n += 4 {
					at := session.Address{Tenant: tenant, ID: fmt.Sprint("s", n)}
					mustAppend(t, store, batch(at, message("x", 60)))
				}
			})
		}
		group.Wait()
	}
	appendToAll()
	type rows struct{ Jobs, Live, Later, Runs int }
	count := func() (r rows) {
		t.Helper()
		err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `
				SELECT count(*), count(*) FILTER (WHERE finalized_at IS NULL), count(*) FILTER (WHERE state = 'scheduled' AND scheduled_at > created_at + interval '1 minute'),
				       (SELECT count(*) FROM runs)
				  FROM river_job
				 WHERE kind <> 'index'`).Scan(&r.Jobs, &r.Live, &r.Later, &r.Runs)
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := rows{Jobs: sessions, Live: sessions, Later: sessions, Runs: sessions}
	if got := count(); got != want {
		t.Fatalf("rows %+v, want %+v", got, want)
	}
	before := counter.n.Load()
	appendToAll()
	if each := float64(counter.n.Load()-before) / float64(sessions); each > 2.01 { // set_config and the append
		t.Errorf("an append that follows costs %.2f statements", each)
	}
	if n, err := sweep(t, store); err != nil || n != 0 {
		t.Errorf("the sweep inserted %d, %v", n, err)
	}
	if got := count(); got != want {
		t.Errorf("rows %+v after more appends and a sweep, want %+v", got, want)
	}
}
