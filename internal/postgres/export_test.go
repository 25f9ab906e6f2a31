package postgres_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Whether the tables were analyzed or not, the last page of an export must cost what the first one does.
func TestEveryPageOfAnExportReadsAboutAsManyPagesOfTheDatabase(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	err := execInTenant(t, store, tenant, `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, window_source, policy_id, created_at)
		SELECT $1, gen_random_uuid(), 's' || i, 1000, 'default', $2, '2026-01-01'::timestamptz + i * interval '1 second'
		  FROM generate_series(1, 20000) i`, [16]byte(tenant), [16]byte(uuid.Nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			analyze(t, store)
		}
		page, seen := session.Page{Limit: 5000}, 0
		for {
			found, err := store.ExportSessions(t.Context(), tenant, session.Search{}, page)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				break
			}
			for _, e := range found {
				if seen++; e.ID != fmt.Sprint("s", seen) {
					t.Fatalf("session %d is %s", seen, e.ID)
				}
			}
			last := found[len(found)-1]
			page.Time, page.ID = last.CreatedAt, last.Key.Key
		}
		if seen != 20000 {
			t.Errorf("%d sessions", seen)
		}
		args := []any{[16]byte(tenant), page.Time, [16]byte(page.ID), 100}
		if n := pages(t, store, tenant, postgres.ExportSQL, args...); n > 50 {
			t.Errorf("analyzed %v: a page at the end reads %d pages of the database", analyzed, n)
		}
	}
}
