package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/session"
)

var importMessages = flag.Int("import-messages", 5_000, "how many messages TestAnImportThatIsStoppedGoesOnWhereItWas has; make soak has 100000")

// archiveOf returns an export of some messages, in sessions of up to 700.
func archiveOf(t testing.TB, messages int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := archive.Begin(&out)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < messages; {
		size := min(1+(n*7919)%700, messages-n)
		s := session.Exported{ID: fmt.Sprintf("s%d", n), WindowTokens: 1_000_000, WindowSource: session.WindowOfRequest, Format: session.OpenAIChat, Metadata: []byte(`{}`)}
		if err := w.Session(s); err != nil {
			t.Fatal(err)
		}
		for seq := range size {
			m := session.Message{Seq: int64(seq + 1), Format: session.OpenAIChat, Body: fmt.Appendf(nil, `{"role":"user","content":"%d \ud800"}`, n+seq)}
			if seq%3 == 0 {
				m.ClientID = fmt.Sprint("c", seq)
			}
			if err := w.Message(&m); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(int64(size), nil, nil); err != nil {
			t.Fatal(err)
		}
		n += size
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// cutBody is a body whose sender is gone behind some bytes of it.
type cutBody struct {
	io.Reader
	gone func()
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.gone()
		return n, errors.New("the connection is reset")
	}
	return n, err
}

// feed sends a body, and then breaks the connection instead of ending the body if cut is set.
func (w *world) feed(path string, body []byte, cut bool, key string) *httptest.ResponseRecorder {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	source := io.Reader(bytes.NewReader(body))
	if cut {
		source = &cutBody{source, cancel}
	}
	r := httptest.NewRequestWithContext(ctx, "POST", path, source)
	r.Header.Set("Authorization", "Bearer "+w.key)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	got := httptest.NewRecorder()
	w.server.ServeHTTP(got, r)
	return got
}

func TestAnImportThatIsStoppedGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	text := archiveOf(t, *importMessages)
	whole, stopped := newWorld(t), newWorld(t)
	whole.must(http.StatusCreated, "POST", "/v1/imports", string(text))
	for _, part := range []int{7, 40, 41, 66, 90} {
		if got := stopped.feed("/v1/imports", text[:len(text)*part/100], true, "again"); got.Code < 400 {
			t.Fatalf("%d%%: %d %s", part, got.Code, got.Body)
		}
	}
	waiting := decoded[struct{ Data []imported }](stopped.must(http.StatusOK, "GET", "/v1/imports", "")).Data
	if len(waiting) != 1 || waiting[0].State != "queued" || waiting[0].Progress.Done < 1000 { // a batch
		t.Fatalf("%+v", waiting)
	}
	if why := waiting[0].Error; why == nil || !strings.HasPrefix(*why, "the client hung up") {
		t.Errorf("why it waits: %v", why)
	}
	done := stopped.feed("/v1/imports", text, false, "again")
	got := decoded[imported](answer{t, done})
	if done.Code != http.StatusCreated || got.Messages != int64(*importMessages) || got.Duplicates != 0 || got.Rejected != 0 || got.Bytes != int64(len(text)) {
		t.Errorf("%d %+v", done.Code, got)
	}
	_, one := whole.export("/v1/export")
	_, two := stopped.export("/v1/export")
	if one != two {
		t.Errorf("the unbroken import has %s\nthe stopped one %s", one, two)
	}
	again := stopped.feed("/v1/imports", text, false, "again")
	if again.Code != http.StatusOK || again.Header().Get("Idempotent-Replayed") != "true" || decoded[imported](answer{t, again}).ID != got.ID {
		t.Errorf("the same request again: %d %s", again.Code, again.Body)
	}
}

func TestAnImportCanBeSentInPiecesByItsID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := bytes.SplitAfter(archiveOf(t, 2500), []byte("\n"))
	lines = lines[:len(lines)-1]
	opened := w.must(http.StatusAccepted, "POST", "/v1/imports?more=true", "")
	path := opened.Header().Get("Location")
	if got := decoded[imported](opened); path != "/v1/imports/"+got.ID || got.State != "queued" {
		t.Fatalf("%s, %+v", path, got)
	}
	const piece = 900
	for from := 1; from <= len(lines); from += piece {
		to := min(from-1+piece, len(lines))
		more, status := to < len(lines), http.StatusCreated
		if more {
			status = http.StatusAccepted
		}
		body := string(bytes.Join(lines[from-1:to], nil))
		at := fmt.Sprintf("%s?from_line=%d&more=%v", path, from, more)
		got := decoded[imported](w.must(status, "POST", at, body))
		if got.Progress.Done != int64(to) || got.Rejected != 0 {
			t.Fatalf("lines %d to %d: %+v", from, to, got)
		}
		if more { // its answer was lost
			if again := decoded[imported](w.must(status, "POST", at, body)); again.Progress.Done != int64(to) || again.Duplicates != 0 {
				t.Errorf("lines %d to %d again: %+v", from, to, again)
			}
			w.must(http.StatusUnprocessableEntity, "POST", fmt.Sprintf("%s?from_line=%d", path, to+2), body)
		}
	}
	got := decoded[imported](w.must(http.StatusOK, "GET", path+"?wait=60", ""))
	if got.State != "succeeded" || got.Messages != 2500 || *got.Progress.Total != int64(len(lines)) {
		t.Errorf("%+v", got)
	}
	w.must(http.StatusConflict, "POST", fmt.Sprintf("%s?from_line=%d", path, len(lines)+1), "{}\n")
}

func TestAnExportThatIsCutOffIsNotTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	text := string(archiveOf(t, 50))
	first := strings.Index(text, `{"message"`)
	for name, end := range map[string]int{"between two lines": first, "inside a line": first + 20, "before the last line feed": len(text) - 1 - len(text[strings.Index(text, `{"manifest"`):])} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			got := w.must(http.StatusUnprocessableEntity, "POST", "/v1/imports", text[:end])
			checkProblem(t, got, decoded[problem](got))
			path := got.Header().Get("Location")
			waiting := decoded[imported](w.must(http.StatusOK, "GET", path, ""))
			if waiting.State != "queued" || waiting.Error == nil || waiting.Rejected != 0 {
				t.Errorf("%+v", waiting)
			}
			rest := strings.Join(strings.SplitAfter(text, "\n")[waiting.Progress.Done:], "")
			done := decoded[imported](w.must(http.StatusCreated, "POST", fmt.Sprintf("%s?from_line=%d", path, waiting.Progress.Done+1), rest))
			if done.Rejected != 0 || done.Messages != 50 || done.Error != nil {
				t.Errorf("%+v", done)
			}
		})
	}
}

func TestAnImportNoticesThatItsFileWasChanged(t *testing.T) {
	t.Parallel()
	text := string(archiveOf(t, 50))
	for name, changed := range map[string]string{
		"a body":    strings.Replace(text, `"content":"3 `, `"content":"4 `, 1),
		"a session": strings.Replace(text, `"window_tokens":1000000`, `"window_tokens":1000001`, 1),
		"a line less": func() string {
			before, after, _ := strings.Cut(text, `{"message":{"session":"s1","seq":9,`)
			return before + after[strings.Index(after, "\n")+1:]
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if changed == text {
				t.Fatal("nothing was changed")
			}
			got := decoded[imported](w.must(http.StatusCreated, "POST", "/v1/imports", changed))
			if got.Rejected < 2 { // its session's end, and the manifest
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAnotherBodyUnderTheKeyOfAnImportIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := string(archiveOf(t, 30))
	w.must(http.StatusCreated, "POST", "/v1/imports", text, "Idempotency-Key", "k")
	for name, body := range map[string]string{
		"longer": text + text, "shorter": text[:strings.Index(text, `{"manifest"`)], "other": strings.Replace(text, `"content":"3 `, `"content":"4 `, 1),
	} {
		got := w.ask("POST", "/v1/imports", body, "Idempotency-Key", "k")
		if got.Code != http.StatusUnprocessableEntity && got.Code != http.StatusConflict {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/imports?from=varve", text, "Idempotency-Key", "k")
}

// takenOver sends an import that another request sends as a whole before this one comes to its end.
func (w *world) takenOver(messages int) (first, second answer) {
	w.Helper()
	text := archiveOf(w, messages)
	read, write := io.Pipe()
	recorder, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		defer read.Close()
		r := httptest.NewRequestWithContext(w.Context(), "POST", "/v1/imports", read)
		r.Header.Set("Authorization", "Bearer "+w.key)
		r.Header.Set("Idempotency-Key", "taken-over")
		w.server.ServeHTTP(recorder, r)
	}()
	if _, err := write.Write(text[:len(text)-10]); err != nil { // all but the end is with the first request
		w.Fatal(err)
	}
	second = w.must(http.StatusCreated, "POST", "/v1/imports", string(text), "Idempotency-Key", "taken-over")
	go func() {
		_, _ = write.Write(text[len(text)-10:])
		_ = write.Close()
	}()
	<-done
	return answer{w, recorder}, second
}

func TestTheRequestThatTookAnImportOverIsTheOneThatStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.takenOver(1500)
	if first.Code != http.StatusConflict {
		t.Errorf("the first request: %d %s", first.Code, first.Body)
	}
	if got := decoded[imported](second); got.Messages != 1500 || got.Duplicates != 0 {
		t.Errorf("%+v", got)
	}
}

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
		got := decoded[imported](w.must(http.StatusCreated, "POST", "/v1/imports", body.String(), "Content-Encoding", coding, "Content-Type", "application/x-ndjson"))
		if got.Messages != 100 || got.Rejected != 0 {
			t.Errorf("%s: %+v", coding, got)
		}
		w.must(http.StatusBadRequest, "POST", "/v1/imports", body.String()[:body.Len()/2], "Content-Encoding", coding)
		asFile := decoded[imported](newWorld(t).must(http.StatusCreated, "POST", "/v1/imports", body.String()))
		if asFile.Messages != 100 || asFile.Rejected != 0 {
			t.Errorf("a file in %s: %+v", coding, asFile)
		}
		w.must(http.StatusBadRequest, "POST", "/v1/imports", body.String()[:body.Len()/2])
	}
}

func TestFilesOfOtherSourcesAreImportedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chat := `[{"role":"system","content":"be brief"},` + user("hi") + `,7,{"role":"assistant","content":"ho"}]`
	for range 2 { // the second time under the same key is the first one's answer
		got := decoded[imported](w.must(map[bool]int{true: 200, false: 201}[w.has("chat")], "POST", "/v1/imports?session=chat", chat, "Idempotency-Key", "k"))
		if got.State != "succeeded" || *got.From != "openai-chat" || got.Messages != 3 || got.Sessions != 1 || got.Rejected != 1 || got.Rejections[0].Line != 3 {
			t.Errorf("%+v", got)
		}
	}
	w.must(http.StatusOK, "POST", "/v1/imports?session=chat&more=true", "", "Idempotency-Key", "k") // it sends no line
	again := decoded[imported](w.must(http.StatusCreated, "POST", "/v1/imports?session=chat&from=openai-chat", chat))
	if again.Messages != 0 || again.Duplicates != 3 {
		t.Errorf("%+v", again)
	}
	unnamed := decoded[imported](w.must(http.StatusCreated, "POST", "/v1/imports", chat))
	if !w.has(unnamed.ID) {
		t.Errorf("no session is named by the import %+v", unnamed)
	}
	for _, file := range []struct{ from, body string }{
		{"", `{"x":1}`}, {"", `nothing`}, {"?from=codex", `{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}`},
	} {
		body := file.body
		got := w.must(http.StatusUnprocessableEntity, "POST", "/v1/imports"+file.from, body)
		if p := decoded[problem](got); p.Code != "unsupported_source" {
			t.Errorf("%s: %+v", body, p)
		}
		if state := decoded[imported](w.must(http.StatusOK, "GET", got.Header().Get("Location"), "")).State; state != "failed" {
			t.Errorf("%s: %s", body, state)
		}
	}
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/imports?more=true&session=x", chat)
	if got := w.must(http.StatusUnprocessableEntity, "POST", "/v1/imports?from=nonsense", chat).Body.String(); !strings.Contains(got, "from: must be varve or claude-code") {
		t.Errorf("%s", got)
	}
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/imports?session=x", string(archiveOf(t, 1)))
}

