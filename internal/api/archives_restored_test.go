package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestARestoredSessionReadsAsBefore reads everything of sessions before they are archived and when they are back.
func TestARestoredSessionReadsAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.trimmed("s")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", 4, 3, 6000)...))
	w.must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=20", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", 5, 1, 600)...))
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/pins/m2", `{}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/fork", `{"id":"fork","seq":12}`)
	w.until("all is indexed and packed", func() bool {
		return w.count(`SELECT count(*) FROM search_sessions WHERE due_since IS NOT NULL`)+w.count(`SELECT count(*) FROM river_job WHERE finalized_at IS NULL AND kind <> 'sweep' AND kind <> 'collect'`) == 0
	})
	ids := []string{"s", "fork"}
	var paths []string
	for _, id := range ids {
		paths = append(paths, w.readsOf(id)...)
	}
	read := func() map[string]string {
		all := map[string]string{}
		for _, path := range paths {
			got := w.ask("GET", path, "")
			all[path] = fmt.Sprint(got.Code, got.Header().Get("Etag"), got.Header().Get("Content-Type"), counted.ReplaceAllString(requestID.ReplaceAllString(got.Body.String(), "req"), ""))
			if ranged := w.ask("GET", path, "", "Range", "bytes=10-99"); strings.Contains(path, "raw=true") {
				all["a range of "+path] = fmt.Sprint(ranged.Code, ranged.Header().Get("Content-Range"), requestID.ReplaceAllString(ranged.Body.String(), "req"))
			}
		}
		return all
	}
	before := read()
	fine := 0
	for _, text := range before {
		if strings.HasPrefix(text, "20") {
			fine++
		}
	}
	if fine < 80 {
		t.Errorf("%d of %d reads are answered", fine, len(before))
	}
	for _, order := range [][]string{{"s", "fork"}, {"fork", "s"}} {
		for _, id := range order {
			w.archived(id)
		}
		for _, id := range order {
			w.restored(id)
		}
		w.until("all is indexed", func() bool { return w.count(`SELECT count(*) FROM search_sessions WHERE due_since IS NOT NULL`) == 0 })
		after := read()
		for path, text := range before {
			if after[path] != text {
				t.Errorf("%s:\n%.600s\n%.600s", path, text, after[path])
			}
		}
	}
	checkpoint := decoded[session.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")).Checkpoint
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", 6, 3, 6000)...))
	w.until("what is back is compacted", func() bool {
		w.must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=20", "")
		return decoded[session.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")).Checkpoint > checkpoint
	})
}
