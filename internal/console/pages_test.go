package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/console"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// made is what an API says of something that it has made.
type made struct {
	ID    string
	Token string `json:"confirm_token"`
}

// oneOfEach fills a world with what every page is about, and returns what fills their routes in.
func (w *world) oneOfEach(id string) *strings.Replacer {
	w.Helper()
	create := func(status int, path, body string, headers ...string) made {
		return apitest.Decoded[made](w, w.Must(status, "POST", path, body, headers...))
	}
	w.work()
	w.sample(id)
	erased := w.eraseOne()
	for path, body := range map[string]string{"/pins/m1": `{"note":"why"}`, "/hold": `{"reason":"a court"}`} {
		w.Must(http.StatusOK, "PUT", "/v1/sessions/"+id+path, body)
	}
	create(http.StatusCreated, "/v1/sessions/"+id+"/tokens", `{"name":"agent"}`)
	hook := ""
	if !w.lacks("/v1/webhooks") {
		hook = create(http.StatusCreated, "/v1/webhooks", `{"url":"https://hooks.example/`+strings.Repeat("a-long-path", 20)+`"}`).ID
	}
	w.Append("failing", "hi")
	w.Exec(`INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, error, next_try_at, quarantined_at)
		SELECT tenant_id, key, key, 0, $1, now() + interval '1 day', now() FROM sessions WHERE id = 'failing'`, strings.Repeat("a_long_error_without_a_space.", 12))
	const again, everywhere, replays = "/v1/admin/recompactions", "/v1/admin/tenants/recompactions", "/v1/admin/replays"
	all := `{"filter":{"metadata":{"user":"u1"}},"policy":{"target":0.2}`
	plan := create(http.StatusOK, again, all+`,"dry_run":true}`)
	one := create(http.StatusAccepted, again, all+`,"confirm_token":"`+plan.Token+`"}`).ID
	ended := func(list string, headers ...string) {
		w.Until("ended: "+list, func() bool {
			return !regexp.MustCompile(`"state":"(queued|running|scheduled)"`).MatchString(w.Must(http.StatusOK, "GET", list, "", headers...))
		})
	}
	ended(again)
	replay := create(http.StatusAccepted, replays, `{"policies":["tenant","default"]}`).ID
	ended(replays)
	auth := []string{"Authorization", "Bearer " + w.operatorKey()}
	group := create(http.StatusAccepted, everywhere, all+`}`, auth...).ID
	ended(again)
	run := apitest.Decoded[protocol.List[session.Run]](w, w.Must(http.StatusOK, "GET", "/v1/sessions/"+id+"/runs?limit=1", "")).Data[0].ID
	return strings.NewReplacer("{$}", "", "{id}", id, "{seq}", "2", "{ref}", "m1-2", "{n}", "1", "{to}", "1", "{run}", run.String(),
		"{tenant}", w.Tenant.String(), "{erasure}", erased, "{webhook}", hook, "{recompaction}", one, "{replay}", replay, "{group}", group)
}

// pagesFor returns the addresses of all pages that tenants or operators look at.
func (w *world) pagesFor(operators bool, fill *strings.Replacer) (list []string) {
	for _, pattern := range w.patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		isPage := method == http.MethodGet && path != "/events" && !strings.HasSuffix(path, "/plot") // a stream, a picture
		isTenants := operators && strings.Contains(path, "{erasure}")
		if isPage && !isTenants && console.SeenBy(pattern, operators) {
			list = append(list, "/console"+fill.Replace(path))
		}
	}
	return list
}

// scripts says whether the browser runs those of pages.
func scripts(run bool) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !run})
		return err
	})
}

