package imports_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/imports"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func TestImportsReadPackedBodies(t *testing.T) {
	t.Parallel()
	text := archiveOf(t, 100)
	var zipped, packed bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	pack, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []io.WriteCloser{zip, pack} {
		if _, err := out.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for coding, body := range map[string]*bytes.Buffer{"gzip": &zipped, "zstd": &packed} {
		w := newWorld(t)
		got := apitest.Decoded[protocol.Import](w, w.Must(http.StatusCreated, "POST", "/v1/imports", body.String(), "Content-Encoding", coding, "Content-Type", "application/x-ndjson"))
		if got.Messages != 100 || got.Rejected != 0 {
			t.Errorf("%s: %+v", coding, got)
		}
		w.Must(http.StatusBadRequest, "POST", "/v1/imports", body.String()[:body.Len()/2], "Content-Encoding", coding)
		asFile := apitest.Decoded[protocol.Import](w, newWorld(t).Must(http.StatusCreated, "POST", "/v1/imports", body.String()))
		if asFile.Messages != 100 || asFile.Rejected != 0 {
			t.Errorf("a file in %s: %+v", coding, asFile)
		}
		w.Must(http.StatusBadRequest, "POST", "/v1/imports", body.String()[:body.Len()/2])
	}
}

func TestFilesOfOtherSourcesAreImportedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chat := `[{"role":"system","content":"be brief"},` + user("hi") + `,7,{"role":"assistant","content":"ho"}]`
	for range 2 { // the second time under the same key is the first one's answer
		got := apitest.Decoded[protocol.Import](w, w.Must(map[bool]int{true: 200, false: 201}[w.has("chat")], "POST", "/v1/imports?session=chat", chat, "Idempotency-Key", "k"))
		if got.State != "succeeded" || *got.From != "openai-chat" || got.Messages != 3 || got.Sessions != 1 || got.Rejected != 1 || got.Rejections[0].Line != 3 {
			t.Errorf("%+v", got)
		}
	}
	w.Must(http.StatusOK, "POST", "/v1/imports?session=chat&more=true", "", "Idempotency-Key", "k") // it sends no line
	again := apitest.Decoded[protocol.Import](w, w.Must(http.StatusCreated, "POST", "/v1/imports?session=chat&from=openai-chat", chat))
	if again.Messages != 0 || again.Duplicates != 3 {
		t.Errorf("%+v", again)
	}
	unnamed := apitest.Decoded[protocol.Import](w, w.Must(http.StatusCreated, "POST", "/v1/imports", chat))
	if !w.has(unnamed.ID.String()) {
		t.Errorf("no session is named by the import %+v", unnamed)
	}
	for _, file := range []struct{ from, body string }{
		{"", `{"x":1}`}, {"", `nothing`}, {"?from=codex", `{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}`},
	} {
		body := file.body
		got := w.MustAnswer(http.StatusUnprocessableEntity, "POST", "/v1/imports"+file.from, body)
		if !strings.Contains(got.Body.String(), `"code":"unsupported_source"`) {
			t.Errorf("%s: %s", body, got.Body)
		}
		if state := apitest.Decoded[protocol.Import](w, w.Must(http.StatusOK, "GET", got.Header().Get("Location"), "")).State; state != "failed" {
			t.Errorf("%s: %s", body, state)
		}
	}
	w.Must(http.StatusUnprocessableEntity, "POST", "/v1/imports?more=true&session=x", chat)
	if got := w.Must(http.StatusUnprocessableEntity, "POST", "/v1/imports?from=nonsense", chat); !strings.Contains(got, "from: must be varve or claude-code") {
		t.Errorf("%s", got)
	}
	w.Must(http.StatusUnprocessableEntity, "POST", "/v1/imports?session=x", string(archiveOf(t, 1)))
}

