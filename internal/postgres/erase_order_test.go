package postgres_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// Whoever holds the row of a fork may write to its bodies while the session that it was forked from is erased: the
// erasure, which gives bodies to the fork, waits for that row before it locks one of them.
func TestAnErasureLocksForksBeforeTheirBodies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fork string // how the session fork hangs on the session s
		ids  [2]string
	}{
		"a fork":                         {`UPDATE sessions SET forked_from = $2 WHERE tenant_id = $1 AND id = $3`, [2]string{"s", "fork"}},
		"a fork that is locked before s": {`UPDATE sessions SET forked_from = $2 WHERE tenant_id = $1 AND id = $3`, [2]string{"s", "a fork"}},
		"one that shares its bodies":     {`SELECT $1::uuid, $2::text, $3::text`, [2]string{"s", "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, tenant := newStore(t)
			at, fork := newSession(t, store, tenant, c.ids[0]), newSession(t, store, tenant, c.ids[1])
			inTenant(t, store, tenant, func(tx pgx.Tx) error {
				batch := &pgx.Batch{}
				batch.Queue(c.fork, tenant, at.ID, fork.ID)
				batch.Queue(`
					INSERT INTO result_bodies (tenant_id, session_key, id, held_in)
					SELECT $1, s.key, $1, CASE WHEN s.id = $3 THEN (SELECT key FROM sessions WHERE tenant_id = $1 AND id = $2) END
					  FROM sessions s
					 WHERE s.tenant_id = $1`, tenant, at.ID, fork.ID)
				return tx.SendBatch(t.Context(), batch).Close()
			})
			done := make(chan error, 1)
			inTenant(t, store, tenant, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), `SELECT FROM sessions WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant, fork.ID)
				if err != nil {
					return err
				}
				go func() {
					_, err := store.Delete(t.Context(), at, nil)
					done <- err
				}()
				waits := make(chan error, 1)
				go func() { waits <- pgtest.UntilOneWaitsFor(t, store.Pool(), tx.Conn().PgConn().PID()) }()
				select {
				case err = <-waits:
				case err = <-done:
					done <- errors.Join(err, errors.New("the erasure did not wait for the fork's row"))
				}
				if err != nil {
					return err
				}
				_, err = tx.Exec(t.Context(), `
					SELECT
					  FROM result_bodies b
					  JOIN sessions s ON s.tenant_id = $1 AND s.key = b.session_key
					 WHERE b.tenant_id = $1 AND s.id = $2
					   FOR UPDATE OF b NOWAIT`, tenant, fork.ID)
				return err
			})
			if err := <-done; err != nil {
				t.Errorf("the session is not erased: %v", err)
			}
		})
	}
}

// Whoever holds a session's row, such as its erasure, gets the row of its archive: a worker that restores it waits for
// the first and does not hold the second.
func TestAWorkerLocksASessionBeforeItsArchive(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "s")
	mustAppend(t, store, batch(at, message("a", 1)))
	if _, _, err := tier.Archive(t.Context(), store, at, nil); err != nil {
		t.Fatal(err)
	}
	key := session.Key{Tenant: tenant}
	var id uuid.UUID
	inTenant(t, store, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT session_key, id FROM session_archives WHERE tenant_id = $1`, tenant).Scan(&key.Key, &id)
	})
	work, err := tier.Start(t.Context(), store, key, id, false)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	inTenant(t, store, tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT set_config('varve.frozen', 'all', true)`)
		if err == nil {
			_, err = tx.Exec(t.Context(), `SELECT FROM sessions WHERE tenant_id = $1 AND id = 's' FOR UPDATE`, tenant)
		}
		if err != nil {
			return err
		}
		go func() { done <- work.AddPart(t.Context(), 0, frozen.Part{Body: []byte("part")}) }()
		if err := pgtest.UntilOneWaitsFor(t, store.Pool(), tx.Conn().PgConn().PID()); err != nil {
			return err
		}
		_, err = tx.Exec(t.Context(), `SELECT FROM session_archives WHERE tenant_id = $1 FOR UPDATE NOWAIT`, tenant)
		return err
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// inTenant runs do in a transaction that sees a tenant, and fails the test with its error.
func inTenant(t *testing.T, store *postgres.Store, tenant [16]byte, do func(tx pgx.Tx) error) {
	t.Helper()
	if err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, do); err != nil {
		t.Fatal(err)
	}
}
