package postgres_test

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

func TestANewDefaultReachesEverySession(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	const sessions = 303 // more than are made anew at a time
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
			WITH made AS (
			     INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document, patch, session_version)
			     SELECT $1, lpad(to_hex(i + 1), 32, '0')::uuid, 0.8, 0.9, '{}',
			            format('{"trim":{"hot_zone_min_tokens":%s}}', i)::json, 1
			       FROM generate_series(0, $2 - 1) AS i
			  RETURNING tenant_id, id)
			INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
			SELECT tenant_id, id, (('x' || right(id::text, 4))::bit(16)::int - 1)::text, 1000, id
			  FROM made`, tenant, sessions)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	newSession(t, store, tenant, "plain")
	mustChangeDefault(t, store, tenant, 7)
	check := func() {
		t.Helper()
		for id, own := range map[string]json.RawMessage{"plain": nil, "0": ownLayer(0), "99": ownLayer(99), "302": ownLayer(302)} {
			want := layered(defaultLayer(7), own)
			found, err := store.Session(t.Context(), session.Address{Tenant: tenant, ID: id})
			if err != nil || string(found.Policy.Document) != string(want.Document) || found.Policy.Trigger != want.Trigger || found.Policy.Version.Tenant != 2 {
				t.Errorf("session %s: %s, %+v, %v", id, found.Policy.Document, found.Policy, err)
			}
		}
	}
	check()
	if n, err := store.MergePolicies(t.Context(), tenant); err != nil || n != sessions {
		t.Errorf("%d policies were outdated, %v", n, err)
	}
	check()
	if n, err := store.MergePolicies(t.Context(), tenant); err != nil || n != 0 {
		t.Errorf("%d policies are outdated still, %v", n, err)
	}
}
