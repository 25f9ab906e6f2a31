package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// ofMoment are times, ids, keys and digests.
var ofMoment = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|(req|st|msg)_[0-9A-Za-z_]+|"last4":"[^"]*"|"created_at":\d+`)

// told returns what an answer says, without what differs between two sessions or two moments.
func told(got answer, id string) string {
	body := strings.ReplaceAll(got.Body.String(), id, "ID")
	return fmt.Sprint(got.Code, " ", got.Header().Get("Content-Type"), " ", ofMoment.ReplaceAllString(body, "…"))
}

// TestEveryRouteOfAColdSessionAnswersAsOfAHotOne asks all routes that name a session of two that are alike, of which one
// is cold.
func TestEveryRouteOfAColdSessionAnswersAsOfAHotOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	e := &examples{world: w, Description: apitest.Described()}
	ops := slices.DeleteFunc(slices.Clone(e.Operations), func(op apitest.Operation) bool {
		ofOne := strings.Contains(op.Path, "/v1/sessions/{id}") || strings.Contains(op.Path, "/v1/conversations/{id}")
		return !ofOne || op.Method+" "+op.Path == "POST /v1/sessions/{id}/archive" // done at once of a cold one
	})
	var cold []string
	for i := range ops {
		for _, id := range []string{fmt.Sprintf("hot-%02d", i), fmt.Sprintf("cold-%02d", i)} {
			w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"metadata":{"user":"u"}}`)
			w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", `{"format":"openai-chat","client_ids":["c1"],"messages":[`+user("hello")+`]}`)
		}
		cold = append(cold, fmt.Sprintf("cold-%02d", i))
	}
	w.frozen(cold...)
	for i, op := range ops {
		route := op.Method + " " + op.Path
		if !w.isCold(cold[i]) {
			t.Errorf("%s: its session is not cold", route)
		}
		var said []string
		for _, id := range []string{fmt.Sprintf("hot-%02d", i), cold[i]} {
			path, body := e.request(op, id)
			got := w.ask(op.Method, path, body)
			said = append(said, told(got, id))
			if got.Code >= 500 || strings.Contains(got.Body.String(), "session_archived") {
				t.Errorf("%s of %s: %d %s", route, id, got.Code, got.Body)
			}
		}
		if said[0] != said[1] {
			t.Errorf("%s\nhot:  %s\ncold: %s", route, said[0], said[1])
		}
	}
	if len(ops) < 40 {
		t.Errorf("%d routes were asked", len(ops))
	}
}

func TestACompactionOfOpenAIsBringsAColdConversationBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/c", `{"format":"openai-responses"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/c/messages", `{"messages":[{"type":"message","role":"user","content":"hello"}]}`)
	w.frozen("c")
	got := w.must(http.StatusOK, "POST", "/v1/responses/compact", `{"model":"gpt-5","previous_response_id":"c"}`)
	if !strings.Contains(got.Body.String(), "hello") {
		t.Errorf("%s", got.Body)
	}
}

// TestAColdSessionIsListedCountedAndComesBackByItself reads all that says something of a session, hot and cold.
func TestAColdSessionIsListedCountedAndComesBackByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for _, id := range []string{"a", "b"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"metadata":{"user":"`+id+`"}}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch("openai-chat", user("hello"), `{"role":"assistant","content":"hi"}`))
	}
	token := w.newToken("a", "").Text
	if err := w.store.CountUsage(t.Context(), w.tenant, []session.Reading{{Session: "a"}, {Session: "b"}}); err != nil {
		t.Fatal(err)
	}
	lists := []string{
		"/v1/sessions", `/v1/sessions?metadata=%7B%22user%22%3A%22a%22%7D`, "/v1/sessions?order=last_append", "/v1/sessions/a", "/v1/usage", "/v1/usage/sessions",
		"/v1/sessions?min_tokens=1", "/v1/admin/sessions?order=tokens", "/v1/admin/tenants", "/v1/sessions/a/policy",
	}
	reads := []string{
		"/v1/sessions/a/context", "/v1/sessions/a/context?format=anthropic", "/v1/sessions/a/messages", "/v1/sessions/a/messages?from_seq=2", "/v1/sessions/a/export",
		"/v1/export", "/v1/sessions/a/results", "/v1/sessions/a/runs", "/v1/sessions/a/checkpoints",
	}
	before := map[string]answer{}
	for _, path := range slices.Concat(reads, lists) {
		if path == lists[0] { // which say of a session what the reads were, once that is written
			w.until("the views are counted", func() bool {
				return w.count("SELECT count(*) FROM usage_sessions WHERE views = 2") == 1
			})
		}
		before[path] = w.ask("GET", path, "")
		if before[path].Code >= 400 && !strings.Contains(path, "admin") {
			t.Errorf("%s: %d %s", path, before[path].Code, before[path].Body)
		}
	}
	same := func(path string) {
		t.Helper()
		got := w.ask("GET", path, "")
		if a, b := told(before[path], "no id"), told(got, "no id"); a != b || before[path].Header().Get("ETag") != got.Header().Get("ETag") {
			t.Errorf("%s\nhot:  %s %s\ncold: %s %s", path, before[path].Header().Get("ETag"), a, got.Header().Get("ETag"), b)
		}
	}
	w.frozen("a", "b")
	for _, path := range lists {
		same(path)
	}
	if !w.isCold("a") {
		t.Error("lists bring a session back")
	}
	for _, path := range reads {
		w.frozen("a", "b")
		same(path)
		if w.isCold("a") {
			t.Errorf("%s leaves the session cold", path)
		}
		same("/v1/sessions")
	}
	text, _ := w.export("/v1/sessions/b/export")
	w.frozen("b")
	if got := decoded[protocol.Import](w.must(http.StatusCreated, "POST", "/v1/imports", text)); got.State != "succeeded" || got.Duplicates != 2 || got.Rejected != 0 {
		t.Errorf("an import into a cold session: %+v", got)
	}
	w.frozen("a", "b")
	w.must(http.StatusOK, "GET", "/v1/sessions/a/context", "", "Authorization", "Bearer "+token)
	w.frozen("a")
	w.must(http.StatusOK, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer "+token)
	if !w.isCold("a") {
		t.Error("the list of an agent's tools brings its session back")
	}
	for name, arguments := range map[string]string{"get_context": `{}`, "get_messages": `{"ref":"m1"}`, "search_session": `{"query":"hello"}`} {
		w.frozen("a")
		called := w.must(http.StatusOK, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+arguments+`}}`, "Authorization", "Bearer "+token)
		if !strings.Contains(called.Body.String(), "hello") || strings.Contains(called.Body.String(), `"isError":true`) {
			t.Errorf("%s of a cold session: %s", name, called.Body)
		}
	}
	w.frozen("a")
	if got := w.ask("POST", "/v1/sessions", `{"id":"a"}`); got.Code != http.StatusConflict || decoded[problem](got).Code != "session_exists" {
		t.Errorf("a cold session is made again: %d %s", got.Code, got.Body)
	}
	w.frozen("a")
	got := w.must(http.StatusCreated, "POST", "/v1/sessions/a/messages", batch("openai-chat", user("more")))
	if first := decoded[struct {
		FirstSeq int64 `json:"first_seq"`
	}](got).FirstSeq; first != 3 {
		t.Errorf("the next message has the seq %d", first)
	}
}

