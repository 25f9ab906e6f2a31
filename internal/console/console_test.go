package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/console"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func TestASignInLastsAsLongAsItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := w.visitor()
	for path, want := range map[string]string{"/": "Sign in", "/console/sessions/x": "name=\"next\" value=\"/console/sessions/x\""} {
		if page := out.get(http.StatusOK, path); !strings.Contains(page, want) {
			t.Errorf("%s without a sign-in: %s", path, page)
		}
	}
	for _, key := range []string{"", "vk_x", w.Key[:len(w.Key)-1] + "!", strings.Replace(w.Key, "_", "_", 1) + " x"} {
		out.post(http.StatusUnprocessableEntity, "/console/sign-in", url.Values{"key": {key}})
	}
	v := w.signedIn(" " + w.Key + "\n")
	if page := v.get(http.StatusOK, "/"); !strings.Contains(page, "Nothing was used yet") {
		t.Errorf("the list: %s", page)
	}
	v.post(http.StatusOK, "/console/sign-in", url.Values{"key": {w.Key}, "next": {"https://elsewhere.example/"}})
	made := apitest.Decoded[struct{ ID, Key string }](w, w.Must(http.StatusCreated, "POST", "/v1/keys", `{"role":"viewer"}`))
	viewer := w.signedIn(made.Key)
	viewer.get(http.StatusOK, "/console/sessions")
	w.Must(http.StatusNoContent, "DELETE", "/v1/keys/"+made.ID, "")
	w.Until("the key is refused", func() bool { return strings.Contains(viewer.get(http.StatusOK, "/console/sessions"), "Sign in") })
	copied := w.visitor()
	copied.client.Jar.SetCookies(at(t, w.url), v.client.Jar.Cookies(at(t, w.url)))
	copied.get(http.StatusOK, "/console/sessions")
	v.post(http.StatusOK, "/console/sign-out", nil)
	for _, one := range []*visitor{v, copied} {
		if page := one.get(http.StatusOK, "/console/sessions"); !strings.Contains(page, "Sign in") {
			t.Errorf("after the sign-out: %s", page)
		}
	}
}

func at(t *testing.T, address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestACookieIsForOneHostOnly(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := console.NewSite(feature.SiteConfig{API: http.NotFoundHandler(), SignIn: feature.SignIn{Token: "once", Key: "vk_x"}}, func() time.Time { return now })
	ask := func(method, path string, headers ...string) *httptest.ResponseRecorder {
		r, got := httptest.NewRequestWithContext(t.Context(), method, path, nil), httptest.NewRecorder()
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		s.Handler().ServeHTTP(got, r)
		return got
	}
	ask("HEAD", "/console/once/once")
	ask("GET", "/console/once/once", "Sec-Purpose", "prefetch")
	if got := ask("GET", "/console/once/other"); got.Code != http.StatusGone {
		t.Errorf("another link: %d", got.Code)
	}
	first := ask("GET", "/console/once/once", "X-Forwarded-Proto", "https").Result().Cookies()
	if got := ask("GET", "/console/once/once"); got.Code != http.StatusGone || len(first) != 1 {
		t.Fatalf("the link the second time: %d; the first time %v", got.Code, first)
	}
	c := first[0]
	if c.Name != "__Host-varve" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %+v", c)
	}
	if strings.Contains(c.Value, "vk_") {
		t.Error("the cookie shows the key")
	}
	held := func() bool {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/console/", nil)
		r.Header.Set("X-Forwarded-Proto", "https")
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		_, ok := s.SignedIn(r)
		return ok
	}
	for step, want := range map[time.Duration]bool{0: true, console.IdleEnd - time.Minute: true, console.IdleEnd: false} {
		began := now
		now = began.Add(step)
		if held() != want {
			t.Errorf("after %s: %t", step, !want)
		}
		now = began
	}
	in, err := s.Open(c.Value)
	if err != nil {
		t.Fatal(err)
	}
	in.Seen = in.Since.Add(console.LastEnd)
	if !console.Ended(in, in.Seen) {
		t.Error("a sign-in lasts for ever if it is used")
	}
	if _, err := console.Unseal("", c.Value); err == nil {
		t.Error("another process reads the cookie")
	}
	secret := strings.Repeat("s", 32)
	if _, err := console.Unseal(secret, console.Cookie(secret, in)); err != nil {
		t.Errorf("a process with the same secret: %v", err)
	}
	if got := ask("GET", "/console/sessions", "Sec-Fetch-Site", "cross-site"); !strings.Contains(got.Body.String(), `content="0;url=/console/sessions?again=1"`) {
		t.Errorf("a link from elsewhere: %s", got.Body)
	}
}

