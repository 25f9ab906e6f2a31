package imports

import (
	"errors"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

func newStore(t *testing.T) (s store, tenant uuid.UUID, dsn string) {
	t.Helper()
	dsn = pgtest.New(t)
	pool, err := postgres.Open(t.Context(), pgtest.Admin(dsn), 5)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	s = store{postgres.New(pool, inserts, nil)}
	made, err := s.CreateTenant(t.Context(), "acme", session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return s, made.ID, dsn
}

// An import that waits for a session, or for its id, holds none that comes after it in the order of the ids: two
// imports with the same sessions in other orders never wait for each other.
func TestAnImportLocksItsSessionsInOrder(t *testing.T) {
	t.Parallel()
	const lock = `SELECT FROM sessions WHERE tenant_id = $1 AND id = $2 FOR UPDATE NOWAIT`
	const create = `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
		VALUES ($1, gen_random_uuid(), $2, 1000, '00000000-0000-0000-0000-000000000000')`
	for name, c := range map[string]struct {
		there        []string // sessions that exist
		first, other string   // what another transaction does with the first session and, while the import waits, the other
	}{
		"all exist":         {[]string{"one", "two"}, lock, lock},
		"none exists":       {nil, create, create},
		"the first exists":  {[]string{"one"}, lock, create},
		"the second exists": {[]string{"two"}, create, lock},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, tenant, _ := newStore(t)
			for _, id := range c.there {
				if _, _, err := s.Create(t.Context(), session.Address{Tenant: tenant, ID: id}, session.Change{}, nil); err != nil {
					t.Fatal(err)
				}
			}
			begun, err := s.begin(t.Context(), tenant, "", "", "")
			if err != nil {
				t.Fatal(err)
			}
			brought := func(id string) entry {
				m := message{Session: id, Format: session.OpenAIChat}
				m.NewMessage = session.NewMessage{Body: []byte(`{"role":"user","content":"hello"}`), Role: "user", Tokens: 1, StartsUnit: true, ItemID: "rs_" + id}
				return entry{Message: &m, Outcome: protocol.LineChecked}
			}
			done := make(chan error, 1)
			err = postgres.InTenant(t.Context(), s.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), c.first, tenant, "one"); err != nil {
					return err
				}
				go func() {
					done <- s.storeLines(t.Context(), tenant, &begun, []entry{brought("two"), brought("one")})
				}()
				if err := pgtest.UntilOneWaitsFor(t, s.Pool(), tx.Conn().PgConn().PID()); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), c.other, tenant, "two")
				return err
			})
			if err != nil {
				t.Errorf("the import waits for one session and holds the other: %v", err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if begun.Messages != 2 || begun.Sessions != 0 && len(c.there) == 2 {
				t.Errorf("imported %+v", begun)
			}
			found, err := s.WithItemID(t.Context(), session.Address{Tenant: tenant, ID: "two"}, "rs_two")
			if err != nil || len(found) != 1 {
				t.Errorf("the item of the second session: %+v, %v", found, err)
			}
		})
	}
}

// TestLinesAreReadFromWhereTheyBegin reads pages of a long import's lines, which must not cost what all of them do.
func TestLinesAreReadFromWhereTheyBegin(t *testing.T) {
	t.Parallel()
	s, tenant, dsn := newStore(t)
	i, err := s.begin(t.Context(), tenant, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	const n = 100_000
	err = s.InTenant(t.Context(), tenant, func(tx pgx.Tx) error {
		return postgres.Exec(t.Context(), tx, `
			INSERT INTO import_lines (tenant_id, import_id, n, lines, line, outcome, detail)
			SELECT $1, $2, k, 1, k, CASE WHEN k % 10 = 0 THEN 'rejected' ELSE 'stored' END, ''
			  FROM generate_series(1, $3::int) k`, tenant, i.ID, n)
	})
	if err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	if _, err := owner.Exec(t.Context(), `ANALYZE import_lines`); err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`"Shared Hit Blocks": (\d+)`)
	for _, r := range []selected{{From: 1}, {From: n / 2}, {From: n - 50}, {From: n - 500, Outcome: protocol.LineRejected}} {
		r.Limit = 50
		err := s.InTenant(t.Context(), tenant, func(tx pgx.Tx) error {
			found, err := readLines(t.Context(), tx, tenant, i.ID, r)
			if err == nil && (len(found) != 50 || found[0].N < r.From || found[0].N > r.From+10) {
				t.Errorf("%+v: %d lines", r, len(found))
			}
			sql, args := linesOf(tenant, i.ID, r)
			plan, planErr := postgres.RowIn(t.Context(), tx, pgx.RowTo[string], `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+sql, args)
			if read, _ := strconv.Atoi(append(blocks.FindStringSubmatch(plan), "", "")[1]); read == 0 || read > 150 {
				t.Errorf("%+v reads %d pages: %s", r, read, plan)
			}
			return errors.Join(err, planErr)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
