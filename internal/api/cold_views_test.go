//go:build !race

package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// sleepers makes sessions in each format, with a checkpoint and without, and returns their ids.
func (w *world) sleepers() (ids []string) {
	w.Helper()
	for _, format := range []string{"openai-chat", "anthropic"} {
		path := w.compacted(format)
		w.must(http.StatusCreated, "POST", path+"/messages", batch(format, turn(format, 9, 2, 600)...))
		short := format + "-short"
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+short, fmt.Sprintf(`{"format":%q}`, format))
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+short+"/messages", batch(format, turn(format, 1, 2, 900)...))
		ids = append(ids, strings.TrimPrefix(path, "/v1/sessions/"), short)
	}
	return ids
}

// bytesOf returns what a client gets: the status, the tag and each byte.
func bytesOf(got answer) string {
	return fmt.Sprint(got.Code, got.Header()["Etag"], got.Header()["Content-Encoding"], got.Body)
}

// calledContext returns what the tool get_context answers to an agent with a token.
func (w *world) calledContext(token string) string {
	w.Helper()
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_context","arguments":{"max_tokens":100000}}}`
	return w.must(http.StatusOK, "POST", "/mcp", call, "Authorization", "Bearer "+token).Body.String()
}

// TestViewsOfColdSessionsAreReadFromTheirArchives asks for views, as clients do, of sessions while they are hot and while
// they are cold.
func TestViewsOfColdSessionsAreReadFromTheirArchives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.files()
	w.work()
	for _, id := range w.sleepers() {
		path := "/v1/sessions/" + id + "/context"
		ask := func(query string) answer {
			query, coding, _ := strings.Cut(query, " ")
			return w.ask("GET", path+query, "", "Accept-Encoding", coding)
		}
		fromArchive := []string{
			"", "?format=anthropic", "?format=openai-chat", "?format=openai-responses", "?pending=drop", "?max_tokens=100000", " zstd", "?model=x zstd",
		}
		fromRows := []string{"?max_tokens=500", "?view=full", "?as_of_seq=3", "?min_seq=1"}
		token, hot := w.newToken(id, "").Text, map[string]string{}
		for _, query := range slices.Concat(fromArchive, fromRows) {
			hot[query] = bytesOf(ask(query))
		}
		tag, called := ask("").Header().Get("ETag"), w.calledContext(token)
		w.frozen(id)
		for _, query := range fromArchive {
			if got := bytesOf(ask(query)); got != hot[query] {
				t.Errorf("%s%s\nhot:  %.600s\ncold: %.600s", path, query, hot[query], got)
			}
		}
		if got := w.calledContext(token); got != called {
			t.Errorf("get_context of %s\nhot:  %.600s\ncold: %.600s", id, called, got)
		}
		w.must(http.StatusNotModified, "GET", path, "", "If-None-Match", tag)
		w.must(http.StatusOK, "GET", path, "", "If-None-Match", `"other"`)
		if !w.isCold(id) {
			t.Errorf("%s: a view brings the session back", id)
		}
		for _, query := range fromRows {
			w.frozen(id)
			if got := bytesOf(ask(query)); got != hot[query] || w.isCold(id) {
				t.Errorf("%s%s, cold %t\nhot:  %.600s\ncold: %.600s", path, query, w.isCold(id), hot[query], got)
			}
		}
	}
}

// TestAViewThatAnArchiveCannotShowBringsItsSessionBack damages views in archives, removes them, and asks for what needs
// the session's rows.
func TestAViewThatAnArchiveCannotShowBringsItsSessionBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.files()
	w.work()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", 1, 2, 900)...))
	hot := bytesOf(w.must(http.StatusOK, "GET", "/v1/sessions/s/context", ""))
	w.frozen("s")
	if w.count(`SELECT count(*) FROM session_archives a JOIN archive_parts p USING (session_key) WHERE a.stored = p.size + p.view_size`) != 1 {
		t.Error("the view is not among the bytes of its archive")
	}
	var v postgres.View
	at := session.Address{Tenant: w.tenant, ID: "s"}
	if err := w.store.ViewInto(t.Context(), at, postgres.ViewRead{Largest: 10}, &v); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a view that is too large for its reader: %v", err)
	}
	for name, damage := range map[string]func(size int64, object []byte) []byte{
		"changed": func(size int64, object []byte) []byte { object[len(object)-9] ^= 1; return object },
		"cut off": func(size int64, object []byte) []byte { return object[:size+8] },
		"missing": func(size int64, object []byte) []byte { return object[:size] },
	} {
		w.frozen("s")
		w.damageView(damage)
		if got := bytesOf(w.ask("GET", "/v1/sessions/s/context", "")); got != hot || w.isCold("s") {
			t.Errorf("%s, cold %t: %s", name, w.isCold("s"), got)
		}
	}
	w.frozen("s")
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"metadata":{"user":"u"}}`)
	w.frozen("s")
	w.exec(`UPDATE archive_parts SET view_size = NULL`)
	if got := bytesOf(w.ask("GET", "/v1/sessions/s/context", "")); got != hot || w.isCold("s") {
		t.Errorf("of an archive without a view: %s", got)
	}
	w.frozen("s")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/none/context", "")
	w.must(http.StatusAccepted, "POST", "/v1/sessions/s/archive", "")
	if got := w.ask("GET", "/v1/sessions/s/context", ""); decoded[problem](got).Code != "session_archived" {
		t.Errorf("of an archived session: %d %s", got.Code, got.Body)
	}
}

// damageView changes the only object that archives have.
func (w *world) damageView(damage func(size int64, object []byte) []byte) {
	w.Helper()
	store := w.store.ResultStores().Outside[persist.File]
	size := int64(w.count("SELECT size FROM archive_parts"))
	for info, err := range store.List(w.Context(), w.tenant.String()) {
		if err != nil {
			w.Fatal(err)
		}
		object, err := store.Get(w.Context(), info.Name, 0, 1<<20)
		if err == nil {
			err = store.Put(w.Context(), info.Name, damage(size, object))
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}

// TestAColdSessionOverItsWindowIsCompactedForItsReader reads a view that must fit.
func TestAColdSessionOverItsWindowIsCompactedForItsReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.files()
	w.work()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":10000000}`)
	for n := range 12 { // without results: what fits then is known without the session's rows
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(fmt.Sprint(n, strings.Repeat(" why", 900))),
			`{"role":"assistant","content":"because"}`))
	}
	w.frozen("s")
	w.exec(`UPDATE sessions SET window_tokens = 8000`)
	cold := w.ask("GET", "/v1/sessions/s/context?fit=window&wait=0", "")
	hot := w.ask("GET", "/v1/sessions/s/context?fit=window&wait=0", "")
	if a, b := told(hot, "s"), told(cold, "s"); a != b || hot.Code >= 500 {
		t.Errorf("without a wait\nhot:  %.600s\ncold: %.600s", a, b)
	}
	w.frozen("s")
	got := decoded[view](w.must(http.StatusOK, "GET", "/v1/sessions/s/context?fit=window&wait=60", ""))
	if got.Checkpoint == 0 || got.Tokens > 8000 {
		t.Errorf("the view has %d tokens and the checkpoint %d", got.Tokens, got.Checkpoint)
	}
}
