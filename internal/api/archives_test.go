package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// archived archives a session and waits until that is done.
func (w *world) archived(id string) (found session.Archive) {
	w.Helper()
	path := "/v1/sessions/" + id
	w.must(http.StatusAccepted, "POST", path+"/archive", "")
	w.until("the session is archived", func() bool {
		found = decoded[session.Archive](w.must(http.StatusOK, "GET", path+"/archive", ""))
		return found.State == session.Archived
	})
	return found
}

// restored restores a session and waits until it is there.
func (w *world) restored(id string) {
	w.Helper()
	w.must(http.StatusAccepted, "POST", "/v1/sessions/"+id+"/unarchive", "")
	w.until("the session is back", func() bool { return w.ask("GET", "/v1/sessions/"+id, "").Code == http.StatusOK })
}

// ofArchives are the routes of a session that work when it is archived.
var ofArchives = []string{
	"DELETE /v1/sessions/{id}", "POST /v1/sessions/{id}/archive", "GET /v1/sessions/{id}/archive", "POST /v1/sessions/{id}/unarchive",
	"GET /v1/sessions/{id}/hold", "PUT /v1/sessions/{id}/hold", "DELETE /v1/sessions/{id}/hold",
}

// parameter is one in the path of a route.
var parameter = regexp.MustCompile(`\{\w+\}|:\w+`)

// request returns the path, with its query, and the body of a request for a session's operation. Routes look at what the
// description requires before they look for the session.
func (e *examples) request(op apitest.Operation, id string) (path, body string) {
	e.Helper()
	path = strings.NewReplacer("{id}", id, "{n}", "1", "{ref}", "m1", "{message}", "c1", "{item}", "msg_1", "{tool}", "search_session").Replace(op.Path)
	query := url.Values{}
	for _, p := range op.Parameters {
		if p.Value["in"] == "query" && p.Value["required"] == true {
			query.Set(p.Value["name"].(string), fmt.Sprint(p.Value["example"]))
		}
	}
	if body = e.body(op); op.Value["operationId"] == "forkSession" {
		body = `{"id":"fork-of-` + id + `"}`
	}
	return parameter.ReplaceAllString(path, uuid.Nil.String()) + "?" + query.Encode(), body
}

// TestEveryRouteOfAnArchivedSessionSaysThatItIsArchived asks all routes that name a session.
func TestEveryRouteOfAnArchivedSessionSaysThatItIsArchived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("hello")))
	token := w.newToken("s", "").Text
	archive := w.archived("s")
	if archive.Messages != 1 || archive.StoredBytes == 0 || archive.SHA256 == nil || archive.Parts != 1 {
		t.Errorf("the archive is %+v", archive)
	}
	asked := 0
	e := &examples{world: w, Description: apitest.Described()}
	for _, op := range e.Operations {
		route := op.Method + " " + op.Path
		if !strings.Contains(route, "/v1/sessions/{id}") || slices.Contains(ofArchives, route) {
			continue
		}
		path, body := e.request(op, "s")
		got := w.ask(op.Method, path, body)
		if got.Code != http.StatusConflict || decoded[problem](got).Code != "session_archived" {
			t.Errorf("%s: %d %s", route, got.Code, got.Body)
		}
		asked++
	}
	if asked < 35 {
		t.Errorf("%d routes were asked", asked)
	}
	for _, got := range []answer{
		w.ask("POST", "/v1/sessions", `{"id":"s"}`), w.ask("GET", "/v1/sessions/s/context", "", "Authorization", "Bearer "+token),
		w.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer "+token),
	} {
		if got.Code != http.StatusConflict || !strings.Contains(got.Body.String(), "session_archived") || !strings.Contains(got.Body.String(), "/unarchive") {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
	if list := decoded[listPage](w.must(http.StatusOK, "GET", "/v1/sessions", "")); len(list.Data) != 0 {
		t.Errorf("the list has %v", list.Data)
	}
	if list := decoded[protocol.List[session.Archive]](w.must(http.StatusOK, "GET", "/v1/archives", "")); len(list.Data) != 1 || list.Data[0].Session != "s" {
		t.Errorf("the list of archives has %+v", list.Data)
	}
	other := *w
	other.tenant, other.key = w.newTenant("other")
	other.must(http.StatusNotFound, "GET", "/v1/sessions/s", "")
	other.must(http.StatusNotFound, "GET", "/v1/sessions/s/archive", "")
	other.must(http.StatusNotFound, "POST", "/v1/sessions/s/unarchive", "")
	other.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	if list := decoded[protocol.List[session.Archive]](other.must(http.StatusOK, "GET", "/v1/archives", "")); len(list.Data) != 0 {
		t.Errorf("another tenant sees %+v", list.Data)
	}
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/hold", `{"reason":"a case"}`)
	w.must(http.StatusConflict, "DELETE", "/v1/sessions/s", "")
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s/hold", "")
	w.restored("s")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/s/archive", "")
	w.must(http.StatusNotFound, "POST", "/v1/sessions/s/unarchive", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("more")))
	w.archived("s")
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
}