func TestAnImportSetsTheSettingsOfItsNewSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chat := `[` + user("hi") + `]`
	settings := func(text string) string { return "settings=" + url.QueryEscape(text) }
	read := func(id string) string { return w.must(http.StatusOK, "GET", "/v1/sessions/"+id, "").Body.String() }
	all := settings(`{"model":"gpt-x","window_tokens":9000,"metadata":{"team":"a"},"policy":{"trigger":0.6}}`)
	w.must(http.StatusCreated, "POST", "/v1/imports?session=whole&"+all, chat)
	opened := w.must(http.StatusAccepted, "POST", "/v1/imports?more=true&session=later", "").Header().Get("Location")
	w.must(http.StatusCreated, "POST", opened+"?"+all, chat)
	for _, id := range []string{"whole", "later"} {
		for _, want := range []string{`"model":"gpt-x"`, `"window_tokens":9000`, `"window_source":"request"`, `"metadata":{"team":"a"}`, `"trigger":0.6`, `"format":"openai-chat"`} {
			if got := read(id); !strings.Contains(got, want) {
				t.Errorf("%s has no %s: %s", id, want, got)
			}
		}
	}
	w.must(http.StatusCreated, "POST", "/v1/imports?session=whole&"+settings(`{"model":"gpt-4o"}`), `[`+user("hi")+`,`+user("ho")+`]`)
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
		got := w.ask("POST", "/v1/imports?strict=true&session=refused&"+settings(text), chat)
		if got.Code/100 != 4 || !strings.Contains(got.Body.String(), want) || w.has("refused") {
			t.Errorf("%s: %d %s", text, got.Code, got.Body)
		}
	}
	got := w.must(http.StatusUnprocessableEntity, "POST", "/v1/imports?"+all, string(archiveOf(t, 1))).Body.String()
	if !strings.Contains(got, "leave settings out") {
		t.Errorf("an export with settings: %s", got)
	}
}

