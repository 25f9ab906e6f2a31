package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/admit"
)

func TestABodyOfAnImportIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := archiveOf(t, 2500)
	lines := bytes.SplitAfter(text, []byte("\n"))
	whole := int64(len(lines) - 1)
	for _, bound := range []struct{ lines, bytes int64 }{{2000, 0}, {0, int64(len(text) / 2)}, {whole, int64(len(text))}} {
		w.server.ImportLines, w.server.ImportBytes = bound.lines, bound.bytes
		key := fmt.Sprintf("%d-%d", bound.lines, bound.bytes)
		got := w.feed("/v1/imports", text, false, key)
		if bound.lines == whole {
			if got.Code != http.StatusCreated {
				t.Errorf("what is no longer than the limit: %d %s", got.Code, got.Body)
			}
			continue
		}
		p := decoded[problem](answer{t, got})
		if got.Code != http.StatusRequestEntityTooLarge || p.Code != "body_too_large" {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		stopped := decoded[struct{ Data []imported }](w.must(http.StatusOK, "GET", "/v1/imports", "")).Data[0]
		next := stopped.Progress.Done + 1
		if !strings.Contains(p.Detail, fmt.Sprintf("before line %d are stored", next)) {
			t.Errorf("%d lines are stored: %s", stopped.Progress.Done, p.Detail)
		}
		w.server.ImportLines, w.server.ImportBytes = 0, 0
		rest := string(bytes.Join(lines[next-1:], nil))
		w.must(http.StatusCreated, "POST", fmt.Sprintf("/v1/imports/%s?from_line=%d", stopped.ID, next), rest)
	}
}

// TestALargeImportSharesTheProcessors lets somebody else have the only processor that heavy work has, while an archive
// and a file of another source come in.
func TestALargeImportSharesTheProcessors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.CPU = admit.New(admit.Config{Name: "cpu of an import", Size: 1})
	others, _ := w.newTenant("others")
	foreign := `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 60<<10) + `"},{"role":"assistant","content":"yes"}]}`
	for name, body := range map[string]string{"archive": string(archiveOf(t, 5000)), "foreign": foreign} {
		release, err := w.server.CPU.Acquire(t.Context(), others, 1)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan int, 1)
		go func() { done <- w.feed("/v1/imports", []byte(body), false, "").Code }()
		w.until("it waits or is done", func() bool {
			return metric(t, "varve_admit_waiting", "cpu of an import") >= 1 || len(done) > 0
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
