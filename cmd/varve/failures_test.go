package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// quarantined makes a tenant with two sessions, of which "poison" is quarantined.
func quarantined(t *testing.T, dsn string) {
	t.Helper()
	pool, err := postgres.Open(t.Context(), pgtest.Admin(dsn), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	store := postgres.New(pool, inserts, nil)
	tenant, err := store.CreateTenant(t.Context(), "acme", policy.StoredDefault())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"poison", "well"} {
		if _, _, err := store.Create(t.Context(), session.Address{Tenant: tenant.ID, ID: id}, session.Change{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	owner, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	_, err = owner.Exec(t.Context(), `
		INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, deaths, error, next_try_at, failed_at, quarantined_at)
		SELECT tenant_id, key, key, 0, 5, 'the worker died', now() + interval '1 hour', now() - interval '1 minute', now()
		  FROM sessions
		 WHERE id = 'poison'`)
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsQuarantinedIsListedAndTriedAgainByHand(t *testing.T) {
	t.Parallel()
	a := administrator{t, pgtest.New(t)}
	quarantined(t, a.url)
	out, _ := a.run("failures", "--json")
	var listed []failing
	if err := json.Unmarshal([]byte(out), &listed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(listed) != 1 || listed[0].Tenant != "acme" || listed[0].Session != "poison" || listed[0].Deaths != 5 ||
		listed[0].QuarantinedAt == nil || listed[0].Error != "the worker died" {
		t.Errorf("listed %s", out)
	}
	if out, _ := a.run("failures"); !strings.Contains(out, "poison") || strings.Contains(out, "well") {
		t.Errorf("listed for people:\n%s", out)
	}
	var run session.Run
	out, _ = a.run("failures", "retry", "--tenant=acme", "poison")
	if err := json.Unmarshal([]byte(out), &run); err != nil || run.State != session.RunQueued || run.Cause != "manual" {
		t.Errorf("tried again: %s, %v", out, err)
	}
	cmd := program(t.Context(), "failures", "retry", "--tenant=acme", "well", "--database-url", a.url)
	said, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() == 0 || !strings.Contains(string(said), "not found") {
		t.Errorf("a session that does not fail: %v, %s", err, said)
	}
}
