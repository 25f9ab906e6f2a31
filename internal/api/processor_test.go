package api_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/budget"
)

// TestHeavyWorkWaitsForAProcessorAndLightWorkDoesNot takes the only processor that heavy work has. What is heavy gets
// none, what is light needs none.
func TestHeavyWorkWaitsForAProcessorAndLightWorkDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.CPU = budget.New("cpu", 1, time.Millisecond)
	w.server.SmallView = 256 << 10 // above which a view is sent page by page
	message := func(bytes int) string {
		return fmt.Sprintf(`{"format":"openai-chat","messages":[{"role":"user","content":"%s"}]`, strings.Repeat("word ", bytes/5))
	}
	const light, counted, large = 4 << 10, 40 << 10, 300 << 10
	for id, size := range map[string]int{"light": light, "large": large} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat","window_tokens":1000000}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", message(size)+`}`)
	}
	type call struct{ method, path, body string }
	heavy := []call{
		{"POST", "/v1/tokens", message(counted) + `,"tokenizer":"o200k"}`},
		{"POST", "/v1/tokens", message(large) + `}`},
		{"POST", "/v1/compact", message(large) + `}`},
		{"POST", "/v1/sessions/large/preview", ``},
		{"GET", "/v1/sessions/large/context?format=anthropic", ``},
		{"GET", "/v1/sessions/large/context", ``},
		{"POST", "/v1/sessions/large/messages", message(large) + `}`},
		{"POST", "/v1/conversations", `{"items":[{"type":"message","role":"user","content":"` + strings.Repeat("word ", large/5) + `"}]}`},
		{"POST", "/v1/responses/compact", `{"model":"gpt-5","input":"` + strings.Repeat("word ", large/5) + `"}`},
	}
	none := []call{
		{"POST", "/v1/tokens", message(light) + `,"tokenizer":"o200k"}`},
		{"POST", "/v1/tokens", message(counted) + `}`},
		{"POST", "/v1/compact", message(light) + `}`},
		{"POST", "/v1/sessions/light/preview", ``},
		{"GET", "/v1/sessions/light/context?format=anthropic", ``},
		{"GET", "/v1/sessions/light/context", ``},
	}
	other, _ := w.newTenant("other")
	release, err := w.server.CPU.Acquire(t.Context(), other, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range heavy {
		got := w.must(http.StatusServiceUnavailable, c.method, c.path, c.body)
		if !strings.Contains(got.Body.String(), `"over_capacity"`) || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: %s", c.method, c.path, got.Body)
		}
	}
	for _, c := range none {
		w.must(http.StatusOK, c.method, c.path, c.body)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/large/messages", message(light)+`}`)
	release()
	for _, c := range heavy {
		if got := w.ask(c.method, c.path, c.body); got.Code != http.StatusOK && got.Code != http.StatusCreated {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.Code, got.Body)
		}
	}
	if again, err := w.server.CPU.Acquire(t.Context(), other, 1); err != nil {
		t.Error("a request kept its processor:", err)
	} else {
		again()
	}
}

// TestALargePackedBodyIsUnpackedByAProcessor sends what is large only once it is unpacked, while somebody else has the
// only processor of heavy work.
func TestALargePackedBodyIsUnpackedByAProcessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.CPU = budget.New("cpu", 1, time.Millisecond)
	other, _ := w.newTenant("other")
	release, err := w.server.CPU.Acquire(t.Context(), other, 1)
	if err != nil {
		t.Fatal(err)
	}
	pack := map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(to io.Writer) io.WriteCloser { return gzip.NewWriter(to) },
		"zstd": func(to io.Writer) io.WriteCloser {
			z, _ := zstd.NewWriter(to) // without options
			return z
		},
	}
	packed := func(coding, text string) string {
		var out bytes.Buffer
		z := pack[coding](&out)
		_, err := z.Write([]byte(`{"text":"` + text + `"}`))
		if err := errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for coding := range pack {
		tooMuch := packed(coding, strings.Repeat("a", 20<<20))
		w.must(http.StatusOK, "POST", "/v1/tokens", packed(coding, strings.Repeat("word ", 10_000)), "Content-Encoding", coding)
		got := w.must(http.StatusServiceUnavailable, "POST", "/v1/tokens", tooMuch, "Content-Encoding", coding)
		if !strings.Contains(got.Body.String(), `"over_capacity"`) {
			t.Errorf("%s: %s", coding, got.Body)
		}
	}
	release()
	for coding := range pack {
		tooMuch := packed(coding, strings.Repeat("a", 20<<20))
		w.must(http.StatusRequestEntityTooLarge, "POST", "/v1/tokens", tooMuch, "Content-Encoding", coding)
	}
}

func TestAnExactCountIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("a", 8<<20+1)
	w.must(http.StatusOK, "POST", "/v1/tokens", `{"text":"`+long+`"}`)
	w.must(http.StatusOK, "POST", "/v1/tokens", `{"text":"`+long[1:]+`","tokenizer":"o200k"}`)
	for _, body := range []string{
		`{"text":"` + long + `","tokenizer":"o200k"}`,
		`{"format":"openai-chat","tokenizer":"cl100k","messages":[{"role":"user","content":"` + long[:5<<20] + `"},{"role":"user","content":"` + long[:5<<20] + `"}]}`,
	} {
		got := w.must(http.StatusRequestEntityTooLarge, "POST", "/v1/tokens", body)
		if p := decoded[problem](got); p.Code != "body_too_large" || !strings.Contains(p.Detail, "8 MiB") {
			t.Errorf("%s", got.Body)
		}
	}
}
