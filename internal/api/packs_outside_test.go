//go:build !race

package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/varve-dev/varve/internal/persist"
	objects "github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/session"
)

// packsLeave moves all packs of a session out of PostgreSQL.
func (w *world) packsLeave(id string) {
	w.Helper()
	at := session.Address{Tenant: w.tenant, ID: id}
	found, err := w.admin.Session(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	key := session.Key{Tenant: w.tenant, Key: found.Key}
	packs, err := w.admin.PacksInRows(w.Context(), key, -1)
	if err != nil || len(packs) == 0 {
		w.Fatalf("%d packs, %v", len(packs), err)
	}
	for _, first := range packs {
		if _, err := w.admin.MovePack(w.Context(), key, first, persist.File); err != nil {
			w.Fatal(err)
		}
	}
}

// silent is a store that does not answer.
type silent struct{ objects.Store }

func (silent) Get(context.Context, string, int64, int) ([]byte, error) {
	return nil, fmt.Errorf("%w: it is away", session.ErrResultStore)
}

// settled waits until nothing is written any more by jobs and by what is counted in memory.
func (w *world) settled() {
	w.Helper()
	w.server.Close(w.Context())
	w.until("no job is live, and the ledger has counted", func() bool {
		return w.count(`SELECT (SELECT count(*) FROM river_job WHERE state IN ('available', 'running'))
			+ (SELECT count(*) FROM search_sessions WHERE due_since IS NOT NULL)
			+ (SELECT count(*)
			     FROM sessions s
			     LEFT JOIN usage_sessions u ON u.tenant_id = s.tenant_id AND u.session_key = s.key
			    WHERE coalesce(u.counted_seq, 0) < s.last_seq)`) == 0
	})
}

// TestPacksInTheStoreAreReadAsBefore compares what every GET route of a session answers, with its tag, before its packs
// leave and after that.
func TestPacksInTheStoreAreReadAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.objects()
	w.work()
	w.fillRecall("s")
	for n := range 4 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", 4+n, 3, 6000)...))
		w.must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=20", "")
	}
	w.until("all is indexed and packed", func() bool {
		return w.count(`SELECT count(*) FROM search_sessions WHERE due_since IS NOT NULL`)+w.count(`SELECT count(*) FROM river_job WHERE finalized_at IS NULL AND kind <> 'sweep' AND kind <> 'collect'`) == 0
	})
	w.settled()
	paths := append(w.readsOf("s"), "/v1/sessions/s/messages?limit=5")
	read := func() map[string]string {
		all := map[string]string{}
		for _, path := range paths {
			got := w.ask("GET", path, "")
			all[path] = fmt.Sprint(got.Code, got.Header().Get("Etag"), counted.ReplaceAllString(requestID.ReplaceAllString(got.Body.String(), "req"), ""))
		}
		return all
	}
	before := read()
	same := func(when string, after map[string]string) {
		t.Helper()
		for path, text := range before {
			if after[path] != text {
				t.Errorf("%s: %s:\n%.600s\n%.600s", when, path, text, after[path])
			}
		}
	}
	w.packsLeave("s")
	same("outside", read())

	stores := *w.store.ResultStores()
	away := stores
	away.Outside = map[persist.Kind]objects.Store{persist.File: silent{stores.Outside[persist.File]}}
	w.store.UseResultStores(away)
	got := w.must(http.StatusServiceUnavailable, "GET", "/v1/sessions/s/messages?limit=5", "")
	if got.Header().Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "")
	w.store.UseResultStores(stores)
}
