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

// sleepers makes sessions in each of the formats, with a checkpoint and without, and returns their ids.
func (w *world) sleepers(formats []string) (ids []string) {
	w.Helper()
	for _, format := range formats {
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
	for _, c := range []struct {
		name   string
		keep   func(w *world)
		format string // with -short
	}{{"results, too", (*world).files, "anthropic"}, {"archives alone", (*world).objects, "openai-chat"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			formats := []string{"openai-chat", "anthropic"}
			if testing.Short() {
				formats = []string{c.format}
			}
			w := newWorld(t)
			c.keep(w)
			w.work()
			w.requireColdViews(formats)
		})
	}
}

// requireColdViews asks for views of sessions while they are hot and while they are cold, and wants the same.
func (w *world) requireColdViews(formats []string) {
	w.Helper()
	for _, id := range w.sleepers(formats) {
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
				w.Errorf("%s%s\nhot:  %.600s\ncold: %.600s", path, query, hot[query], got)
			}
		}
		if got := w.calledContext(token); got != called {
			w.Errorf("get_context of %s\nhot:  %.600s\ncold: %.600s", id, called, got)
		}
		w.must(http.StatusNotModified, "GET", path, "", "If-None-Match", tag)
		w.must(http.StatusOK, "GET", path, "", "If-None-Match", `"other"`)
		if !w.isCold(id) {
			w.Errorf("%s: a view brings the session back", id)
		}
		for _, query := range fromRows {
			w.frozen(id)
			if got := bytesOf(ask(query)); got != hot[query] || w.isCold(id) {
				w.Errorf("%s%s, cold %t\nhot:  %.600s\ncold: %.600s", path, query, w.isCold(id), hot[query], got)
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
	var v postgres.View
	at := session.Address{Tenant: w.tenant, ID: "s"}
	if err := w.store.ViewInto(t.Context(), at, postgres.ViewRead{Largest: 10}, &v); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a view that is too large for its reader: %v", err)
	}
	for _, sql := range []string{
		`UPDATE session_archives SET view_end = view_end - 9`, `UPDATE session_archives SET view_end = 20`,
		`UPDATE session_archives SET view_end = NULL`,
	} {
		w.frozen("s")
		w.exec(sql)
		if got := bytesOf(w.ask("GET", "/v1/sessions/s/context", "")); got != hot || w.isCold("s") {
			t.Errorf("%s, cold %t: %s", sql, w.isCold("s"), got)
		}
	}
	w.frozen("s")
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"metadata":{"user":"u"}}`)
	w.frozen("s")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/none/context", "")
	w.must(http.StatusAccepted, "POST", "/v1/sessions/s/archive", "")
	if got := w.ask("GET", "/v1/sessions/s/context", ""); decoded[problem](got).Code != "session_archived" {
		t.Errorf("of an archived session: %d %s", got.Code, got.Body)
	}
}

// TestADamagedViewIsDamageOfTheArchive reads one that is damaged.
func TestADamagedViewIsDamageOfTheArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.files()
	w.work()
	path := w.compacted("openai-chat") + "/context"
	id := strings.Split(path, "/")[3]
	hot := bytesOf(w.must(http.StatusOK, "GET", path, ""))
	w.frozen(id)
	flip := func(object []byte, end int) []byte { object[end-9] ^= 1; return object }
	w.changeArchive(flip)
	if got := w.ask("GET", path, ""); decoded[problem](got).Code != "damaged" || !w.isCold(id) {
		t.Errorf("a damaged archive: %d %.600s", got.Code, got.Body)
	}
	w.changeArchive(flip)
	if got := bytesOf(w.ask("GET", path, "")); got != hot || !w.isCold(id) {
		t.Errorf("once it is whole again: %.600s", got)
	}
}

// changeArchive changes the only object that archives have, whose view ends somewhere.
func (w *world) changeArchive(change func(object []byte, end int) []byte) {
	w.Helper()
	store := w.store.ResultStores().Outside[persist.File]
	end := w.count("SELECT coalesce(view_end, 0) FROM session_archives")
	size := w.count("SELECT stored FROM session_archives")
	for info, err := range store.List(w.Context(), w.tenant.String()) {
		if err != nil {
			w.Fatal(err)
		}
		object, err := store.Get(w.Context(), info.Name, 0, 1<<20)
		if len(object) != size { // the session was cold before
			continue
		}
		if err == nil {
			err = store.Put(w.Context(), info.Name, change(object, end))
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