func TestAnImportSetsTheSettingsOfItsNewSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chat := `[` + user("hi") + `]`
	settings := func(text string) string { return "settings=" + url.QueryEscape(text) }
	read := func(id string) string { return w.Must(http.StatusOK, "GET", "/v1/sessions/"+id+"?include=policy", "") }
	all := settings(`{"model":"gpt-x","window_tokens":9000,"metadata":{"team":"a"},"policy":{"trigger":0.6}}`)
	w.Must(http.StatusCreated, "POST", "/v1/imports?session=whole&"+all, chat)
	opened := w.MustAnswer(http.StatusAccepted, "POST", "/v1/imports?more=true&session=later", "").Header().Get("Location")
	w.Must(http.StatusCreated, "POST", opened+"?"+all, chat)
	for _, id := range []string{"whole", "later"} {
		for _, want := range []string{`"model":"gpt-x"`, `"window_tokens":9000`, `"window_source":"request"`, `"metadata":{"team":"a"}`, `"trigger":0.6`, `"format":"openai-chat"`} {
			if got := read(id); !strings.Contains(got, want) {
				t.Errorf("%s has no %s: %s", id, want, got)
			}
		}
	}
	w.Must(http.StatusCreated, "POST", "/v1/imports?session=whole&"+settings(`{"model":"gpt-4o"}`), `[`+user("hi")+`,`+user("ho")+`]`)
	if got := read("whole"); !strings.Contains(got, `"model":"gpt-x"`) || !strings.Contains(got, `"last_seq":2`) {
		t.Errorf("the session that exists is %s", got)
	}
	for text, want := range map[string]string{
		`{"model":"unheard-of"}`:     "/model: the window of model",
		`{"policy":{"trigger":7}}`:   "/policy/trigger",
		`{"id":"x"}`:                 "/id",
		`{"window_tokens":1}`:        "/window_tokens: ",
		`{`:                          "invalid_json",
		`{"policy":"cortex"}`:        "/policy: must be an object or null",
		`{"overhead_tokens":900000}`: "/overhead_tokens",
	} {
		got := w.Ask("POST", "/v1/imports?strict=true&session=refused&"+settings(text), chat)
		if got.Code/100 != 4 || !strings.Contains(got.Body.String(), want) || w.has("refused") {
			t.Errorf("%s: %d %s", text, got.Code, got.Body)
		}
	}
	got := w.Must(http.StatusUnprocessableEntity, "POST", "/v1/imports?"+all, string(archiveOf(t, 1)))
	if !strings.Contains(got, "leave settings out") {
		t.Errorf("an export with settings: %s", got)
	}
}

func (w *world) has(id string) bool {
	return w.Ask("GET", "/v1/sessions/"+id, "").Code == http.StatusOK
}

func TestAnotherTenantsImportIsLikeAMissingOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stranger := w.NewTenant("stranger")
	path := w.MustAnswer(http.StatusCreated, "POST", "/v1/imports", string(archiveOf(t, 3))).Header().Get("Location")
	for _, at := range []string{path, "/v1/imports/01890000-0000-7000-8000-000000000000", "/v1/imports/none"} {
		for _, route := range []string{"GET " + at, "GET " + at + "/lines", "POST " + at} {
			method, path, _ := strings.Cut(route, " ")
			w.Must(http.StatusNotFound, method, path, "", "Authorization", "Bearer "+stranger)
		}
	}
	if got := w.MustAnswer(http.StatusOK, "GET", "/v1/imports", "", "Authorization", "Bearer "+stranger); strings.Contains(got.Body.String(), `"id"`) {
		t.Errorf("the stranger sees %s", got.Body)
	}
	text := w.Must(http.StatusOK, "GET", "/v1/export", "", "Authorization", "Bearer "+stranger)
	if strings.Contains(text, `"session"`) {
		t.Errorf("the stranger exports %s", text)
	}
}

func TestAnImportedSessionThatIsFullIsCompacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":2000,"policy":{"cache":{"ttl_seconds":300}}}`)
	var body strings.Builder
	for range 5 {
		fmt.Fprintf(&body, `{"message":{"session":"s","format":"openai-chat","body":%s}}`+"\n", user(strings.Repeat("word ", 400)))
	}
	w.Must(http.StatusCreated, "POST", "/v1/imports", body.String())
	runs := apitest.Decoded[struct{ Data []session.Run }](w, w.Must(http.StatusOK, "GET", "/v1/sessions/s/runs", "")).Data
	if len(runs) != 1 || runs[0].State != session.RunQueued {
		t.Errorf("%+v", runs)
	}
}

func TestAnExportMayBePacked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Must(http.StatusCreated, "POST", "/v1/imports", string(archiveOf(t, 1500)))
	plain := w.export()
	got := w.MustAnswer(http.StatusOK, "GET", "/v1/export", "", "Accept-Encoding", "zstd")
	if got.Header().Get("Content-Encoding") != "zstd" || got.Header().Get("Content-Type") != archive.MediaType {
		t.Errorf("%v", got.Header())
	}
	unpacked, err := zstd.NewReader(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	text, err := io.ReadAll(unpacked)
	if err != nil || string(text) != plain {
		t.Errorf("%v: %d bytes, want %d", err, len(text), len(plain))
	}
}

func TestAnImportForgetsSessionsThatAreErasedAndIsForgottenItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.MustAnswer(http.StatusCreated, "POST", "/v1/imports", string(archiveOf(t, 3))).Header().Get("Location")
	sessions := apitest.Decoded[struct{ Data []struct{ ID string } }](w, w.Must(http.StatusOK, "GET", "/v1/sessions", "")).Data
	for _, s := range sessions {
		w.Must(http.StatusNoContent, "DELETE", "/v1/sessions/"+s.ID, "")
	}
	for _, l := range apitest.Decoded[struct{ Data []protocol.ImportedLine }](w, w.Must(http.StatusOK, "GET", path+"/lines", "")).Data {
		if l.Session != nil {
			t.Errorf("line %d names session %s", l.Line, *l.Session)
		}
	}
	if err := w.Workers.Prune(t.Context(), w.Tenant); err != nil {
		t.Fatal(err)
	}
	w.Must(http.StatusOK, "GET", path, "")
	w.Exec(`UPDATE imports SET created_at = created_at - interval '31 days', updated_at = updated_at - interval '31 days'`)
	if err := w.Workers.Prune(t.Context(), w.Tenant); err != nil {
		t.Fatal(err)
	}
	w.Must(http.StatusNotFound, "GET", path, "")
}