func (w *world) has(id string) bool {
	return w.ask("GET", "/v1/sessions/"+id, "").Code == http.StatusOK
}

func TestAnotherTenantsImportIsLikeAMissingOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stranger := w.newTenant("stranger")
	path := w.must(http.StatusCreated, "POST", "/v1/imports", string(archiveOf(t, 3))).Header().Get("Location")
	for _, at := range []string{path, "/v1/imports/01890000-0000-7000-8000-000000000000", "/v1/imports/none"} {
		for _, route := range []string{"GET " + at, "GET " + at + "/lines", "POST " + at} {
			method, path, _ := strings.Cut(route, " ")
			got := w.must(http.StatusNotFound, method, path, "", "Authorization", "Bearer "+stranger)
			checkProblem(t, got, decoded[problem](got))
		}
	}
	if got := w.must(http.StatusOK, "GET", "/v1/imports", "", "Authorization", "Bearer "+stranger); strings.Contains(got.Body.String(), `"id"`) {
		t.Errorf("the stranger sees %s", got.Body)
	}
	text := w.must(http.StatusOK, "GET", "/v1/export", "", "Authorization", "Bearer "+stranger).Body.String()
	if strings.Contains(text, `"session"`) {
		t.Errorf("the stranger exports %s", text)
	}
}

