package console_test

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/console"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// clicked are the forms that TestAPersonFindsASessionAndWhatLeftIt clicks in a browser, and what others post.
var clicked = map[string]bool{
	"POST /policy": true, "POST /sessions/{id}/policy": true, "POST /playground": true, "POST /failures": true,
	"POST /recompactions": true, "POST /recompactions/{recompaction}/{do}": true, "POST /tenants/{tenant}": true,
	"POST /sessions/{id}/pins/{ref}": true, "POST /sessions/{id}/pins/{ref}/unpin": true,
}

// TestEveryFormDoesWhatItSays fills the forms of pages in as they stand there, and looks at what the API says then.
func TestEveryFormDoesWhatItSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.sample("s")
	v := &filler{visitor: w.signedIn(w.Key), posted: map[string]bool{}}
	v.tokens()
	v.wholeSession()
	v.archive()
	v.subject()
	v.keys()
	if !w.lacks("/v1/webhooks") {
		v.webhooks()
	}
	v.replays()
	v.scheduled()
	v.failures()
	idle := newWorld(t) // without a worker: a replay does not end before it is cancelled
	(&filler{visitor: idle.signedIn(idle.Key), posted: v.posted}).cancelledReplay()
	o := &filler{visitor: w.operator(), posted: v.posted}
	o.tenants()
	o.operators()
	o.campaign()
	for _, pattern := range w.patterns() {
		if strings.HasPrefix(pattern, "POST ") && !clicked[pattern] && !v.posted[pattern] {
			t.Errorf("no test fills in the form of %s", pattern)
		}
	}
}

// filler fills in forms, and notes which.
type filler struct {
	*visitor
	posted map[string]bool // routes
}

// fill fills in the form of a page that leads to an address and has a button, and returns the page that comes then.
func (f *filler) fill(status int, page, to, word string, values ...string) string {
	f.Helper()
	form, has := formOf(f.get(http.StatusOK, page), to, word)
	if !has {
		f.Fatalf("%s has no form for %s that says %q", page, to, word)
	}
	for i := 0; i < len(values); i += 2 {
		if !form.Has(values[i]) {
			f.Fatalf("the form %q has no field %s", word, values[i])
		}
		form.Set(values[i], values[i+1])
	}
	for _, pattern := range console.Patterns() {
		like := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(strings.TrimPrefix(pattern, "POST "), `[^/]+`)
		if regexp.MustCompile(`^/console` + like + `$`).MatchString(to) {
			f.posted[pattern] = true
		}
	}
	return f.post(status, to, form)
}

// formOf returns the fields of a form with the values that they have on a page.
func formOf(page, to, word string) (url.Values, bool) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, false
	}
	for form := range root.Descendants() {
		if form.Data != "form" {
			continue
		}
		values, has := url.Values{}, false
		for n := range form.Descendants() {
			switch n.Data {
			case "input", "textarea":
				if attribute(n, "type") != "checkbox" {
					values.Set(attribute(n, "name"), attribute(n, "value"))
				}
			case "select":
				option := n.FirstChild
				value := option.FirstChild.Data
				for _, a := range option.Attr {
					if a.Key == "value" { // of all, it is empty
						value = a.Val
					}
				}
				values.Set(attribute(n, "name"), value)
			case "button":
				leads := cmp.Or(attribute(n, "formaction"), attribute(form, "action"))
				has = has || leads == to && n.FirstChild.Data == word
			}
		}
		if has {
			return values, true
		}
	}
	return nil, false
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// secretOf returns what a page shows once.
func (f *filler) secretOf(page string) string {
	f.Helper()
	_, secret, _ := strings.Cut(page, "Keep it now")
	_, secret, _ = strings.Cut(secret, `data-copy="`)
	secret, _, found := strings.Cut(secret, `"`)
	if !found {
		f.Fatalf("nothing is shown once: %s", page)
	}
	return secret
}

// status returns what the API answers to a key that reads something.
func (f *filler) status(key, path string) int {
	return f.Ask("GET", path, "", "Authorization", "Bearer "+key).Code
}

// button returns the address of the first form of a page that a button sends.
func (f *filler) button(page, word string) string {
	f.Helper()
	root, err := html.Parse(strings.NewReader(f.get(http.StatusOK, page)))
	if err != nil {
		f.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Data == "button" && n.FirstChild != nil && strings.HasPrefix(n.FirstChild.Data, word) {
			for at := n.Parent; at != nil; at = at.Parent {
				if at.Data == "form" {
					return attribute(at, "action")
				}
			}
		}
	}
	f.Fatalf("%s has no button %q", page, word)
	return ""
}