// TestAColdSessionIsArchivedHeldAndErased asks for what the owner of a session may ask.
func TestAColdSessionIsArchivedHeldAndErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for _, id := range []string{"a", "b", "c"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch("openai-chat", user("hello")))
	}
	w.frozen("a", "b", "c")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/a/archive", "")
	w.must(http.StatusNotFound, "POST", "/v1/sessions/a/unarchive", "")
	made := decoded[session.Archive](w.must(http.StatusAccepted, "POST", "/v1/sessions/a/archive", ""))
	if made.State != session.Archived || made.Messages != 1 || made.ArchivedAt == nil {
		t.Errorf("the archive is %+v", made)
	}
	if got := w.ask("GET", "/v1/sessions/a", ""); decoded[problem](got).Code != "session_archived" {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if list := decoded[protocol.List[session.Archive]](w.must(http.StatusOK, "GET", "/v1/archives", "")); len(list.Data) != 1 {
		t.Errorf("the list of archives has %+v", list.Data)
	}
	w.restored("a")
	w.must(http.StatusOK, "GET", "/v1/sessions/a/context", "")
	w.must(http.StatusOK, "PUT", "/v1/sessions/b/hold", `{"reason":"a case"}`)
	w.must(http.StatusConflict, "DELETE", "/v1/sessions/b", "")
	w.must(http.StatusOK, "GET", "/v1/sessions/b/context", "")
	if n, err := tier.FreezeSleeping(t.Context(), w.admin, w.tenant, 0, 100); err != nil || w.isCold("b") {
		t.Errorf("%d sessions were frozen, one with a hold: %v", n, err)
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/c", "")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/c", "")
}
