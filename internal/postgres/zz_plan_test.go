package postgres_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/varve-dev/varve/internal/postgres"
)

func TestZZ(t *testing.T) {
	store, tenant := newStore(t)
	if err := execInTenant(t, store, tenant, `INSERT INTO sessions (tenant_id,key,id,window_tokens,policy_id,window_source) SELECT $1, gen_random_uuid(), 's'||i, 1000, '00000000-0000-0000-0000-000000000000','default' FROM generate_series(1,20000) i`, [16]byte(tenant)); err != nil {
		t.Fatal(err)
	}
	for _, an := range []bool{false, true} {
		if an {
			analyze(t, store)
		}
		postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			rows, err := tx.Query(t.Context(), `EXPLAIN (ANALYZE, BUFFERS) SELECT s.id FROM sessions s JOIN policies p ON p.tenant_id = s.tenant_id AND p.id = s.policy_id
		 WHERE s.tenant_id = $1
		   AND (s.created_at, s.key) > (CASE WHEN $3 = '00000000-0000-0000-0000-000000000000'::uuid THEN '-infinity' ELSE $2::timestamptz END, $3)
		 ORDER BY s.created_at, s.key
		 LIMIT $4`, [16]byte(tenant), "2030-01-01T00:00:00Z", [16]byte(uuid.New()), 100)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			for _, l := range lines {
				t.Log(l)
			}
			return err
		})
	}
}
