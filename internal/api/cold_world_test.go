package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/persist"
	objects "github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// files has a world keep results and archives in a directory of its own.
func (w *world) files() {
	w.Helper()
	w.outside(persist.File)
}

// objects has a world keep archives in a directory of its own, and results in PostgreSQL.
func (w *world) objects() {
	w.Helper()
	w.outside(persist.Postgres)
}

func (w *world) outside(results persist.Kind) {
	w.Helper()
	files, err := objects.OpenDir(w.TempDir())
	if err != nil {
		w.Fatal(err)
	}
	w.keepIn(persist.Stores{New: results, Archives: new(persist.File), Outside: map[persist.Kind]objects.Store{persist.File: files}})
}

func (w *world) keepIn(stores persist.Stores) {
	w.Helper()
	for _, store := range []*postgres.Store{w.store, w.admin} {
		store.UseResultStores(stores)
	}
	if err := w.admin.CheckResultStores(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// frozen freezes sessions that have messages, and waits until that is done.
func (w *world) frozen(ids ...string) {
	w.Helper()
	reads := make([]session.Reading, len(ids))
	for i, id := range ids {
		reads[i].Session = id
	}
	if err := w.store.CountUsage(w.Context(), w.tenant, reads); err != nil {
		w.Fatal(err)
	}
	among := `sessions s LEFT JOIN session_archives a ON a.session_key = s.key AND NOT s.archived AND a.state = 'archived'
		WHERE s.id IN ('` + strings.Join(ids, `', '`) + `') AND a.id IS NULL`
	w.until("the sessions are cold: "+strings.Join(ids, ", "), func() bool {
		if _, err := tier.FreezeSleeping(w.Context(), w.admin, w.tenant, 0, 100); err != nil {
			w.Fatal(err)
		}
		return w.count("SELECT count(*) FROM "+among) == 0
	})
}

// isCold reports whether a session is cold.
func (w *world) isCold(id string) bool {
	return w.count("SELECT count(*) FROM sessions WHERE frozen_at IS NOT NULL AND NOT archived AND id = '"+id+"'") == 1
}

// coldViewsOfAStandby reads the view of a cold session of processes on a primary and on its standby.
func coldViewsOfAStandby(t *testing.T, r *replicated) {
	r.files() // as long as the other tests of these servers
	r = r.in(t)
	r.readOnly.store.UseResultStores(*r.store.ResultStores())
	r.readOnly.admin.UseResultStores(*r.store.ResultStores())
	r.work()
	r.must(http.StatusCreated, "PUT", "/v1/sessions/asleep", "")
	r.must(http.StatusCreated, "POST", "/v1/sessions/asleep/messages", batch("openai-chat", user("good night")))
	hot := r.must(http.StatusOK, "GET", "/v1/sessions/asleep/context", "")
	r.frozen("asleep")
	r.catchUp()
	for name, w := range map[string]*world{"on the primary": r.world, "on the standby": r.readOnly} {
		got := w.ask("GET", "/v1/sessions/asleep/context", "")
		if got.Body.String() != hot.Body.String() || got.Header().Get("ETag") != hot.Header().Get("ETag") {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	if !r.isCold("asleep") {
		t.Error("a view brings the session back")
	}
	r.readOnly.must(http.StatusServiceUnavailable, "GET", "/v1/sessions/asleep/messages", "")
}
