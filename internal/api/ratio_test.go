package api_test

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

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
