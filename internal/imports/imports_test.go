package imports_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/imports"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

var importMessages = flag.Int("import-messages", 5_000, "how many messages TestAnImportThatIsStoppedGoesOnWhereItWas has; make soak has 100000")

// archiveOf returns an export of some messages, in sessions of up to 700, each with an upload that it does not have.
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
		if err := w.End(int64(size), []archive.Upload{{Ref: "u1-0000"}}, nil); err != nil {
			t.Fatal(err)
		}
		n += size
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type world struct{ *apitest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{apitest.New(t, imports.Feature())}
}

func user(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }

// export returns an export, which must be whole.
func (w *world) export() string {
	w.Helper()
	text := w.Must(http.StatusOK, "GET", "/v1/export", "")
	if _, err := archive.Verify(strings.NewReader(text)); err != nil {
		w.Fatalf("%v\n%s", err, text)
	}
	return text
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
	r.Header.Set("Authorization", "Bearer "+w.Key)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	got := httptest.NewRecorder()
	w.Server.ServeHTTP(got, r)
	return got
}

func TestAnImportThatIsStoppedGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	text := archiveOf(t, *importMessages)
	whole, stopped := newWorld(t), newWorld(t)
	whole.Must(http.StatusCreated, "POST", "/v1/imports", string(text))
	for _, part := range []int{7, 40, 41, 66, 90} {
		if got := stopped.feed("/v1/imports", text[:len(text)*part/100], true, "again"); got.Code < 400 {
			t.Fatalf("%d%%: %d %s", part, got.Code, got.Body)
		}
	}
	waiting := apitest.Decoded[struct{ Data []protocol.Import }](t, stopped.Must(http.StatusOK, "GET", "/v1/imports", "")).Data
	if len(waiting) != 1 || waiting[0].State != "queued" || waiting[0].Progress.Done < 1000 { // a batch
		t.Fatalf("%+v", waiting)
	}
	if why := waiting[0].Error; why == nil || !strings.HasPrefix(*why, "the client hung up") {
		t.Errorf("why it waits: %v", why)
	}
	done := stopped.feed("/v1/imports", text, false, "again")
	got := apitest.Decoded[protocol.Import](t, done.Body.String())
	if done.Code != http.StatusCreated || got.Messages != int64(*importMessages) || got.Duplicates != 0 || got.Rejected != 0 || got.Bytes != int64(len(text)) {
		t.Errorf("%d %+v", done.Code, got)
	}
	if one, two := whole.export(), stopped.export(); one != two {
		t.Errorf("the unbroken import has %d bytes, the stopped one %d, or others", len(one), len(two))
	}
	again := stopped.feed("/v1/imports", text, false, "again")
	if again.Code != http.StatusOK || again.Header().Get("Idempotent-Replayed") != "true" || apitest.Decoded[protocol.Import](t, again.Body.String()).ID != got.ID {
		t.Errorf("the same request again: %d %s", again.Code, again.Body)
	}
}

func TestAnImportCanBeSentInPiecesByItsID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := bytes.SplitAfter(archiveOf(t, 2500), []byte("\n"))
	lines = lines[:len(lines)-1]
	opened := w.MustAnswer(http.StatusAccepted, "POST", "/v1/imports?more=true", "")
	path := opened.Header().Get("Location")
	if got := apitest.Decoded[protocol.Import](w, opened.Body.String()); path != "/v1/imports/"+got.ID.String() || got.State != "queued" {
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
		got := apitest.Decoded[protocol.Import](w, w.Must(status, "POST", at, body))
		if got.Progress.Done != int64(to) || got.Rejected != 0 {
			t.Fatalf("lines %d to %d: %+v", from, to, got)
		}
		if more { // its answer was lost
			if again := apitest.Decoded[protocol.Import](w, w.Must(status, "POST", at, body)); again.Progress.Done != int64(to) || again.Duplicates != 0 {
				t.Errorf("lines %d to %d again: %+v", from, to, again)
			}
			w.Must(http.StatusUnprocessableEntity, "POST", fmt.Sprintf("%s?from_line=%d", path, to+2), body)
		}
	}
	got := apitest.Decoded[protocol.Import](w, w.Must(http.StatusOK, "GET", path+"?wait=60", ""))
	if got.State != "succeeded" || got.Messages != 2500 || *got.Progress.Total != int64(len(lines)) {
		t.Errorf("%+v", got)
	}
	w.Refused("import_ended", "POST", fmt.Sprintf("%s?from_line=%d", path, len(lines)+1), "{}\n")
}

func TestAnExportThatIsCutOffIsNotTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	text := string(archiveOf(t, 50))
	first := strings.Index(text, `{"message"`)
	for name, end := range map[string]int{"between two lines": first, "inside a line": first + 20, "before the last line feed": len(text) - 1 - len(text[strings.Index(text, `{"manifest"`):])} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			got := w.MustAnswer(http.StatusUnprocessableEntity, "POST", "/v1/imports", text[:end])
			path := got.Header().Get("Location")
			waiting := apitest.Decoded[protocol.Import](w, w.Must(http.StatusOK, "GET", path, ""))
			if waiting.State != "queued" || waiting.Error == nil || waiting.Rejected != 0 {
				t.Errorf("%+v", waiting)
			}
			rest := strings.Join(strings.SplitAfter(text, "\n")[waiting.Progress.Done:], "")
			done := apitest.Decoded[protocol.Import](w, w.Must(http.StatusCreated, "POST", fmt.Sprintf("%s?from_line=%d", path, waiting.Progress.Done+1), rest))
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
			got := apitest.Decoded[protocol.Import](w, w.Must(http.StatusCreated, "POST", "/v1/imports", changed))
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
	w.Must(http.StatusCreated, "POST", "/v1/imports", text, "Idempotency-Key", "k")
	for name, body := range map[string]string{
		"longer": text + text, "shorter": text[:strings.Index(text, `{"manifest"`)], "other": strings.Replace(text, `"content":"3 `, `"content":"4 `, 1),
	} {
		got := w.Ask("POST", "/v1/imports", body, "Idempotency-Key", "k")
		if got.Code != http.StatusUnprocessableEntity && got.Code != http.StatusConflict {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	w.Must(http.StatusUnprocessableEntity, "POST", "/v1/imports?from=varve", text, "Idempotency-Key", "k")
}

// takenOver sends an import that another request sends as a whole before this one comes to its end.
func (w *world) takenOver(messages int) (first, second *httptest.ResponseRecorder) {
	w.Helper()
	text := archiveOf(w, messages)
	read, write := io.Pipe()
	recorder, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		defer read.Close()
		r := httptest.NewRequestWithContext(w.Context(), "POST", "/v1/imports", read)
		r.Header.Set("Authorization", "Bearer "+w.Key)
		r.Header.Set("Idempotency-Key", "taken-over")
		w.Server.ServeHTTP(recorder, r)
	}()
	if _, err := write.Write(text[:len(text)-10]); err != nil { // all but the end is with the first request
		w.Fatal(err)
	}
	second = w.MustAnswer(http.StatusCreated, "POST", "/v1/imports", string(text), "Idempotency-Key", "taken-over")
	go func() {
		_, _ = write.Write(text[len(text)-10:])
		_ = write.Close()
	}()
	<-done
	return recorder, second
}

func TestTheRequestThatTookAnImportOverIsTheOneThatStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.takenOver(1500)
	if first.Code != http.StatusConflict || !strings.Contains(first.Body.String(), `"code":"import_taken"`) {
		t.Errorf("the first request: %d %s", first.Code, first.Body)
	}
	if got := apitest.Decoded[protocol.Import](w, second.Body.String()); got.Messages != 1500 || got.Duplicates != 0 {
		t.Errorf("%+v", got)
	}
}