func (f *filler) tokens() {
	const page = "/console/sessions/s/manage"
	to := "/console/sessions/s/tokens"
	for _, wrong := range []string{"soon", "0", "-5", "1.5"} {
		f.fill(http.StatusUnprocessableEntity, page, to, "Make a token", "minutes", wrong, "scope", "read")
	}
	token := f.secretOf(f.fill(http.StatusOK, page, to, "Make a token", "name", "agent", "minutes", "5", "scope", "read"))
	if got := f.status(token, "/v1/sessions/s/context"); got != http.StatusOK {
		f.Errorf("the token reads its session: %d", got)
	}
	f.fill(http.StatusOK, page, f.button(page, "Revoke"), "Revoke")
	f.Until("the token is refused", func() bool { return f.status(token, "/v1/sessions/s/context") == http.StatusUnauthorized })
}

func (f *filler) wholeSession() {
	const page = "/console/sessions/s/manage"
	f.fill(http.StatusUnprocessableEntity, page, "/console/sessions/s/fork", "Fork", "id", "copy", "seq", "last")
	f.fill(http.StatusOK, page, "/console/sessions/s/fork", "Fork", "id", "copy", "seq", "3")
	if got := f.session("copy").LastSeq; got != 3 {
		f.Errorf("the fork has %d messages", got)
	}
	if text := f.fill(http.StatusOK, page, "/console/sessions/s/export", "Export"); !strings.Contains(text, `"id":"s"`) {
		f.Errorf("the export is %.200s", text)
	}
	f.fill(http.StatusOK, "/console/sessions/copy/manage", "/console/sessions/copy/hold", "Place a hold", "reason", "a court")
	f.fill(http.StatusConflict, "/console/sessions/copy/manage", "/console/sessions/copy/erase", "Erase", "sure", "copy")
	if holds := f.get(http.StatusOK, "/console/holds"); !strings.Contains(holds, "a court") {
		f.Errorf("the hold is not listed: %s", holds)
	}
	f.fill(http.StatusOK, "/console/sessions/copy/manage", "/console/sessions/copy/hold", "Lift the hold")
	f.fill(http.StatusUnprocessableEntity, "/console/sessions/copy/manage", "/console/sessions/copy/erase", "Erase", "sure", "s")
	f.session("copy")
	f.fill(http.StatusOK, "/console/sessions/copy/manage", "/console/sessions/copy/erase", "Erase", "sure", "copy")
	f.Must(http.StatusNotFound, "GET", "/v1/sessions/copy", "")
	f.fill(http.StatusOK, "/console/sessions/s", "/console/sessions/s/compact", "Compact now")
	runs := apitest.Decoded[protocol.List[session.Run]](f, f.Must(http.StatusOK, "GET", "/v1/sessions/s/runs?limit=1", ""))
	if runs.Data[0].Cause != "manual" {
		f.Errorf("nobody has asked for the last run: %+v", runs.Data[0])
	}
	f.fill(http.StatusOK, "/console/sessions/s/checkpoints/1", "/console/sessions/s/checkpoints/1/restore", "Restore checkpoint 1")
}

// session reads a session, which must be there.
func (f *filler) session(id string) protocol.Session {
	f.Helper()
	return apitest.Decoded[protocol.Session](f, f.Must(http.StatusOK, "GET", "/v1/sessions/"+id, ""))
}

func (f *filler) archive() {
	f.Append("old", "a message of long ago")
	f.fill(http.StatusOK, "/console/sessions/old/manage", "/console/sessions/old/archive", "Archive")
	f.Until("archived", func() bool {
		return strings.Contains(f.get(http.StatusOK, "/console/archives"), ">archived<")
	})
	f.fill(http.StatusOK, "/console/archives", "/console/sessions/old/unarchive", "Restore")
	f.Until("restored", func() bool { return f.Ask("GET", "/v1/sessions/old/context", "").Code == http.StatusOK })
}