// Another site cannot act for somebody who has signed in.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Append("s", "hi")
	v := w.signedIn(w.Key)
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://elsewhere.example"}} {
		for _, path := range []string{"/console/sessions/s/pins/m1", "/console/sessions/s/compact", "/console/sign-out", "/console/sign-in"} {
			v.post(http.StatusForbidden, path, url.Values{"key": {w.Key}}, headers...)
		}
	}
	if pins := w.Must(http.StatusOK, "GET", "/v1/sessions/s/pins", ""); !strings.Contains(pins, `"data":[]`) {
		t.Errorf("pinned: %s", pins)
	}
	v.post(http.StatusOK, "/console/sessions/s/pins/m1", url.Values{"seq": {"1"}, "note": {"why"}})
	if pins := w.Must(http.StatusOK, "GET", "/v1/sessions/s/pins", ""); !strings.Contains(pins, `"note":"why"`) {
		t.Errorf("not pinned: %s", pins)
	}
	v.post(http.StatusOK, "/console/sessions/s/pins/m1/unpin", url.Values{"seq": {"1"}})
	if trail := w.Must(http.StatusOK, "GET", "/v1/audit", ""); !strings.Contains(trail, "pin") {
		t.Errorf("the trail has no row of the pin: %s", trail)
	}
}

// hostile are texts that no page may take for its own.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, "</pre></article><h1>in</h1>",
	"\u202Egnp.exe\u2066", "zero\u200Bwidth\uFEFF", "esc\u001b[31m", "سلام دنیا", "{{.}}", "a/b?c#d%2F..", "\U000E0041",
}

func TestTextsOfTenantsAreTextsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.Key)
	for _, text := range hostile {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		q := string(quoted)
		path := "/v1/sessions/" + url.PathEscape(text)
		w.Must(http.StatusCreated, "PUT", path, `{"format":"openai-chat","model":`+q+`,"metadata":{"k":`+q+`}}`)
		w.Must(http.StatusCreated, "POST", path+"/messages", `{"messages":[{"role":"user","content":`+q+`},
			{"role":"assistant","content":null,"tool_calls":[{"id":`+q+`,"type":"function","function":{"name":`+q+`,"arguments":`+q+`}}]},
			{"role":"tool","tool_call_id":`+q+`,"content":`+q+`}]}`)
		w.Must(http.StatusOK, "PUT", path+"/pins/m1", `{"note":`+q+`}`)
		of := "/console/sessions/" + url.PathEscape(text)
		for _, page := range []string{of, of + "/log", of + "/messages/1", of + "/messages/3", of + "/results/m1-3", of + "/timeline", of + "/preview?plan=1",
			of + "/policy", of + "/checkpoints", of + "/runs", of + "/results", of + "/pins", of + "/timeline?over=cost", of + "?format=anthropic", "/console/audit", "/console/failures", "/console/", "/console/sessions?metadata=" + url.QueryEscape(`{"k":`+q+`}`)} {
			if body := v.get(http.StatusOK, page); !strings.Contains(body, "Varve") {
				t.Errorf("%s: %s", page, body)
			}
		}
		v.get(http.StatusUnprocessableEntity, "/console/sessions?metadata="+url.QueryEscape(text))
	}
	for _, text := range hostile {
		v.post(http.StatusOK, "/console/policy", url.Values{"/trigger": {text}, "/summarise/prompt": {text}})
		v.post(http.StatusOK, "/console/playground", url.Values{"text": {text}, "policy": {text}, "window": {text}})
		v.get(http.StatusOK, "/console/recompactions/new?"+url.Values{"plan": {"1"}, "policy": {text}, "min_tokens": {text}}.Encode())
		v.get(http.StatusOK, "/console/replays?"+url.Values{"policies": {text}, "policy": {text}}.Encode())
	}
	if page := v.get(http.StatusOK, "/console/sessions"); !strings.Contains(page, "⟨U+202E⟩gnp.exe⟨U+2066⟩") {
		t.Errorf("a change of direction is not shown in %s", page)
	}
}