func TestAnImportedSessionThatIsFullIsCompacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":2000,"policy":{"cache":{"ttl_seconds":300}}}`)
	var body strings.Builder
	for range 5 {
		fmt.Fprintf(&body, `{"message":{"session":"s","format":"openai-chat","body":%s}}`+"\n", user(strings.Repeat("word ", 400)))
	}
	w.must(http.StatusCreated, "POST", "/v1/imports", body.String())
	runs := decoded[struct{ Data []session.Run }](w.must(http.StatusOK, "GET", "/v1/sessions/s/runs", "")).Data
	if len(runs) != 1 || runs[0].State != session.RunQueued {
		t.Errorf("%+v", runs)
	}
}

func TestAnExportMayBePacked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "POST", "/v1/imports", string(archiveOf(t, 1500)))
	plain, _ := w.export("/v1/export")
	got := w.must(http.StatusOK, "GET", "/v1/export", "", "Accept-Encoding", "zstd")
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
	path := w.must(http.StatusCreated, "POST", "/v1/imports", string(archiveOf(t, 3))).Header().Get("Location")
	sessions := decoded[struct{ Data []struct{ ID string } }](w.must(http.StatusOK, "GET", "/v1/sessions", "")).Data
	for _, s := range sessions {
		w.must(http.StatusNoContent, "DELETE", "/v1/sessions/"+s.ID, "")
	}
	for _, l := range decoded[struct{ Data []importedLine }](w.must(http.StatusOK, "GET", path+"/lines", "")).Data {
		if l.Session != nil {
			t.Errorf("line %d names session %s", l.Line, *l.Session)
		}
	}
	if err := w.store.Prune(t.Context(), w.tenant); err != nil {
		t.Fatal(err)
	}
	w.must(http.StatusOK, "GET", path, "")
	w.exec(`UPDATE imports SET created_at = created_at - interval '31 days', updated_at = updated_at - interval '31 days'`)
	if err := w.store.Prune(t.Context(), w.tenant); err != nil {
		t.Fatal(err)
	}
	w.must(http.StatusNotFound, "GET", path, "")
}

func TestAProcessThatStopsLeavesItsImportsToTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := string(archiveOf(t, 3))
	w.server.Drain()
	got := w.must(http.StatusServiceUnavailable, "POST", "/v1/imports", text, "Idempotency-Key", "k")
	waiting := decoded[imported](w.must(http.StatusOK, "GET", got.Header().Get("Location")+"?wait=9", ""))
	if waiting.State != "queued" || waiting.Progress.Done != 0 {
		t.Errorf("%+v", waiting)
	}
	next := api.New(api.Config{Store: w.store})
	w.server = next
	if got := decoded[imported](w.must(http.StatusCreated, "POST", "/v1/imports", text, "Idempotency-Key", "k")); got.Messages != 3 || got.ID != waiting.ID {
		t.Errorf("%+v", got)
	}
}

func TestTheTenantKeepsThePolicyThatItHasGivenItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line := `{"tenant":{"policy":{"trigger":0.6}}}` + "\n"
	outcome := func() string {
		path := w.must(http.StatusCreated, "POST", "/v1/imports", line).Header().Get("Location")
		return decoded[struct{ Data []importedLine }](w.must(http.StatusOK, "GET", path+"/lines", "")).Data[0].Outcome
	}
	for _, want := range []string{"created", "exists"} {
		if got := outcome(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"trigger":0.7}`)
	if got := outcome(); got != "skipped" {
		t.Errorf("over the tenant's own: %s", got)
	}
	if got := w.must(http.StatusOK, "GET", "/v1/policy", ""); !strings.Contains(got.Body.String(), `"trigger":0.7`) {
		t.Errorf("%s", got.Body)
	}
}