func (f *filler) subject() {
	f.Must(http.StatusCreated, "PUT", "/v1/sessions/theirs", `{"metadata":{"user":"u9"}}`)
	const page = "/console/erasures"
	f.fill(http.StatusUnprocessableEntity, page, page, "Erase", "metadata", `{"user":"u9"}`, "sure", "yes")
	f.fill(http.StatusUnprocessableEntity, page, page, "Erase", "metadata", `user u9`, "sure", "erase")
	f.fill(http.StatusUnprocessableEntity, page, page, "Erase", "metadata", `{}`, "sure", "erase")
	f.session("theirs")
	f.fill(http.StatusOK, page, page, "Erase", "metadata", `{"user":"u9"}`, "sure", "erase")
	f.Until("erased", func() bool { return f.Ask("GET", "/v1/sessions/theirs", "").Code == http.StatusNotFound })
}

func (f *filler) keys() {
	const page = "/console/keys"
	for _, wrong := range []string{"30d", "0", "-1", "99999999999999"} {
		f.fill(http.StatusUnprocessableEntity, page, page, "Make a key", "name", "k", "role", "viewer", "days", wrong)
	}
	key := f.secretOf(f.fill(http.StatusOK, page, page, "Make a key", "name", "k", "role", "viewer", "days", "30"))
	made := apitest.Decoded[protocol.List[session.APIKey]](f, f.Must(http.StatusOK, "GET", "/v1/keys", "")).Data[0]
	if made.Name != "k" || made.ExpiresAt == nil || made.ExpiresAt.Sub(made.CreatedAt).Hours() != 30*24 {
		f.Errorf("the key is %+v", made)
	}
	if got := f.status(key, "/v1/sessions"); got != http.StatusOK {
		f.Errorf("the key reads: %d", got)
	}
	next := f.secretOf(f.fill(http.StatusOK, page, page+"/"+made.ID.String()+"/rotate", "Rotate"))
	if next == key || f.status(next, "/v1/sessions") != http.StatusOK {
		f.Errorf("the key in its place does not read")
	}
	f.fill(http.StatusOK, page, page+"/"+made.ID.String()+"/revoke", "Revoke")
	f.Until("the key is refused", func() bool { return f.status(key, "/v1/sessions") == http.StatusUnauthorized })
	f.exports()
}

// exports reads the archives of all sessions and of those that a filter finds; what is refused is a page.
func (f *filler) exports() {
	f.Append("unlike", "a session without metadata")
	all := f.fill(http.StatusOK, "/console/usage", "/console/export", "Export all")
	some := f.fill(http.StatusOK, "/console/sessions", "/console/export", "Export these", "metadata", `{"user":"u1"}`)
	for id, in := range map[string]string{"s": all, "unlike": all, "s,": some} {
		if !strings.Contains(in, `"id":"`+strings.TrimSuffix(id, ",")+`"`) {
			f.Errorf("%s is not in the export %.200s", id, in)
		}
	}
	if strings.Contains(some, "unlike") {
		f.Errorf("the export of a filter has all sessions: %.200s", some)
	}
	wrong := f.fill(http.StatusUnprocessableEntity, "/console/sessions", "/console/export", "Export these", "metadata", "user u1")
	if !strings.Contains(wrong, "must be an object of strings") || !strings.Contains(wrong, "Sign out") {
		f.Errorf("a filter that is none: %s", wrong)
	}
	viewer := apitest.Decoded[struct{ Key string }](f, f.Must(http.StatusCreated, "POST", "/v1/keys", `{"role":"viewer"}`)).Key
	for _, page := range []string{"/console/export", "/console/sessions/s/export"} {
		if refused := f.signedIn(viewer).post(http.StatusForbidden, page, nil); !strings.Contains(refused, "scope_missing") {
			f.Errorf("%s without its scope: %s", page, refused)
		}
	}
	const again = "/console/recompactions/new"
	form, _ := formOf(f.get(http.StatusOK, "/console/sessions"), again, "Recompact these: dry run")
	form.Set("format", "gemini")
	if plan := f.get(http.StatusOK, again+"?plan=1&"+form.Encode()); !strings.Contains(plan, `<dd class="num">0, 0 messages`) {
		f.Errorf("a recompaction of a format: %s", plan)
	}
	if plan := f.get(http.StatusOK, again+"?plan=1&due=on"); !strings.Contains(plan, "are compacted without a recompaction") || strings.Contains(plan, "form.confirm") {
		f.Errorf("a recompaction of due sessions: %s", plan)
	}
	if plan := f.get(http.StatusOK, again+"?plan=1&quarantined=on"); !strings.Contains(plan, "quarantined or not") || strings.Contains(plan, "form.confirm") {
		f.Errorf("a recompaction of quarantined sessions: %s", plan)
	}
}