// The console answers for what the API refuses: nothing of another tenant, nothing without its scope.
func TestTheConsoleShowsWhatTheKeyMayRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Append("mine", "a secret of acme")
	_, other := w.NewTenant("other")
	stranger := w.signedIn(other)
	for _, path := range []string{"", "/log", "/messages/1", "/results/m1-1"} {
		here := stranger.get(http.StatusNotFound, "/console/sessions/mine"+path)
		none := stranger.get(http.StatusNotFound, "/console/sessions/none"+path)
		if strings.Contains(here, "secret") || strings.ReplaceAll(here, "mine", "none") != none && !strings.Contains(here, "request") {
			t.Errorf("%s tells of another tenant: %s", path, here)
		}
	}
	stranger.post(http.StatusNotFound, "/console/sessions/mine/pins/m1", url.Values{"seq": {"1"}})
	few := apitest.Decoded[struct{ Key string }](w, w.Must(http.StatusCreated, "POST", "/v1/keys", `{"name":"<b>few","scopes":["sessions:read"]}`))
	reader := w.signedIn(few.Key)
	for v, of := range map[*visitor]string{reader: "acme</bdi> <bdi class=\"muted\">&lt;b&gt;few …" + few.Key[len(few.Key)-4:], stranger: "other</bdi>", w.operator(): "all tenants</bdi>"} {
		if page := v.get(http.StatusOK, "/console/"); !strings.Contains(page, "<bdi>"+of) {
			t.Errorf("the page does not say that it is of %s: %s", of, page)
		}
	}
	reader.get(http.StatusOK, "/console/sessions/mine")
	for path, scope := range map[string]string{"/compact": "compact", "/pins/m1": "sessions:write"} {
		if page := reader.post(http.StatusForbidden, "/console/sessions/mine"+path, nil); !strings.Contains(page, scope) {
			t.Errorf("%s without its scope: %s", path, page)
		}
	}
	if page := reader.get(http.StatusForbidden, "/console/sessions/mine/results/m1-1"); !strings.Contains(page, "results:read") {
		t.Errorf("a result without its scope: %s", page)
	}
	reader.get(http.StatusNotFound, "/console/nothing")
}

// TestTheLogAndTheViewStandSideBySide looks at a recorded conversation that was compacted.
func TestTheLogAndTheViewStandSideBySide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.sample("add-a-limit")
	v := w.signedIn(w.Key)
	page := v.get(http.StatusOK, "/console/sessions/add-a-limit")
	for _, want := range []string{`id="s1"`, "summarised", "Checkpoint ", "tokens", "/results/r"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	other := v.get(http.StatusOK, "/console/sessions/add-a-limit?format=anthropic")
	for _, want := range []string{"appended as openai-chat, in the view as anthropic", "summarised", "selected>anthropic"} {
		if !strings.Contains(other, want) {
			t.Errorf("the page with the view as Anthropic takes it has no %s", want)
		}
	}
	preview := v.get(http.StatusOK, "/console/sessions/add-a-limit/preview?plan=1&policy="+url.QueryEscape(`{"target":0.05,"trigger":0.1}`))
	would := w.Must(http.StatusOK, "POST", "/v1/sessions/add-a-limit/preview?units=true", `{"policy":{"target":0.05,"trigger":0.1}}`)
	summaries := 0
	for _, u := range apitest.Decoded[protocol.Preview](w, would).Units {
		var body struct{ Content string }
		if m := u.Messages[0]; m.Seq != nil || json.Unmarshal(m.Message, &body) != nil {
			continue
		}
		summaries++
		says, _, _ := strings.Cut(body.Content, "\n")
		if says == "" || !strings.Contains(preview, html.EscapeString(says)) {
			t.Errorf("the preview does not show what the model would get: %s", says)
		}
	}
	if summaries == 0 || !strings.Contains(preview, "View, as the model would get it") {
		t.Errorf("the preview shows %d summaries", summaries)
	}
	v.get(http.StatusUnprocessableEntity, "/console/sessions/add-a-limit?format=anthropic/nobody")
	v.get(http.StatusNotAcceptable, "/console/sessions/add-a-limit?format=anthropic/groq")
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/thought", `{"format":"openai-chat"}`)
	w.Must(http.StatusCreated, "POST", "/v1/sessions/thought/messages", `{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"done","reasoning_content":"hm"},{"role":"user","content":"on"}]}`)
	for format, repaired := range map[string]bool{"openai-chat": false, "openai-chat/mistral": true, "openai-chat/deepseek": false} {
		page := v.get(http.StatusOK, "/console/sessions/thought?format="+format)
		if strings.Contains(page, `class="row repaired`) != repaired || !strings.Contains(page, "selected>"+format) {
			t.Errorf("the view as %s takes it is repaired: %t: %s", format, !repaired, page[strings.Index(page, "<main"):])
		}
	}
	seen := map[string]bool{}
	for next := "/console/sessions/add-a-limit"; next != ""; {
		page := v.get(http.StatusOK, next)
		for _, id := range ids(page) {
			if seen[id] {
				t.Errorf("%s is on two pages", id)
			}
			seen[id] = true
		}
		_, link, more := strings.Cut(page, `<a rel="next" href="`)
		link, _, _ = strings.Cut(link, "#")
		if next = ""; more {
			next = "/console/sessions/add-a-limit" + link
		}
	}
	if len(seen) < 20 {
		t.Errorf("rows: %v", seen)
	}
}

