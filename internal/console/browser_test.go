package console_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the pictures of docs/console.md")

// browser is Chromium on the pages of a world.
type browser struct {
	*world
	ctx context.Context
	axe string // the source of axe-core, "" if it could not be had

	looks int // at pages, with -short

	mu    sync.Mutex
	wrong []string // what no page may do
}

func (w *world) browser() *browser {
	w.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = cmp.Or(path, found)
		}
	}
	if path == "" {
		w.Skip("there is no Chromium: apt-get install chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-prefers-reduced-motion", true), chromedp.UserDataDir(w.TempDir()), chromedp.WindowSize(1280, 900))
	allocated, stop := chromedp.NewExecAllocator(w.Context(), options...)
	w.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocated)
	w.Cleanup(end)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	w.Cleanup(cancel)
	b := &browser{world: w, ctx: ctx, axe: axeCore(w)}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		w.Fatal(err)
	}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	if err == nil {
		_, err = chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})
	}
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// axeCore returns the source of axe-core, which npm brings.
func axeCore(w *world) string {
	dir := w.TempDir()
	npm := exec.CommandContext(w.Context(), "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts",
		"--prefer-offline", "axe-core@4.14.1")
	if out, err := npm.CombinedOutput(); err != nil {
		w.Logf("without axe-core: %v %s", err, out)
		return ""
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		w.Fatal(err)
	}
	return string(source)
}

// listen notes requests to other hosts, and whatever the browser complains about.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if at := e.Request.URL; !strings.HasPrefix(at, b.url) && !strings.HasPrefix(at, "data:") {
			b.wrong = append(b.wrong, "a request to "+at)
		}
	case *runtime.EventExceptionThrown:
		b.wrong = append(b.wrong, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *cdplog.EventEntryAdded:
		// River UI asks whether it may make code of texts, and does without.
		evals := strings.Contains(e.Entry.URL, "/console/jobs/assets/") && strings.Contains(e.Entry.Text, "script-src")
		if e.Entry.Level != cdplog.EntryLevelVerbose && !evals {
			b.wrong = append(b.wrong, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	}
}

// action is a step of a person.
type action = chromedp.Action[chromedp.Void]

// do takes steps, and fails the test if the browser complains.
func (b *browser) do(what string, steps ...action) {
	b.Helper()
	const patience = 3 * time.Minute
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		page, _ := chromedp.Run(b.ctx, chromedp.OuterHTML(css("html")))
		b.Fatalf("%s: %v in %.3000s", what, err, page)
	}
	b.complaints(what)
}

// ask returns what a script answers.
func ask[T any](b *browser, what, script string) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
	b.complaints(what)
	return value
}

func (b *browser) complaints(what string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, wrong := range b.wrong {
		b.Errorf("%s: %s", what, wrong)
	}
	b.wrong = nil
}

// css is a selector.
type css = chromedp.CSS

func (b *browser) open(path string) action { return chromedp.Navigate(b.url + path) }
func click(selector string) action         { return chromedp.Click(css(selector)) }
func see(selector string) action           { return chromedp.WaitVisible(css(selector)) }
func write(selector, text string) action   { return chromedp.SendKeys(css(selector), text) }

// themes are the colours that a person prefers.
var themes = []string{"light", "dark"}

func theme(name string) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	})
}

// accessible holds the page that is open to axe-core, in both themes; with -short each third page, in one theme in turn:
// most of what axe-core looks at is the same on all of them.
func (b *browser) accessible(what string) {
	b.Helper()
	if b.axe == "" {
		return
	}
	const violations = `axe.run({resultTypes: ['violations']}).then(r => JSON.stringify(r.violations.filter(v => v.impact === 'serious' ||
		v.impact === 'critical').map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html + ' ' + n.failureSummary)])))`
	looked := themes
	if testing.Short() {
		b.looks++
		if b.looks%3 != 0 {
			return
		}
		looked = themes[b.looks%len(themes):][:1]
	}
	ask[int](b, what, b.axe+";0")
	for _, name := range looked {
		b.do(what, theme(name))
		if found := ask[string](b, what, violations); found != "[]" {
			b.Errorf("%s, %s: %s", what, name, found)
		}
	}
}