// TestEveryPageFitsANarrowScreenAndNeedsNoScripts opens all pages at 400 px, once without scripts and once with them:
// nothing is beside the screen but in what scrolls by itself, and what is read is the same.
func TestEveryPageFitsANarrowScreenAndNeedsNoScripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	fill := w.oneOfEach(strings.Repeat("an-id-without-a-space.", 9))
	b.do("a narrow screen without scripts", chromedp.EmulateViewport(400, 800), scripts(false))
	b.narrow("/console/sign-in")
	b.do("sign in", b.open("/console/sessions"), write("#key", w.Key+"\n"), see(".finders"))
	plan := "?plan=1&policy=%7B%22target%22%3A0.2%7D"
	pages := append(w.pagesFor(false, fill), "/console/recompactions/new"+plan, "/console/sessions/failing",
		fill.Replace("/console/sessions/{id}/preview")+plan, fill.Replace("/console/sessions/{id}/timeline?over=cost"))
	if !w.lacks("/v1/search") {
		pages = append(pages, "/console/sessions?q=limit")
	}
	for _, page := range pages {
		b.narrow(page)
	}
	b.withoutScripts()
	b.do("sign in as an operator", b.open("/console/tenants"), write("#key", w.operatorKey()+"\n"), see("table"))
	for _, page := range append(w.pagesFor(true, fill), "/console/campaigns/new"+plan) {
		b.narrow(page)
	}
}

// narrow holds a page to what it says without scripts, and to the width of the screen; with -short each fourth page.
func (b *browser) narrow(page string) {
	b.Helper()
	if b.looks++; testing.Short() && b.looks%4 != 0 { // a look at a page takes a second of the processor
		return
	}
	const wide = `(() => {
		const width = document.documentElement.clientWidth, isBeside = e => e.getBoundingClientRect().right > width + 1
		if (document.documentElement.scrollWidth <= width) return ''
		return [...document.querySelectorAll('body *')].filter(e => isBeside(e) && !e.closest('.scroll, .aligned')).map(e => e.outerHTML.slice(0, 150)).slice(0, 4).join('\n') || 'something'
	})()`
	// Times go on and figures may change, and buttons that copy are of scripts.
	const says = `(() => {
		document.querySelectorAll('main time, main [data-copy]').forEach(e => e.remove())
		return document.querySelector('main').innerText.replace(/[\d.,–]+/g, '#').trim()
	})()`
	b.do(page, scripts(false), b.open(page), see("main h1"))
	if beside := ask[string](b, page, wide); beside != "" {
		b.Errorf("%s is wider than its screen: %s", page, beside)
	}
	without := ask[string](b, page, says)
	b.do(page, scripts(true), b.open(page), see("main h1"))
	if with := ask[string](b, page, says); with != without || len(with) < 40 {
		b.Errorf("%s says %q without scripts, %q with them", page, without, with)
	}
	b.do(page, scripts(false))
}

// withoutScripts filters, begins a recompaction and cancels it, and signs out.
func (b *browser) withoutScripts() {
	b.Helper()
	b.do("filter", b.open("/console/sessions"), write("#metadata", `{"user":"u1"}`), click(`.filter button:not([formaction])`), see("tbody a"))
	if ids := ask[int](b, "the filtered", `document.querySelectorAll('tbody tr').length`); ids != 1 {
		b.Errorf("%d sessions are like this", ids)
	}
	b.do("begin", click("[formaction='/console/recompactions/new']"), see("form.confirm"), b.open("/console/recompactions/new?plan=1&start_at=2035-01-31T22:00:00Z"),
		click("form.confirm button"), click("form[action$='/cancel'] button"), see(".state.cancelled"))
	b.do("sign out", click(".top form button"), see("#key"))
	if got := b.Must(http.StatusOK, "GET", "/v1/admin/recompactions?limit=1", ""); !strings.Contains(got, `"state":"cancelled"`) {
		b.Errorf("nothing was cancelled: %s", got)
	}
}