// TestAPreviewReadsTheViewOnce counts what the page of a preview asks the API for.
func TestAPreviewReadsTheViewOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.sample("s")
	var asked atomic.Int32
	counting := http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/context/units") {
			asked.Add(1)
		}
		w.Server.ServeHTTP(to, r)
	})
	own := httptest.NewServer(console.NewSite(feature.SiteConfig{API: counting}, time.Now).Handler())
	t.Cleanup(own.Close)
	v := (&world{w.World, own.URL}).visitor()
	v.post(http.StatusOK, "/console/sign-in", url.Values{"key": {w.Key}})
	page := v.get(http.StatusOK, "/console/sessions/s/preview?plan=1&policy="+url.QueryEscape(`{"target":0.05,"trigger":0.1}`))
	if n := asked.Load(); n != 1 || strings.Count(page, "<article") < 5 {
		t.Errorf("the view was read %d times for %d rows", n, strings.Count(page, "<article"))
	}
}

// TestTheListOfRunsSaysWhatFailed looks at a run that continued without a stage.
func TestTheListOfRunsSaysWhatFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.sample("s")
	w.Exec(`UPDATE runs SET report = report || '{"failed_open":["summarise: <b>no memory"]}' WHERE state = 'done'`)
	page := w.signedIn(w.Key).get(http.StatusOK, "/console/sessions/s/runs")
	if !strings.Contains(page, "done without what failed: <bdi>summarise: &lt;b&gt;no memory</bdi>") {
		t.Errorf("the runs: %s", page[strings.Index(page, "<main"):])
	}
}

// TestTheOverviewOfAnOperatorSumsAllTenants looks at what two tenants have used.
func TestTheOverviewOfAnOperatorSumsAllTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sampleWithoutWorker("s")
	_, key := w.NewTenant("other")
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/theirs", `{"format":"openai-chat"}`, "Authorization", "Bearer "+key)
	w.Server.Close(t.Context()) // what was counted is written, and not over what follows
	w.Exec(`INSERT INTO usage_days SELECT id, current_date, 1000, 0, 0, 0, 7000, 0, 0, 0 FROM tenants ON CONFLICT (tenant_id, day) DO UPDATE SET messages = 1000, tokens_served = 7000`)
	w.Exec(`INSERT INTO usage_sessions (tenant_id, session_key, over_window) SELECT tenant_id, key, true FROM sessions ON CONFLICT (tenant_id, session_key) DO UPDATE SET over_window = true`)
	page := w.operator().get(http.StatusOK, "/console/")
	for _, want := range []string{`">2</strong> tenants`, `">2</strong> sessions`, `">2</strong> over their window`, `">1</strong> wait to be compacted, the first since`, "2,000, ", "14,000 served"} {
		if !strings.Contains(page, want) {
			t.Errorf("the overview has no %s: %s", want, page[strings.Index(page, "<main"):])
		}
	}
}