func (f *filler) webhooks() {
	const page = "/console/webhooks"
	f.fill(http.StatusUnprocessableEntity, page, page, "Send events", "url", "not an address")
	f.secretOf(f.fill(http.StatusOK, page, page, "Send events", "url", "https://hooks.example/varve", "name", "mine"))
	f.fill(http.StatusOK, page, f.button(page, "Test"), "Test")
	f.fill(http.StatusOK, page, f.button(page, "Delete"), "Delete")
	if list := f.get(http.StatusOK, page); strings.Contains(list, "hooks.example/varve</bdi>") {
		f.Errorf("the webhook is still there: %s", list)
	}
}

func (f *filler) replays() {
	const page = "/console/replays"
	for _, wrong := range [][]string{{"windows", "wide"}, {"policy", "{"}, {"sample", "some"}, {"metadata", "user u1"}, {"policies", "tenant, nobody's"}} {
		f.fill(http.StatusUnprocessableEntity, page, page, "Start", wrong...)
	}
	f.fill(http.StatusOK, page+"?policy="+url.QueryEscape(`{"target":0.2}`), page, "Start", "policies", "tenant", "windows", "20000, 40000", "sample", "3")
	one := f.replay()
	f.Until("it has ended", func() bool { return strings.Contains(f.get(http.StatusOK, one), "What the policies keep and cost") })
	if report := f.get(http.StatusOK, one); !strings.Contains(report, "tenant, changed") || !strings.Contains(report, "far calls") {
		t := report[strings.Index(report, "<main"):]
		f.Errorf("the report: %s", t)
	}
	if plot := f.get(http.StatusOK, one+"/plot"); !strings.HasPrefix(plot, "<svg") {
		f.Errorf("the plot: %.200s", plot)
	}
}

// replay returns the page of the newest replay.
func (f *filler) replay() string {
	f.Helper()
	return regexp.MustCompile("/console/replays/[0-9a-f-]{36}").FindString(f.get(http.StatusOK, "/console/replays"))
}

func (f *filler) scheduled() {
	const page, begin = "/console/recompactions", "2035-01-31T22:00:00Z"
	plan := page + "/new?" + url.Values{"plan": {"1"}, "policy": {`{"target":0.3}`}, "start_at": {begin}}.Encode()
	if wrong := f.get(http.StatusUnprocessableEntity, page+"/new?plan=1&start_at=tomorrow"); !strings.Contains(wrong, "start_at") {
		f.Errorf("a time that is none: %s", wrong)
	}
	one := regexp.MustCompile(page + "/[0-9a-f-]{36}").FindString(f.fill(http.StatusOK, plan, page, "Start"))
	if list := f.Must(http.StatusOK, "GET", "/v1/admin/recompactions?limit=1", ""); !strings.Contains(list, `"start_at":"`+begin+`"`) {
		f.Errorf("it begins at another time: %s", list)
	}
	if shown := f.get(http.StatusOK, one); !strings.Contains(shown, begin) {
		f.Errorf("nobody sees when it begins: %s", shown)
	}
	f.fill(http.StatusOK, one, one+"/cancel", "Cancel")
}

