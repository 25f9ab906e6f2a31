//go:build !race

package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/cells"
	"github.com/varve-dev/varve/internal/persist"
	objects "github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// withFiles has a store keep results in a directory, or in PostgreSQL for none.
func withFiles(t *testing.T, store *postgres.Store, files objects.Store) {
	t.Helper()
	stores := persist.Stores{}
	if files != nil {
		stores = persist.Stores{New: persist.File, Outside: map[persist.Kind]objects.Store{persist.File: files}}
	}
	store.UseResultStores(stores)
}

// TestADeletionNamesTheRightStore forgets a tenant, and gives a move up, with the result store of another database and
// with none. Both are refused, and nothing is deleted.
func TestADeletionNamesTheRightStore(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	gone, _ := c.filled("gone")
	if _, err := c.move(gone, nil).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped, there := c.filled("stopped")
	c.killed(stopped, "caught up 1")
	mine, theirs := c.from.ResultStores().Outside[persist.File], c.to.ResultStores().Outside[persist.File]
	others, err := objects.OpenDir(t.TempDir())
	if err == nil {
		err = others.Put(t.Context(), "varve-database", []byte(uuid.NewString()))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct {
		files objects.Store
		why   string
	}{{others, "belongs to another database"}, {nil, `the result store "file", which is not named`}} {
		withFiles(t, c.from, wrong.files)
		err := cells.Forget(t.Context(), c.from, gone.tenant)
		if err == nil || !strings.Contains(err.Error(), wrong.why) {
			t.Errorf("forgetting is not refused because of %q: %v", wrong.why, err)
		}
		withFiles(t, c.from, mine)
	}
	withFiles(t, c.to, nil)
	if err := c.move(stopped, nil).Abort(t.Context()); !errors.Is(err, cells.ErrRefused) {
		t.Errorf("giving up: %v", err)
	}
	withFiles(t, c.to, theirs)
	for what, n := range map[string]int{
		"at the source": gone.count(`SELECT count(*) FROM messages WHERE tenant_id = '` + gone.tenant.String() + `'`),
		"there":         there.count(`SELECT count(*) FROM messages WHERE tenant_id = '` + there.tenant.String() + `'`),
	} {
		if n == 0 {
			t.Errorf("%s, messages were deleted", what)
		}
	}
	if err := cells.Forget(t.Context(), c.from, gone.tenant); err != nil {
		t.Error(err)
	}
	if err := c.move(stopped, nil).Abort(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestATenantThatIsDeletedMeanwhileStays deletes the tenant while it is copied.
func TestATenantThatIsDeletedMeanwhileStays(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	here, there := c.filled("deleted")
	_, err := c.move(here, func(name string) {
		if name == "caught up 1" {
			here.exec(`UPDATE tenants SET suspended = 'all', erasure_id = gen_random_uuid()
				WHERE id = '` + here.tenant.String() + `'`)
		}
	}).Run(t.Context())
	if !errors.Is(err, cells.ErrRefused) || !strings.Contains(err.Error(), "it is being deleted") {
		t.Errorf("a tenant that is being deleted moves: %v", err)
	}
	if here.count(`SELECT count(*) FROM tenant_moves WHERE state = 'copying' AND frozen_until IS NULL`) != 1 {
		t.Error("the source does not take writes")
	}
	if there.count(`SELECT count(*) FROM tenants WHERE id = '`+there.tenant.String()+`'`) != 0 {
		t.Error("the destination serves it")
	}
}

// open begins a transaction that stays open, as somebody in psql does.
func (w *world) open() {
	w.Helper()
	conn, err := pgconn.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(w.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tenants`).ReadAll(); err != nil {
		w.Fatal(err)
	}
}

// TestAnOldTransactionIsAwaitedBeforeWritesAreRefused has a transaction stay open: from before, for which writes are
// not refused at all, and from the moment on when they are, for which they are not refused for an hour.
func TestAnOldTransactionIsAwaitedBeforeWritesAreRefused(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"caught up 1", "frozen"} {
		c := newCells(t)
		here, _ := c.filled("open")
		frozen := false
		m := c.move(here, func(name string) {
			if name == at {
				here.open()
			}
			frozen = frozen || name == "frozen"
		})
		if at == "frozen" {
			m.Freeze = time.Hour
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.Run(ctx)
		if !errors.Is(err, cells.ErrRefused) || !strings.Contains(err.Error(), "the backend") {
			t.Errorf("at %q: %v", at, err)
		}
		if frozen != (at == "frozen") {
			t.Errorf("at %q: writes were refused: %v", at, frozen)
		}
		here.serves("the source")
	}
}

// TestAMoveRefusesAPooler moves from and to a database through a pooler.
func TestAMoveRefusesAPooler(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	here, _ := c.filled("pooled")
	pooler := pgtest.NewPooler(t)
	through := func(w *world) *postgres.Store {
		other := *w
		other.dsn = pooler.Through(w.dsn, "default_query_exec_mode", "cache_describe")
		return other.owned()
	}
	from, to := c.move(here, nil), c.move(here, nil)
	from.From, to.To = through(c.here), through(c.there)
	for _, m := range []*cells.Move{from, to} {
		if _, err := m.Run(t.Context()); !errors.Is(err, postgres.ErrPooler) {
			t.Errorf("through a pooler: %v", err)
		}
	}
}

// TestOnlyALiveKeyLearnsWhereTheTenantIs asks the source of a tenant that has moved with keys and tokens that live, that
// have ended, and that never were. Each is one transaction.
func TestOnlyALiveKeyLearnsWhereTheTenantIs(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	here, _ := c.filled("asked")
	_, key, err := session.ParseKey(here.key)
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := session.ParseToken(here.newToken("s", `{}`).Text)
	if err != nil {
		t.Fatal(err)
	}
	_, invented, _ := session.ParseKey(session.NewAPIKey(here.tenant))
	if _, err := c.move(here, nil).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := func(when string, digest [32]byte, ask func([32]byte) error, want bool) {
		t.Helper()
		before := here.store.Pool().Stat().AcquireCount()
		err := ask(digest)
		var away *session.MovedError
		if errors.As(err, &away) != want || !want && !errors.Is(err, session.ErrUnauthorized) {
			t.Errorf("%s: %v", when, err)
		}
		if n := here.store.Pool().Stat().AcquireCount() - before; n != 1 {
			t.Errorf("%s: it took %d connections", when, n)
		}
	}
	byKey := func(digest [32]byte) error {
		_, err := here.store.CallerByKey(t.Context(), here.tenant, digest)
		return err
	}
	byToken := func(digest [32]byte) error {
		_, err := here.store.CallerByToken(t.Context(), here.tenant, digest)
		return err
	}
	told("a key", key, byKey, true)
	told("a token", token, byToken, true)
	told("an invented key", invented, byKey, false)
	told("an invented token", invented, byToken, false)
	here.exec(`UPDATE session_tokens SET expires_at = now()`)
	told("an expired token", token, byToken, false)
	here.exec(`UPDATE session_tokens SET expires_at = now() + interval '1 hour'; UPDATE api_keys SET expires_at = now()`)
	told("an expired key", key, byKey, false)
	here.exec(`UPDATE api_keys SET expires_at = NULL, revoked_at = now()`)
	told("a revoked key", key, byKey, false)
	told("a token of a revoked key", token, byToken, false)
}

// TestAResumedMoveDeletesWhatTheSourceErased leaves an object at the destination that the source names no more.
func TestAResumedMoveDeletesWhatTheSourceErased(t *testing.T) {
	t.Parallel()
	c := newCells(t)
	here, _ := c.filled("erased")
	c.killed(here, "caught up 1")
	files := c.to.ResultStores().Outside[persist.File]
	erased := persist.ObjectName(session.Key{Tenant: here.tenant, Key: uuid.New()}, uuid.New())
	if err := files.Put(t.Context(), erased, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	m := c.move(here, nil)
	var said []string
	m.Say = func(text string) { said = append(said, text) }
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(said, "\n"), "the move continues that began at 20") {
		t.Errorf("it does not say when it began: %q", said)
	}
	if _, err := files.Get(t.Context(), erased, 0, 10); !errors.Is(err, objects.ErrMissing) {
		t.Errorf("the destination has what was erased: %v", err)
	}
}
