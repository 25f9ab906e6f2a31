package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestAResultComesBackWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	var body bytes.Buffer
	for i := range 450 {
		fmt.Fprintf(&body, "line %d <&> é\n", i+1)
	}
	sum := sha256.Sum256(body.Bytes())
	path := "/v1/sessions/s/results/" + w.putResult("s", body.Bytes())
	raw := w.must(http.StatusOK, "GET", path+"?raw=true", "")
	if !bytes.Equal(raw.Body.Bytes(), body.Bytes()) || raw.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d bytes of %d, %v", raw.Body.Len(), body.Len(), raw.Header())
	}
	var read strings.Builder
	pages := 0
	for next := int64(1); next != 0; pages++ {
		page := decoded[struct {
			Ref, SHA256, Content string
			Offset, Limit        int64
			NextOffset           *int64 `json:"next_offset"`
		}](w.must(http.StatusOK, "GET", fmt.Sprintf("%s?offset=%d", path, next), ""))
		if page.Offset != next || page.Limit != 200 || page.SHA256 != hex.EncodeToString(sum[:]) {
			t.Fatalf("%+v", page)
		}
		for line := range strings.Lines(page.Content) {
			_, text, _ := strings.Cut(line, "\t")
			read.WriteString(text)
		}
		next = 0
		if page.NextOffset != nil {
			next = *page.NextOffset
		}
	}
	if read.String() != body.String() || pages != 3 {
		t.Errorf("%d pages have other lines than the result", pages)
	}
	for _, got := range []answer{raw, w.must(http.StatusOK, "GET", path, "")} {
		h := got.Header()
		if h.Get("X-Content-Sha256") != hex.EncodeToString(sum[:]) || h.Get("Repr-Digest") != "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":" {
			t.Errorf("headers %v", h)
		}
	}
	part := w.must(http.StatusPartialContent, "GET", path+"?raw=true", "", "Range", "bytes=5-9")
	if part.Body.String() != body.String()[5:10] || part.Header().Get("Content-Range") != fmt.Sprintf("bytes 5-9/%d", body.Len()) {
		t.Errorf("range: %q %v", part.Body, part.Header())
	}
	w.must(http.StatusPartialContent, "GET", path+"?raw=true", "", "Range", "bytes=-5")
	for header, want := range map[string]int{
		"lines=1-2": 200, "nonsense": 200, "Bytes=0-1": 206, "bytes=-0, 0-1": 206, "bytes=0-1,-0,5-6": 206, "bytes=-1": 206, "bytes=-99999999": 206,
		"bytes=-0": 416, "bytes=-000,-0": 416, "bytes=99999999-": 416, "bytes=x": 416, "bytes=5-1": 416, "bytes=--1": 416,
	} {
		got := w.must(want, "GET", path+"?raw=true", "", "Range", header)
		if at := fmt.Sprintf("bytes */%d", body.Len()); want == 416 && got.Header().Get("Content-Range") != at {
			t.Errorf("Range: %s: Content-Range %q, want %q", header, got.Header().Get("Content-Range"), at)
		}
	}
	w.must(http.StatusNotModified, "GET", path+"?raw=true", "", "If-None-Match", raw.Header().Get("Etag"))
	for _, wrong := range []string{"offset=0", "limit=0", "limit=2001", "raw=yes"} {
		w.must(http.StatusUnprocessableEntity, "GET", path+"?"+wrong, "")
	}
	miscopied := path[:len(path)-4] + "0000"
	if got := w.must(http.StatusNotFound, "GET", miscopied, ""); !strings.Contains(got.Body.String(), path[strings.LastIndex(path, "/")+1:]) {
		t.Errorf("a miscopied ref: %s", got.Body)
	}
}

func TestResultsOfOddContentComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	bodies := [][]byte{{}, []byte("\x00"), []byte(`"\ud800"`), []byte("\ufeff\u2028"), bytes.Repeat([]byte("x"), 1<<20)}
	refs := w.putResults("s", 1, bodies...)
	for i, ref := range refs {
		got := w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+ref+"?raw=true", "")
		if !bytes.Equal(got.Body.Bytes(), bodies[i]) {
			t.Errorf("%s: %q, want %q", ref, got.Body, bodies[i])
		}
		w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+ref, "")
		if len(bodies[i]) == 0 {
			w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+ref+"?raw=true", "", "Range", "bytes=-5")
		}
	}
}