// picture writes what is seen to docs/, in both themes, if the test updates it.
func (b *browser) picture(name string) {
	b.Helper()
	if !*update {
		return
	}
	for _, of := range themes {
		b.do(name, theme(of))
		shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(fmt.Sprintf("../../docs/console-%s-%s.png", name, of), small(b.T, shot), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// small returns a picture with the 256 colours that it has most of.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	count, at := map[color.RGBA]int{}, func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	size := from.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			count[at(x, y)]++
		}
	}
	colours := make([]color.RGBA, 0, len(count))
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	palette := color.Palette{}
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	to := image.NewPaletted(size, palette)
	for y := range size.Dy() {
		for x := range size.Dx() {
			c := at(x, y)
			if _, known := nearest[c]; !known {
				nearest[c] = uint8(palette.Index(c))
			}
			to.SetColorIndex(x, y, nearest[c])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 150<<10 {
		t.Errorf("a picture has %d bytes", out.Len())
	}
	return out.Bytes()
}

// TestAPersonFindsASessionAndWhatLeftIt clicks through the console.
func TestAPersonFindsASessionAndWhatLeftIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	w.work()
	w.sample("add-a-limit")
	w.Append("caf%C3%A9%2F%C3%BCn%C3%AF", "a session with an odd id")

	b.do("sign in", b.open("/"), see("#key"))
	b.accessible("the form of the sign-in")
	b.do("sign in", write("#key", w.Key+"\n"), see(".cards"), b.open("/console/sessions"), see("tbody a"))
	b.accessible("the sessions")
	b.picture("sessions")

	b.do("open a session", click(`a[href="/console/sessions/add-a-limit"]`), see(".row.summarise"))
	b.accessible("a session")
	b.picture("session")
	before := ask[float64](b, "where it is", `scrollY`)
	b.do("the next change", chromedp.KeyEvent("n"))
	if after := ask[float64](b, "where it is", `scrollY`); after <= before {
		t.Errorf("the key n scrolls from %v to %v", before, after)
	}
	b.picture("changes")

	b.do("what happens meanwhile", chromedp.ScrollIntoView(css("h1")), chromedp.Func(func(context.Context, *chromedp.Target) error {
		w.Must(200, "POST", "/v1/sessions/add-a-limit/compact?wait=20", "")
		return nil
	}), see("[data-live]"))

	b.do("read a result back", click(".why .ref a[href*='/results/r']"), see("pre.content"))
	if content := ask[string](b, "a result", `document.querySelector('pre.content').textContent`); len(content) < 100 {
		t.Errorf("the result is %q", content)
	}
	b.accessible("a result")
	b.do("the timeline", b.open("/console/sessions/add-a-limit/timeline"), see(".plot .line"))
	b.accessible("the timeline")
	b.do("the timeline over time", click("a[href='?over=time']"), see("a[href='?over=time'][aria-current]"))
	b.do("the timeline over cost", click("a[href='?over=cost']"), see("a[href='?over=cost'][aria-current]"))
	b.accessible("the timeline over cost")
	b.picture("timeline")
	b.do("another format", b.open("/console/sessions/add-a-limit?format=anthropic"), see(".row.summarise"))
	b.accessible("another format")
	for _, tab := range []string{"pins", "checkpoints", "checkpoints/1", "runs", "results"} {
		b.do(tab, b.open("/console/sessions/add-a-limit/"+tab), see("table"))
		b.accessible(tab)
	}
	b.do("a run", b.open("/console/sessions/add-a-limit/runs"), click("tbody th a"), see("caption"))
	b.accessible("a run")
	b.do("pin a message", b.open("/console/sessions/add-a-limit/messages/2"), write("#note", "the task\n"), see(".note code"))
	b.accessible("a message")
	if pins := w.Must(200, "GET", "/v1/sessions/add-a-limit/pins", ""); !strings.Contains(pins, "the task") {
		t.Errorf("pinned: %s", pins)
	}
	b.do("a narrow screen", chromedp.EmulateViewport(400, 800), b.open("/console/sessions/add-a-limit"), see("article.row"))
	if ask[bool](b, "a narrow screen", `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("a page is wider than a narrow screen")
	}
	b.do("a preview", chromedp.EmulateViewport(1280, 900), b.open("/console/sessions/add-a-limit/preview"), write("#policy", `{"target": 0.2}`),
		click("form.wide button"), see("article.row.changed .view"))
	b.accessible("a preview")
	b.recompaction()
	b.policy()
	b.replay()
	b.do("the playground", b.open("/console/playground"), write("#text", `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}`),
		click("form.wide button"), see("article.row"))
	b.accessible("the playground")
	b.do("the overview", b.open("/console/"), see(".cards"))
	b.accessible("the overview")
	b.picture("overview")
	pages := []string{"usage", "models", "keys", "erasures", "sessions/add-a-limit/manage"}
	if !b.lacks("/v1/webhooks") {
		pages = append(pages, "webhooks", "webhooks/"+b.hook()+"/deliveries")
	}
	for _, page := range pages {
		b.do(page, b.open("/console/"+page), see(".controls, .raw, .facts"))
		b.accessible(page)
	}
	b.do("the audit trail", b.open("/console/audit"), see("table"))
	b.accessible("the audit trail")
	b.do("failures", b.open("/console/failures"), see("main h1"))
	b.accessible("failures")
	b.do("sign out", chromedp.EmulateViewport(1280, 900), click(".top form button"), see("#key"))
	b.operator()
}

// hook makes a webhook, and returns its id.
func (b *browser) hook() string {
	b.Helper()
	made := b.Must(201, "POST", "/v1/webhooks", `{"url":"https://hooks.example/varve"}`)
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(made)
}

// replay measures the tenant's policy beside another.
func (b *browser) replay() {
	b.Helper()
	b.do("the form of a replay", b.open("/console/replays"), see("[name=windows]"), chromedp.SetValue(css("[name=windows]"), "20000, 40000"))
	b.accessible("the form of a replay")
	b.do("start", click("form.confirm button"), see(".facts"))
	b.Until("it is measured", func() bool { return strings.Contains(b.Must(200, "GET", "/v1/admin/replays", ""), `"state":"done"`) })
	b.do("its report", chromedp.Reload(), see("img.picture"), chromedp.ScrollIntoView(css("img.picture")))
	if wide := ask[int](b, "the plot", `document.querySelector('img.picture').decode().then(() => document.querySelector('img.picture').naturalWidth)`); wide == 0 {
		b.Error("the plot is not drawn")
	}
	b.accessible("a replay")
	b.picture("replay")
}

// policy changes a field of the tenant's policy, and one to what no policy may have.
func (b *browser) policy() {
	b.Helper()
	trigger := `[name="/trigger"]`
	b.do("the policy", b.open("/console/policy"), see(trigger), chromedp.SetValue(css(trigger), "7"), click(".stick button"), see(".confirm"))
	if wrong := ask[string](b, "a wrong policy", `document.querySelector('.confirm').textContent`); !strings.Contains(wrong, "/trigger") || strings.Contains(wrong, "Set the policy") {
		b.Errorf("a trigger of 7: %s", wrong)
	}
	b.do("a change of the policy", b.open("/console/policy"), see(trigger), chromedp.SetValue(css(trigger), "0.7"),
		chromedp.SetValue(css(`[name="/cap/max_tokens"]`), "9000"), click(".stick button"), see(".confirm button"))
	b.accessible("a change of the policy")
	b.picture("policy")
	b.do("the policy", click(".confirm button"), chromedp.WaitNotPresent(css(".confirm")), see(trigger))
	if now := b.Must(200, "GET", "/v1/policy", ""); !strings.Contains(now, `"patch":{"cap":{"max_tokens":9000},"trigger":0.7}`) {
		b.Errorf("the policy is %s", now)
	}
	b.do("a session's policy", b.open("/console/sessions/add-a-limit/policy"), see(trigger))
	b.accessible("a session's policy")
}

// operator looks at the tenants with a key of an operator, and suspends one.
func (b *browser) operator() {
	b.Helper()
	b.do("sign in as an operator", write("#key", b.operatorKey()+"\n"), see("table"))
	b.accessible("the overview of an operator")
	for _, page := range []string{"tenants", "fleet", "operators", "campaigns", "audit"} {
		b.do(page, b.open("/console/"+page), see("table"))
		b.accessible(page)
	}
	b.do("River UI", b.open("/console/jobs/"), see("#root a[href*='jobs']"))
	b.do("a tenant", b.open("/console/tenants"), click("tbody th a"), see("#suspended"))
	b.accessible("a tenant")
	b.do("suspend", click(".confirm button.danger"), chromedp.WaitNotPresent(css("#suspended")), see(".confirm"))
	// A key that was just used is believed for two seconds more.
	b.Until("its key is refused", func() bool {
		return strings.Contains(b.Ask("PUT", "/v1/sessions/refused", "").Body.String(), "tenant_suspended")
	})
	b.do("let in again", click(".confirm button"), see("#suspended"))
}

// recompaction clicks through the life of one, and looks for the rows that it leaves in the audit trail.
func (b *browser) recompaction() {
	b.Helper()
	b.Must(201, "POST", "/v1/sessions/add-a-limit/fork", `{"id":"a fork"}`)
	b.do("the form", b.open("/console/recompactions"), click("a.button"), write("#metadata", `{"user":"u1"}`), write("#policy", `{"target": 0.2}`), write("#per_minute", "1"))
	b.accessible("the form of a recompaction")
	b.do("a dry run", click("form.wide button"), see("form.confirm button"))
	b.accessible("a dry run")
	b.picture("dry-run")
	b.do("start", click("form.confirm button"), see("#changed"), b.until("running"))
	b.accessible("a recompaction")
	b.do("pause", click("form[action$='/pause'] button"), see("form[action$='/resume']"))
	b.do("resume", click("form[action$='/resume'] button"), see("form[action$='/pause']"))
	b.do("cancel", click("form[action$='/cancel'] button"), b.until("cancelled"))
	b.do("roll back", click("form[action$='/rollback'] button"), b.until("rolled_back"))
	trail := b.Must(200, "GET", "/v1/audit?limit=100", "")
	for _, action := range []string{"start", "pause", "resume", "cancel", "rollback"} {
		if !strings.Contains(trail, `"recompaction.`+action) {
			b.Errorf("the trail has no recompaction.%s: %s", action, trail)
		}
	}
}

// until waits for a recompaction to have a state and to have changed a session, and loads its page until it says so.
// What a click sends is over by then: to load a page before would cancel it.
func (b *browser) until(state string) action {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		is := regexp.MustCompile(`"state":"` + state + `".*"changed":[1-9]`)
		for !is.MatchString(b.Must(200, "GET", "/v1/admin/recompactions?limit=1", "")) {
			if err := chromedp.Do(ctx, chromedp.Sleep(50*time.Millisecond)); err != nil {
				return err
			}
		}
		script := fmt.Sprintf(`document.querySelector('.facts .state')?.textContent == %q && document.querySelector('#changed').textContent != '0'`, state)
		for {
			found, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script))
			if found || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			// The click's own page may come just now, and end this load or that script.
			_ = chromedp.Do(ctx, chromedp.Reload(), chromedp.Sleep(50*time.Millisecond))
		}
	})
}