// TestTextsOfTenantsAreTextsOnEveryPage opens all pages of a world in which everything that a tenant, its users and its
// servers can name has a hostile text.
func TestTextsOfTenantsAreTextsOnEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill := w.oneOfEach("s")
	for i, text := range slices.Backward(hostile) { // the first is on the first page of every list
		w.name(i, text)
	}
	w.Exec(`UPDATE webhooks SET last_error = name`)
	// That of a session which no recompaction is of: one that succeeds ends it.
	w.Exec(`UPDATE session_failures SET error = (SELECT min(model) FROM sessions WHERE model LIKE '%<script>alert%')`)
	tenant, operator := w.signedIn(w.Key), w.operator()
	seen, script := map[string]int{}, regexp.MustCompile(`(&lt;|\\u003c)script(&gt;|\\u003e)alert`)
	for operators, v := range map[bool]*visitor{false: tenant, true: operator} {
		for _, page := range w.pagesFor(operators, fill) {
			if body := v.get(http.StatusOK, page); script.MatchString(body) {
				seen[strings.Split(page, "/")[2]]++
			}
		}
	}
	for _, page := range []string{"sessions", "failures", "recompactions", "webhooks", "keys", "holds", "usage", "fleet", "tenants", "campaigns", "archives"} {
		if seen[page] == 0 && !w.lacks(console.Asked("GET /"+page)) {
			t.Errorf("no hostile text is on the page of %s: %v", page, seen)
		}
	}
}

// name gives a text to one of everything; what the API refuses is not there.
func (w *world) name(i int, text string) {
	w.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		w.Fatal(err)
	}
	q, of := string(quoted), "/v1/sessions/"+url.PathEscape(text)
	ask := func(method, path, body string, headers ...string) { w.Ask(method, path, body, headers...) }
	w.Must(http.StatusCreated, "PUT", of, `{"format":"openai-chat","model":`+q+`,"metadata":{"k":`+q+`}}`)
	w.Must(http.StatusCreated, "POST", of+"/messages", `{"messages":[{"role":"user","content":`+q+`}]}`)
	asleep := "/v1/sessions/" + url.PathEscape("asleep "+text)
	ask("PUT", asleep, "")
	ask("POST", asleep+"/archive", "")
	ask("PUT", of+"/hold", `{"reason":`+q+`}`)
	ask("POST", of+"/tokens", `{"name":`+q+`}`)
	ask("POST", "/v1/keys", `{"role":"viewer","name":`+q+`}`)
	ask("POST", "/v1/webhooks", fmt.Sprintf(`{"url":"https://hooks.example/%d","name":%s}`, i, q))
	filter := `{"filter":{"metadata":{"k":` + q + `}}`
	plan := apitest.Decoded[made](w, w.Ask("POST", "/v1/admin/recompactions", filter+`,"dry_run":true}`).Body.String())
	ask("POST", "/v1/admin/recompactions", filter+`,"confirm_token":"`+plan.Token+`","start_at":"2035-01-31T22:00:00Z"}`)
	operator := []string{"Authorization", "Bearer " + w.operatorKey()}
	ask("POST", "/v1/admin/tenants/recompactions", filter+`}`, operator...)
	ask("POST", "/v1/admin/tenants", `{"name":`+q+`}`, operator...)
}

// TestAnOpenPageEndsWithItsKey revokes the key under a page that follows what happens: the stream ends, and its forms do
// nothing but lead to the sign-in.
func TestAnOpenPageEndsWithItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Append("s", "hi")
	key := apitest.Decoded[struct{ ID, Key string }](w, w.Must(http.StatusCreated, "POST", "/v1/keys", `{"role":"operator"}`))
	v := w.signedIn(key.Key)
	page := v.get(http.StatusOK, "/console/sessions/s/messages/1")
	stream, err := v.client.Get(v.url + "/console/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream is %v", stream.Header)
	}
	w.Must(http.StatusNoContent, "DELETE", "/v1/keys/"+key.ID, "")
	if _, err := io.Copy(io.Discard, stream.Body); err != nil { // it returns when the stream ends
		t.Errorf("the stream: %v", err)
	}
	form, has := formOf(page, "/console/sessions/s/pins/m1", "Pin")
	if !has {
		t.Fatalf("the page has no form: %s", page)
	}
	if answer := v.post(http.StatusOK, "/console/sessions/s/pins/m1", form); !strings.Contains(answer, "Sign in") {
		t.Errorf("a form of the open page: %s", answer)
	}
	if pins := w.Must(http.StatusOK, "GET", "/v1/sessions/s/pins", ""); !strings.Contains(pins, `"data":[]`) {
		t.Errorf("pinned: %s", pins)
	}
}