// TestWhoMayArchive needs both scopes, and neither erase nor admin.
func TestWhoMayArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for _, one := range []session.Scope{session.SessionsWrite, session.ScopeExport} {
		w.must(http.StatusForbidden, "POST", "/v1/sessions/s/archive", "", "Authorization", "Bearer "+w.newKey(one))
	}
	key := w.newKey(session.SessionsWrite, session.ScopeExport, session.SessionsRead)
	for range 2 { // there is no worker: it is back at once
		found := decoded[session.Archive](w.must(http.StatusAccepted, "POST", "/v1/sessions/s/archive", "", "Authorization", "Bearer "+key))
		if found.State != session.Archiving {
			t.Errorf("the archive is %+v", found)
		}
	}
	if found := decoded[session.Archive](w.must(http.StatusAccepted, "POST", "/v1/sessions/s/unarchive", "", "Authorization", "Bearer "+key)); found.State != session.Restored {
		t.Errorf("the archive is %+v", found)
	}
	w.must(http.StatusOK, "GET", "/v1/sessions/s", "")
	if rows := w.trail("action=session.archive"); len(rows) != 1 {
		t.Errorf("the trail has %+v", rows)
	}
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/hold", `{"reason":"a case"}`)
	got := w.must(http.StatusConflict, "POST", "/v1/sessions/s/archive", "")
	if decoded[problem](got).Code != "legal_hold" {
		t.Errorf("%s", got.Body)
	}
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/retention", `{"then":"burn"}`)
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/retention", `{"idle_seconds":3600,"archive_max_age_seconds":3600}`)
	w.must(http.StatusUnprocessableEntity, "GET", "/v1/retention/preview?then=burn", "")
}

// counted is what reads count.
var counted = regexp.MustCompile(`"(reads|last_read_at|read_back|parts_read)":("[^"]*"|\{[^}]*\}|[0-9]+|null)`)

// readsOf returns the paths of all that can be read of a session.
func (w *world) readsOf(id string) (paths []string) {
	w.Helper()
	path := "/v1/sessions/" + id
	for _, end := range []string{
		"", "/messages", "/messages?order=desc&limit=3", "/policy", "/policy/versions", "/runs", "/checkpoints", "/results", "/summaries", "/pins", "/pins/candidates",
		"/tokens", "/search?q=line", "/export", "/context", "/context?view=full", "/context?max_tokens=5000", "/context?fit=true",
	} {
		paths = append(paths, path+end)
	}
	for _, format := range session.Formats() {
		paths = append(paths, path+"/context?format="+string(format), path+"/context?view=full&format="+string(format))
	}
	for _, c := range decoded[listPage](w.must(http.StatusOK, "GET", path+"/checkpoints", "")).Data {
		n := fmt.Sprintf("%s/checkpoints/%v", path, c["n"])
		paths = append(paths, n, n+"?manifest=full", n+"/context", n+"/diff")
	}
	for _, run := range decoded[listPage](w.must(http.StatusOK, "GET", path+"/runs", "")).Data {
		paths = append(paths, path+"/runs/"+run["id"].(string))
	}
	refs := []string{"m1"}
	for _, r := range decoded[listPage](w.must(http.StatusOK, "GET", path+"/results?limit=100", "")).Data {
		refs = append(refs, r["ref"].(string))
	}
	for _, ref := range refs {
		paths = append(paths, path+"/results/"+ref, path+"/results/"+ref+"?raw=true", path+"/results/"+ref+"?offset=2&limit=2", path+"/results/"+ref+"/grep?pattern=line")
	}
	last := int(decoded[protocol.Session](w.must(http.StatusOK, "GET", path, "")).LastSeq)
	for seq := 1; seq <= last; seq += 3 {
		paths = append(paths, fmt.Sprintf("%s/context?as_of_seq=%d", path, seq))
	}
	return paths
}
