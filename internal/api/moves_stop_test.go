//go:build !race

package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/cells"
	"github.com/varve-dev/varve/internal/postgres"
)

// cellsOf are two databases between which tenants move.
type cellsOf struct {
	here, there *world
	from, to    *postgres.Store
}

func newCells(t *testing.T) *cellsOf {
	t.Helper()
	c := &cellsOf{here: newWorld(t)}
	c.here.files()
	c.there = c.here.cell()
	c.from, c.to = c.here.owned(), c.there.owned()
	return c
}

// filled makes a tenant with a session, and returns it in both cells.
func (c *cellsOf) filled(name string) (here, there *world) {
	a, b := *c.here, *c.there
	a.tenant, a.key = a.newTenant(name)
	b.tenant, b.key = a.tenant, a.key
	a.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"metadata":{"user":"u1"}}`)
	for n := range 3 {
		a.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", n, 2, 400)...))
	}
	return &a, &b
}

func (c *cellsOf) move(of *world, step func(name string)) *cells.Move {
	return &cells.Move{From: c.from, To: c.to, Tenant: of.tenant, Freeze: 2 * time.Second, Step: step}
}

// killed runs a move that ends where it stands at a step, as if its process were killed.
func (c *cellsOf) killed(of *world, at string) {
	reached := false
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		_, err = c.move(of, func(name string) {
			if name == at {
				reached = true
				runtime.Goexit()
			}
		}).Run(of.Context())
	}()
	if err := <-done; err != nil || !reached {
		of.Fatalf("the step %q was reached: %v, %v", at, reached, err)
	}
}

// serves requires that a tenant reads and writes, once writes are refused no more.
func (w *world) serves(what string) {
	w.Helper()
	w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "")
	w.until(what+" takes writes", func() bool {
		return w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", user("more"))).Code == http.StatusCreated
	})
}

// TestAMoveIsStoppedAnywhere kills the process that moves at each kind of step. The source serves; another run ends the
// move, or it is given up, and the destination has nothing.
func TestAMoveIsStoppedAnywhere(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	for _, step := range []string{
		"begun at the destination", "copied objects", "copied messages", "caught up 1", "frozen", "last of messages", "compared", "held", "arrived", "left",
	} {
		here, there := c.filled("killed at " + step)
		c.killed(here, step)
		served := step == "arrived" || step == "left"
		if !served && step != "held" {
			here.serves("the source, killed at " + step)
		}
		if _, err := c.move(here, nil).Run(t.Context()); err != nil {
			t.Fatalf("%s: the second run: %v", step, err)
		}
		there.serves("the destination")
		here.until("the source is left", func() bool { return here.ask("GET", "/v1/sessions", "").Code == http.StatusMisdirectedRequest })

		here, there = c.filled("given up at " + step)
		c.killed(here, step)
		err := c.move(here, nil).Abort(t.Context())
		if served {
			if !errors.Is(err, cells.ErrRefused) {
				t.Errorf("%s: the move was given up: %v", step, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: giving up: %v", step, err)
		}
		here.serves("the source, given up at " + step)
		there.hasNothing(step)
		if _, err := c.move(here, nil).Run(t.Context()); err != nil {
			t.Fatalf("%s: the run after giving up: %v", step, err)
		}
		there.serves("the destination after all")
	}
}

// TestAMoveIsKnownBeforeTheTenantIsServedElsewhere: reads ask only now and then whether any tenant moves.
func TestAMoveIsKnownBeforeTheTenantIsServedElsewhere(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	here, _ := c.filled("known")
	frozen := 0
	_, err := c.move(here, func(name string) {
		if name == "frozen" {
			frozen++
			if n := here.count(fmt.Sprintf(`SELECT count(*) FROM tenant_moves WHERE clock_timestamp() - began_at >= interval '%d ms'`,
				postgres.MovesNoticed.Milliseconds())); n != 1 {
				t.Error("the move was begun only just now")
			}
		}
	}).Run(t.Context())
	if err != nil || frozen != 1 {
		t.Errorf("%v; writes were refused %d times", err, frozen)
	}
}

// hasNothing requires that a database has no row of the world's tenant.
func (w *world) hasNothing(when string) {
	w.Helper()
	for _, table := range w.tablesWith(true) {
		if n := w.count(`SELECT count(*) FROM ` + table + ` WHERE tenant_id = '` + w.tenant.String() + `'`); n > 0 {
			w.Errorf("%s: %d rows in %s", when, n, table)
		}
	}
	if n := w.count(`SELECT count(*) FROM tenants t FULL JOIN tenant_moves m ON m.tenant = t.id
		WHERE '` + w.tenant.String() + `' IN (t.id, m.tenant)`); n > 0 {
		w.Errorf("%s: the tenant is known", when)
	}
}

// tablesWith returns the tables that have a tenant, or those that have none.
func (w *world) tablesWith(tenant bool) []string {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(w.Context())
	rows, _ := conn.Query(w.Context(), `
		SELECT c.relname::text
		  FROM pg_class c
		 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		   AND $1 = EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
		 ORDER BY 1`, tenant)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// TestEveryTableOfATenantMoves holds the tables that a move copies to the catalogue. Whoever makes a table without a
// tenant says here that it is not a tenant's, or has package cells move it.
func TestEveryTableOfATenantMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	moved, err := cells.Tables(t.Context(), w.owned().Pool())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(moved, " "), strings.Join(w.tablesWith(true), " "); got != want {
		t.Errorf("a move copies %s\nnot %s", got, want)
	}
	// tenants, and river_job have code of their own in package cells.
	const others = "campaigns installation operator_keys river_job river_leader river_migration river_notification river_queue rounds " +
		"schema_fingerprints schema_migrations tenant_moves tenants workers"
	if got := strings.Join(w.tablesWith(false), " "); got != others {
		t.Errorf("the tables without a tenant are %s\nnot %s", got, others)
	}
}

// TestAMoveComparesWhatItCopied changes a copy, deletes a row of it and adds one. The move refuses, the source serves,
// and the next run has the table copied anew.
func TestAMoveComparesWhatItCopied(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	for n, change := range []string{
		`UPDATE messages SET removed_at = now(), removed_seq = 9 WHERE seq = 2 AND tenant_id = '%s'`,
		`DELETE FROM messages WHERE seq = 2 AND tenant_id = '%s'`,
		`INSERT INTO session_metadata SELECT tenant_id, session_key, pair + 1, created_at FROM session_metadata WHERE tenant_id = '%s'`,
	} {
		for _, step := range []string{"caught up 1", "frozen"} {
			here, there := c.filled(fmt.Sprint("changed ", n, step))
			_, err := c.move(here, func(name string) {
				if name == step {
					there.exec(`SET session_replication_role = replica; ` + fmt.Sprintf(change, there.tenant))
				}
			}).Run(t.Context())
			if !errors.Is(err, cells.ErrDiffers) {
				t.Errorf("%s at %q: %v", change, step, err)
			}
			here.serves("the source")
			if _, err := c.move(here, nil).Run(t.Context()); err != nil {
				t.Errorf("the run after: %v", err)
			}
			there.serves("the destination")
		}
	}
}

// TestWhatAMoveRefuses asks for moves that cannot be.
func TestWhatAMoveRefuses(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	here, there := c.filled("refused")
	refused := func(why string, m *cells.Move) {
		t.Helper()
		_, err := m.Run(t.Context())
		if !errors.Is(err, cells.ErrRefused) || !strings.Contains(err.Error(), why) {
			t.Errorf("it is not refused because of %q: %v", why, err)
		}
		here.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("more")))
	}
	same := c.move(here, nil)
	same.To = same.From
	refused("the same database", same)
	bound := c.move(here, nil)
	bound.To = there.admin
	refused("row-level security binds", bound)

	here.must(http.StatusAccepted, "POST", "/v1/erasures", `{"metadata":{"user_id":"nobody"}}`)
	refused("there is the erasure", c.move(here, nil))
	here.exec(`DELETE FROM erasures`)

	other := *c.there
	other.newTenant("refused")
	refused("there is a tenant with this id or name", c.move(here, nil))
	other.exec(`UPDATE tenants SET name = 'another'; UPDATE schema_migrations SET version = version - 1`)
	refused("run varve migrate", c.move(here, nil))
}

// TestATenantIsForgottenAndMovesBack moves a tenant there and back, and deletes what it left.
func TestATenantIsForgottenAndMovesBack(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	here, there := c.filled("forgotten")
	want := here.must(http.StatusOK, "GET", "/v1/sessions/s/messages?limit=100", "").Body.String()
	if _, err := c.move(here, nil).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := &cells.Move{From: c.to, To: c.from, Tenant: here.tenant, Freeze: time.Minute}
	if _, err := back.Run(t.Context()); !errors.Is(err, cells.ErrRefused) || !strings.Contains(err.Error(), "--forget") {
		t.Errorf("it moves back to what it left: %v", err)
	}
	there.serves("the destination")
	if err := cells.Forget(t.Context(), c.to, here.tenant); err == nil {
		t.Error("a tenant is forgotten that is there")
	}
	if err := cells.Forget(t.Context(), c.from, here.tenant); err != nil {
		t.Fatal(err)
	}
	if n := here.count(`SELECT count(*) FROM messages WHERE tenant_id = '` + here.tenant.String() + `'`); n > 0 {
		t.Errorf("%d messages are left", n)
	}
	if _, err := back.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	here.until("it is served again", func() bool { return here.ask("GET", "/v1/sessions", "").Code == http.StatusOK })
	if got := here.must(http.StatusOK, "GET", "/v1/sessions/s/messages?limit=100", "").Body.String(); !strings.HasPrefix(got, want[:len(want)-100]) {
		t.Errorf("%s\nwant the beginning %s", got, want)
	}
}