// failures retries a kind of failures of which one is on the first page and one far behind, and then one alone.
func (f *filler) failures() {
	const page = "/console/failures"
	f.Must(http.StatusCreated, "PUT", "/v1/sessions/broken", `{"format":"openai-chat"}`)
	f.Exec(`
		INSERT INTO sessions
		SELECT (jsonb_populate_record(s, jsonb_build_object('key', md5(n::text)::uuid, 'id', 'broken ' || n))).*
		  FROM sessions s, generate_series(1, 601) n
		 WHERE s.tenant_id = $1 AND s.id = 'broken'`, f.Tenant)
	f.Exec(`
		INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, error, next_try_at, since)
		SELECT $1, md5(n::text)::uuid, gen_random_uuid(), 0, CASE WHEN n IN (1, 601) THEN E'rare <b>\u202e\n' ELSE 'common' END,
		       now() + interval '1 day', now() - n * interval '1 second'
		  FROM generate_series(1, 601) n`, f.Tenant)
	const kind = `name="kind" value="([0-9a-f]{16})">\s*<h2><bdi>rare &lt;b&gt;`
	rare := regexp.MustCompile(kind).FindStringSubmatch(f.get(http.StatusOK, page))
	if rare == nil {
		f.Fatal("the rare failure has no form")
	}
	first := f.post(http.StatusOK, page, url.Values{"kind": rare[1:]})
	if !strings.Contains(first, "1 tried again now.") {
		f.Errorf("a retry of a kind: %s", first[strings.Index(first, "<main"):])
	}
	form, more := formOf(first, page, "Go on with the older ones of this error")
	if second := f.post(http.StatusOK, page, form); !more || !strings.Contains(second, "1 tried again now.") || strings.Contains(second, "Go on") {
		f.Errorf("the older ones: %s", second[strings.Index(second, "<main"):])
	}
	runs := func(id string) int {
		return len(apitest.Decoded[protocol.List[session.Run]](f, f.Must(http.StatusOK, "GET", "/v1/sessions/"+id+"/runs", "")).Data)
	}
	if runs("broken%201") == 0 || runs("broken%20601") == 0 || runs("broken%202") != 0 {
		f.Errorf("other sessions were tried again")
	}
	f.post(http.StatusOK, page, url.Values{"session": {"broken 2"}})
	if runs("broken%202") == 0 || runs("broken%203") != 0 {
		f.Errorf("not the one session was tried again")
	}
}

func (f *filler) cancelledReplay() {
	const page = "/console/replays"
	f.fill(http.StatusOK, page, page, "Start")
	f.fill(http.StatusConflict, page, page, "Start")
	if ended := f.fill(http.StatusOK, f.replay(), f.replay()+"/cancel", "Cancel"); !strings.Contains(ended, "cancel") {
		f.Errorf("after the end: %s", ended)
	}
}

func (f *filler) tenants() {
	page := "/console/tenants"
	made := f.fill(http.StatusOK, page, page, "Make a tenant", "name", "newcomer")
	key := f.secretOf(made)
	if got := f.status(key, "/v1/sessions"); got != http.StatusOK {
		f.Errorf("the new tenant's key reads: %d", got)
	}
	page = regexp.MustCompile(page + "/[0-9a-f-]{36}").FindString(made)
	f.fill(http.StatusUnprocessableEntity, page, page+"/keys", "Make a key", "role", "viewer", "days", "a week")
	second := f.secretOf(f.fill(http.StatusOK, page, page+"/keys", "Make a key", "name", "second", "role", "viewer"))
	f.fill(http.StatusOK, page, f.button(page, "Revoke …"+second[len(second)-4:]), "Revoke …"+second[len(second)-4:])
	f.Until("the key is refused", func() bool { return f.status(second, "/v1/sessions") == http.StatusUnauthorized })
	f.fill(http.StatusOK, page, page+"/hold", "Place a hold", "reason", "a court")
	f.fill(http.StatusConflict, page, page+"/delete", "Delete the tenant", "sure", "newcomer")
	f.fill(http.StatusOK, page, page+"/hold", "Lift the hold")
	f.fill(http.StatusUnprocessableEntity, page, page+"/delete", "Delete the tenant", "sure", "new")
	f.fill(http.StatusOK, page, page+"/delete", "Delete the tenant", "sure", "newcomer")
	f.Until("the tenant's key is refused", func() bool { return f.status(key, "/v1/sessions") != http.StatusOK })
}

func (f *filler) operators() {
	const page = "/console/operators"
	key := f.secretOf(f.fill(http.StatusOK, page, page, "Make a key", "name", "night shift"))
	if got := f.status(key, "/v1/admin/tenants"); got != http.StatusOK {
		f.Errorf("the operator's key reads: %d", got)
	}
	f.fill(http.StatusOK, page, f.button(page, "Revoke"), "Revoke") // the newest is the first
	f.Until("the key is refused", func() bool { return f.status(key, "/v1/admin/tenants") == http.StatusUnauthorized })
}

func (f *filler) campaign() {
	const page = "/console/campaigns"
	plan := page + "/new?plan=1&policy=" + url.QueryEscape(`{"target":0.3}`)
	f.fill(http.StatusOK, plan, page, "Start")
	one := regexp.MustCompile(page + "/[0-9a-f-]{36}").FindString(f.get(http.StatusOK, page))
	f.Until("it has ended", func() bool { _, can := formOf(f.get(http.StatusOK, one), one+"/rollback", "Roll back"); return can })
	f.fill(http.StatusOK, one, one+"/rollback", "Roll back")
}
