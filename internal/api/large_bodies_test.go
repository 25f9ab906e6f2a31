package api_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/session"
)

func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	body := batch("openai-chat", user("x"))
	bomb := batch("openai-chat", user(strings.Repeat("x", session.MaxBodyBytes)))
	for _, coding := range []string{"gzip", "zstd"} {
		for range 3 { // readers are used again
			w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", compressed(t, coding, body), "Content-Encoding", coding)
		}
		w.must(http.StatusRequestEntityTooLarge, "POST", "/v1/sessions/s/messages", compressed(t, coding, bomb), "Content-Encoding", coding)
		w.must(http.StatusBadRequest, "POST", "/v1/sessions/s/messages", body, "Content-Encoding", coding)
		whole := compressed(t, coding, batch("openai-chat", user(strings.Repeat("0123456789", 100))))
		w.must(http.StatusBadRequest, "POST", "/v1/sessions/s/messages", whole[:len(whole)-9], "Content-Encoding", coding)
	}
	nested := compressed(t, "gzip", compressed(t, "gzip", body))
	w.must(http.StatusUnsupportedMediaType, "POST", "/v1/sessions/s/messages", nested, "Content-Encoding", "gzip, gzip")
	w.must(http.StatusBadRequest, "POST", "/v1/sessions/s/messages", nested, "Content-Encoding", "gzip")
	refused := w.must(http.StatusUnsupportedMediaType, "POST", "/v1/sessions/s/messages", body, "Content-Encoding", "br")
	if refused.Header().Get("Accept-Encoding") != "gzip, zstd" {
		t.Errorf("headers %v do not say what is possible", refused.Header())
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", body, "Content-Type", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", body, "Content-Type", "application/json; charset=utf-8")
	w.must(http.StatusUnsupportedMediaType, "POST", "/v1/sessions/s/messages", body, "Content-Type", "text/plain")
}

// TestABodyIsNotPackedTooMuch sends texts that pack little, much, and far too much, to routes that read whole bodies and
// to imports, which read line by line.
func TestABodyIsNotPackedTooMuch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 3<<20/100)
	for i := range random {
		random[i] = "abcdefghijklmnopqrstuvwxyz"[rng.IntN(26)]
	}
	var fair strings.Builder // packs about 60 times
	for i := range random {
		fair.WriteString(strings.Repeat(string(random[i]), 100))
	}
	packers := map[string]func(text string) []byte{
		"gzip": func(text string) []byte {
			var out bytes.Buffer
			z := gzip.NewWriter(&out)
			_, _ = z.Write([]byte(text))
			_ = z.Close()
			return out.Bytes()
		},
		"zstd": func(text string) []byte {
			z, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			return z.EncodeAll([]byte(text), nil)
		},
	}
	for coding, pack := range packers {
		for _, c := range []struct {
			path, body string
			want       int
		}{
			{"/v1/tokens", `{"text":"` + fair.String() + `"}`, http.StatusOK},
			{"/v1/tokens", `{"text":"` + strings.Repeat("a", 900<<10) + `"}`, http.StatusOK}, // free
			{"/v1/tokens", `{"text":"` + strings.Repeat("a", 2<<20) + `"}`, http.StatusRequestEntityTooLarge},
			{"/v1/imports", strings.Repeat("\n", 2<<20), http.StatusRequestEntityTooLarge},
		} {
			got := w.must(c.want, "POST", c.path, string(pack(c.body)), "Content-Encoding", coding)
			if c.want != http.StatusOK && (decoded[problem](got).Code != "body_too_large" || !strings.Contains(got.Body.String(), "200 times")) {
				t.Errorf("%s %s: %s", coding, c.path, got.Body)
			}
		}
	}
}

func TestABodyWithoutALengthIsBoundedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for size, status := range map[int64]int{session.MaxBodyBytes: http.StatusBadRequest, session.MaxBodyBytes + 1: http.StatusRequestEntityTooLarge} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/sessions/s/messages", io.LimitReader(spaces{}, size))
		r.Header.Set("Authorization", "Bearer "+w.key)
		got := httptest.NewRecorder()
		if w.server.ServeHTTP(got, r); got.Code != status || r.ContentLength >= 0 {
			t.Errorf("%d bytes: %d %s", size, got.Code, got.Body)
		}
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

// TestALargePackedBodyIsUnpackedByAProcessor sends what is large only once it is unpacked, while somebody else has the
// only processor of heavy work.
func TestALargePackedBodyIsUnpackedByAProcessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.CPU = admit.New(admit.Config{Name: "cpu", Size: 1, Each: 1, Patience: time.Millisecond})
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
	release.Done()
	for coding := range pack {
		tooMuch := packed(coding, strings.Repeat("a", 20<<20))
		w.must(http.StatusRequestEntityTooLarge, "POST", "/v1/tokens", tooMuch, "Content-Encoding", coding)
	}
}

// TestAPackedFileIsBounded sends a file of another source that unpacks to more than such a file may have.
func TestAPackedFileIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bomb := "[" + strings.Repeat(" ", 65<<20) + "]"
	for _, coding := range []string{"gzip", "zstd"} {
		w.must(http.StatusRequestEntityTooLarge, "POST", "/v1/imports?session=s", compressed(t, coding, bomb))
	}
}
