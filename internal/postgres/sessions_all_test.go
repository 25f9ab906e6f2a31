package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// allSessionsOf returns the ids of all pages of a list, and how many pages there were.
func allSessionsOf(t *testing.T, store *postgres.Store, list session.SessionOrder, tenant *uuid.UUID, limit int) (string, int) {
	t.Helper()
	var ids []string
	var after *session.SessionPlace
	for pages := 1; ; pages++ {
		found, beyond, err := store.AllSessions(t.Context(), list, tenant, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			ids = append(ids, s.Session)
			after = new(s.Place)
		}
		if beyond != nil {
			after = beyond
		} else if len(found) < limit {
			return strings.Join(ids, " "), pages
		}
	}
}

// TestTheSessionsOfAllTenantsAreListed makes sessions of two tenants, of which each list has some, as the ledger counts them.
func TestTheSessionsOfAllTenantsAreListed(t *testing.T) {
	t.Parallel()
	store, acme := newStore(t)
	other := newTenant(t, store, "other")
	for i, s := range []struct {
		tenant  uuid.UUID
		id      string
		message session.NewMessage
	}{
		{acme, "small", message("a", 10)}, {other, "large", message("b", 500)}, {acme, "over", message("c", 3000)},
		{other, "wide", message(strings.Repeat("w", 9000), 20)}, {other, "over too", message("d", 2000)},
	} {
		at := newSession(t, store, s.tenant, s.id)
		mustAppend(t, store, batch(at, s.message))
		mustCount(t, store, s.tenant, session.Reading{Session: s.id})
		if i%2 == 1 {
			err := execInTenant(t, store, s.tenant, `
				INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, failures, error, since, next_try_at, quarantined_at)
				SELECT $1, key, gen_random_uuid(), 1, 4, 'secret', '2026-01-01'::timestamptz - $3 * interval '1 day', now(),
				       CASE WHEN id = 'wide' THEN now() END
				  FROM sessions
				 WHERE tenant_id = $1 AND id = $2`, s.tenant, s.id, i)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	newSession(t, store, acme, "silent")
	// Two were never read, the others some days ago.
	for id, ago := range map[string]string{"small": "3 days", "over": "2 days", "wide": "30 minutes"} {
		for _, tenant := range []uuid.UUID{acme, other} {
			err := execInTenant(t, store, tenant, `
				UPDATE usage_sessions u
				   SET read_at = now() - $3::interval
				  FROM sessions s
				 WHERE u.tenant_id = $1 AND s.tenant_id = $1 AND s.key = u.session_key AND s.id = $2`, tenant, id, ago)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	mustCount(t, store, other, session.Reading{Session: "wide", Views: 1}, session.Reading{Session: "large"})
	all := map[session.SessionOrder]string{
		session.ByTokens: "over over too large wide small", session.ByIdle: "small large over wide over too",
		session.ByUnread:     "large over too small over wide",
		session.ByOverWindow: "over over too", session.ByFailing: "wide large", session.ByQuarantined: "wide",
	}
	for list, want := range all {
		for _, limit := range []int{1, 2, 100} {
			if got, _ := allSessionsOf(t, store, list, nil, limit); got != want {
				t.Errorf("%s by %d is %q, not %q", list, limit, got, want)
			}
		}
	}
	if got, _ := allSessionsOf(t, store, session.ByBytes, nil, 3); !strings.HasPrefix(got, "wide ") {
		t.Errorf("by bytes it is %q", got)
	}
	if got, _ := allSessionsOf(t, store, session.ByTokens, &acme, 2); got != "over small" {
		t.Errorf("of one tenant it is %q", got)
	}
	found, _, err := store.AllSessions(t.Context(), session.ByFailing, nil, nil, 1)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	s := found[0]
	if s.Tenant != other || s.TenantName != "other" || s.Messages != 1 || s.Tokens != 20 || s.Failures != 4 ||
		s.OverWindow || s.WindowTokens != 1000 || s.QuarantinedAt == nil || s.LastAppendAt == nil {
		t.Errorf("%+v", s)
	}

	// The latest read is noted, the list is in the order of days.
	found, _, err = store.AllSessions(t.Context(), session.ByUnread, &other, nil, 10)
	if err != nil || len(found) != 3 || found[2].Session != "wide" || found[0].LastReadAt != nil {
		t.Fatal(found, err)
	}
	if age := time.Since(*found[2].LastReadAt); age > 29*time.Minute {
		t.Errorf("it was last read %v ago", age)
	}

	// A window that was made larger is seen by the audit; so is one that the ledger of before did not know.
	window := 10_000
	_, _, err = store.Update(t.Context(), session.Address{Tenant: acme, ID: "over"}, session.Change{WindowTokens: &window}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := execInTenant(t, store, other, `UPDATE usage_sessions SET over_window = false WHERE tenant_id = $1`, other); err != nil {
		t.Fatal(err)
	}
	if _, err := store.AuditNext(t.Context(), 100, 100); err != nil {
		t.Fatal(err)
	}
	if got, _ := allSessionsOf(t, store, session.ByOverWindow, nil, 5); got != "over too" {
		t.Errorf("after the audit, %q are over their window", got)
	}
}

// checkAllSessions fails the test if statements read more than this number of rows of a node.
func checkAllSessions(t *testing.T, name string, ran []explained, limit int) {
	t.Helper()
	pages, took := 0, 0.0
	for i := range ran {
		pages += ran[i].pages()
		took += ran[i].Took
		ran[i].Plan.each(func(n *planNode) {
			if int(n.Rows*n.Loops) > limit || n.removed() > limit || n.Type == "Sort" && n.Plans[0].Rows > float64(limit) {
				t.Errorf("%s: %s %s has %.0f rows:\n%s", name, n.Type, n.Relation, n.Rows*n.Loops, ran[i].short())
			}
		})
	}
	t.Logf("%-40s %6d pages %8.1f ms in %d statements", name, pages, took, len(ran))
	if !slices.ContainsFunc(ran, func(e explained) bool { return strings.Contains(e.SQL, "LIMIT") }) {
		t.Errorf("%s: no list was read", name)
	}
}