func ids(page string) (list []string) {
	for _, piece := range strings.Split(page, ` id="s`)[1:] {
		id, _, _ := strings.Cut(piece, `"`)
		list = append(list, id)
	}
	return list
}

// TestEveryPageIsThereForEachRole opens every page with a key of each role: it is shown, or says which scope the key
// lacks. Nobody is signed out by it.
func TestEveryPageIsThereForEachRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill := w.oneOfEach("s")
	visitors := map[session.Role]*visitor{"operator of all": w.operator()}
	for _, role := range session.Roles() {
		made := apitest.Decoded[struct{ Key string }](w, w.Must(http.StatusCreated, "POST", "/v1/keys", `{"role":"`+string(role)+`"}`))
		visitors[role] = w.signedIn(made.Key)
	}
	for _, pattern := range w.patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		if method != http.MethodGet || regexp.MustCompile(`/events|/plot`).MatchString(path) {
			continue // a stream, a picture
		}
		for role, v := range visitors {
			status, page := v.look("/console" + fill.Replace(path))
			seen := console.SeenBy(pattern, role == "operator of all")
			lacks := strings.Contains(page, "scope_missing") && role != session.Admin
			switch {
			case seen && status == http.StatusOK, seen && status == http.StatusForbidden && lacks:
			case !seen && status == http.StatusForbidden && strings.Contains(page, "for the keys of"):
			case strings.Contains(path, "{erasure}") && role == "operator of all" && status == http.StatusNotFound: // it is a tenant's
			default:
				t.Errorf("%s as %s: %d %s", path, role, status, noteOf(page))
			}
			if !strings.Contains(page, "Sign out") {
				t.Errorf("%s signs %s out", path, role)
			}
		}
	}
}

// noteOf returns what a page says is wrong.
func noteOf(page string) string {
	_, note, _ := strings.Cut(page, `<p class="note`)
	note, _, _ = strings.Cut(note, "</main>")
	return note
}

// eraseOne erases a session, and returns the id of the erasure.
func (w *world) eraseOne() string {
	w.Helper()
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/gone", `{"metadata":{"user":"gone"}}`)
	return apitest.Decoded[struct{ ID string }](w, w.Ask("POST", "/v1/erasures", `{"metadata":{"user":"gone"}}`).Body.String()).ID
}

// TestRiverUIIsForOperators looks at jobs, and changes some.
func TestRiverUIIsForOperators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sampleWithoutWorker("s")
	w.signedIn(w.Key).get(http.StatusForbidden, "/console/jobs/")
	w.signedIn(w.Key).get(http.StatusForbidden, "/console/jobs/api/jobs")
	w.visitor().post(http.StatusOK, "/console/jobs/api/jobs/cancel", nil) // the form of the sign-in
	v := w.operator()
	if page := v.raw(http.MethodGet, "/console/jobs/", ""); !strings.Contains(page, "<title>River</title>") {
		t.Errorf("River UI: %s", page)
	}
	found := apitest.Decoded[struct{ Data []struct{ ID int64 } }](w, v.raw(http.MethodGet, "/console/jobs/api/jobs?state=available", ""))
	if len(found.Data) == 0 {
		t.Fatal("there are no jobs")
	}
	ids := fmt.Sprintf(`{"ids":["%d"]}`, found.Data[0].ID)
	for path, want := range map[string]string{
		"/api/jobs/cancel": `{"status":"ok"}`, "/api/jobs/retry": `{"status":"ok"}`, "/api/jobs/delete": "nothing else", "/api/queues/compaction/pause": "nothing else",
	} {
		if got := v.raw(http.MethodPost, "/console/jobs"+path, ids); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := v.raw(http.MethodPost, "/console/jobs/api/jobs/retry", `{"ids":["999999999"]}`); !strings.Contains(got, "no such job") {
		t.Errorf("a job that is not there: %s", got)
	}
	trail := v.get(http.StatusOK, "/console/audit")
	for _, action := range []string{"job.cancel", "job.retry"} {
		if !strings.Contains(trail, action) {
			t.Errorf("the trail has no %s", action)
		}
	}
	v.post(http.StatusForbidden, "/console/jobs/api/jobs/cancel", nil, "Sec-Fetch-Site", "cross-site")
}