func TestAProcessThatStopsLeavesItsImportsToTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := string(archiveOf(t, 3))
	w.Server.Drain()
	got := w.MustAnswer(http.StatusServiceUnavailable, "POST", "/v1/imports", text, "Idempotency-Key", "k")
	waiting := apitest.Decoded[protocol.Import](w, w.Must(http.StatusOK, "GET", got.Header().Get("Location")+"?wait=9", ""))
	if waiting.State != "queued" || waiting.Progress.Done != 0 {
		t.Errorf("%+v", waiting)
	}
	w.Server = api.New(api.Config{Store: w.Store, Features: []feature.Feature{imports.Feature()}})
	if got := apitest.Decoded[protocol.Import](w, w.Must(http.StatusCreated, "POST", "/v1/imports", text, "Idempotency-Key", "k")); got.Messages != 3 || got.ID != waiting.ID {
		t.Errorf("%+v", got)
	}
}

func TestTheTenantKeepsThePolicyThatItHasGivenItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line := `{"tenant":{"policy":{"trigger":0.6}}}` + "\n"
	outcome := func() protocol.LineOutcome {
		path := w.MustAnswer(http.StatusCreated, "POST", "/v1/imports", line).Header().Get("Location")
		return apitest.Decoded[struct{ Data []protocol.ImportedLine }](w, w.Must(http.StatusOK, "GET", path+"/lines", "")).Data[0].Outcome
	}
	for _, want := range []protocol.LineOutcome{"created", "exists"} {
		if got := outcome(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	w.Must(http.StatusOK, "PUT", "/v1/policy", `{"trigger":0.7}`)
	if got := outcome(); got != "skipped" {
		t.Errorf("over the tenant's own: %s", got)
	}
	if got := w.MustAnswer(http.StatusOK, "GET", "/v1/policy", ""); !strings.Contains(got.Body.String(), `"trigger":0.7`) {
		t.Errorf("%s", got.Body)
	}
}

func TestABodyOfAnImportIsBounded(t *testing.T) {
	t.Parallel()
	text := archiveOf(t, 2500)
	lines := bytes.SplitAfter(text, []byte("\n"))
	whole, size := int64(len(lines)-1), int64(len(text))
	for _, bound := range []struct{ bytes, lines int64 }{{size, 2000}, {size * 2 / 3, whole}, {size, whole}} {
		w := &world{apitest.New(t, imports.Bounded(bound.bytes, bound.lines))}
		got := w.feed("/v1/imports", text, false, "")
		if bound.lines == whole && bound.bytes == size {
			if got.Code != http.StatusCreated {
				t.Errorf("what is no longer than the limit: %d %s", got.Code, got.Body)
			}
			continue
		}
		p := apitest.Decoded[struct{ Code, Detail string }](w, got.Body.String())
		if got.Code != http.StatusRequestEntityTooLarge || p.Code != "body_too_large" {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		stopped := apitest.Decoded[struct{ Data []protocol.Import }](w, w.Must(http.StatusOK, "GET", "/v1/imports", "")).Data[0]
		next := stopped.Progress.Done + 1
		if !strings.Contains(p.Detail, fmt.Sprintf("before line %d are stored", next)) {
			t.Errorf("%d lines are stored: %s", stopped.Progress.Done, p.Detail)
		}
		rest := string(bytes.Join(lines[next-1:], nil))
		w.Must(http.StatusCreated, "POST", fmt.Sprintf("/v1/imports/%s?from_line=%d", stopped.ID, next), rest)
	}
}

// TestALargeImportSharesTheProcessors lets somebody else have the only processor that heavy work has, while an archive
// and a file of another source come in.
func TestALargeImportSharesTheProcessors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Server.CPU = admit.New(admit.Config{Name: "cpu of an import", Size: 1})
	others, _ := w.NewTenant("others")
	foreign := `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 60<<10) + `"},{"role":"assistant","content":"yes"}]}`
	for name, body := range map[string]string{"archive": string(archiveOf(t, 5000)), "foreign": foreign} {
		release, err := w.Server.CPU.Acquire(t.Context(), others, 1)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan int, 1)
		go func() { done <- w.feed("/v1/imports", []byte(body), false, "").Code }()
		w.Until("it waits or is done", func() bool {
			return apitest.Metric(t, "varve_admit_waiting", "cpu of an import") >= 1 || len(done) > 0
		})
		select {
		case status := <-done:
			t.Errorf("%s did not wait: %d", name, status)
			release.Done()
			continue
		default:
		}
		release.Done()
		if status := <-done; status != http.StatusCreated {
			t.Errorf("%s: %d", name, status)
		}
	}
}
