package upload_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/upload"
)

const uploads = "/v1/sessions/s/results"

type world struct{ *apitest.World }

type problem struct {
	Code, Detail string
	Retryable    bool
}

// uploadWorld returns a world with session s.
func uploadWorld(t *testing.T) *world {
	t.Helper()
	w := &world{apitest.New(t, upload.Feature())}
	w.MustAnswer(http.StatusCreated, "PUT", "/v1/sessions/s", "{}")
	return w
}

// toolOutput returns the output of a tool of about a number of bytes.
func toolOutput(size int) string {
	var b strings.Builder
	for n := 1; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%d: compiling package %x of wörter\n", n, sha256.Sum256(strconv.AppendInt(nil, int64(n), 10)))
	}
	return b.String()
}

// holds compares a result with what was uploaded.
func (w *world) holds(r upload.UploadedResult, content string) {
	w.Helper()
	sum := sha256.Sum256([]byte(content))
	if r.Bytes != int64(len(content)) || r.SHA256 != hex.EncodeToString(sum[:]) || !strings.HasSuffix(r.Ref, "-"+r.SHA256[:4]) {
		w.Errorf("%s has %d bytes and the SHA-256 %s, want %d and %x", r.Ref, r.Bytes, r.SHA256, len(content), sum)
	}
	if got := w.MustAnswer(http.StatusOK, "GET", uploads+"/"+r.Ref+"?raw=true", "").Body.String(); got != content {
		w.Errorf("%s brings %d other bytes back", r.Ref, len(got))
	}
}

func TestAnUploadGoesOnAtItsOffset(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	content := toolOutput(2 << 20)
	begun := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?tool=Bash&more=true", content[:700_001])
	at := begun.Header().Get("Location")
	for _, wrong := range []int{0, 1, 700_000, 700_002, 1 << 30} {
		a := w.MustAnswer(http.StatusConflict, "POST", fmt.Sprintf("%s?offset=%d", at, wrong), content[:10])
		if p := apitest.Decoded[problem](w, a.Body.String()); p.Code != "upload_offset" || a.Header().Get("Upload-Offset") != "700001" || !strings.Contains(p.Detail, "700001") {
			t.Errorf("offset %d: %+v, %s", wrong, p, a.Header().Get("Upload-Offset"))
		}
	}
	w.MustAnswer(http.StatusAccepted, "POST", at+"?more=true&offset=700001", content[700_001:700_001])
	now := apitest.Decoded[upload.Answer](w, w.Must(http.StatusAccepted, "POST", at+"?more=true&offset=700001", content[700_001:1_500_000]))
	if now.Offset != 1_500_000 || now.State != upload.Receiving || now.Result != nil || now.ExpiresAt == nil {
		t.Errorf("%+v", now)
	}
	w.MustAnswer(http.StatusUnprocessableEntity, "POST", at, "no offset")
	r := apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", at+"?offset=1500000", content[1_500_000:]))
	w.holds(r, content)
	done := apitest.Decoded[upload.Answer](w, w.Must(http.StatusOK, "GET", at, ""))
	if done.State != upload.Complete || done.Result == nil || done.Result.Text != r.Text || done.ExpiresAt != nil {
		t.Errorf("%+v", done)
	}
	w.Refused("upload_ended", "DELETE", at, "")
}

func TestAnUploadWithTheSameKeyIsTheSame(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	content := toolOutput(50_000)
	key := []string{"Idempotency-Key", "k"}
	first := apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", uploads+"?tool=Bash", content, key...))
	again := w.MustAnswer(http.StatusOK, "POST", uploads+"?tool=Bash", content, key...)
	if r := apitest.Decoded[upload.UploadedResult](w, again.Body.String()); r.Ref != first.Ref || r.Text != first.Text || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("%+v", r)
	}
	w.MustAnswer(http.StatusOK, "POST", uploads+"?tool=Bash&more=true", "", key...)
	for _, other := range []struct{ query, body string }{
		{"?tool=Bash", content[1:]}, {"?tool=Bash", content + "x"}, {"?tool=Bash", "x"}, {"?tool=Read", content}, {"?tool=Bash&media_type=image/png", content},
	} {
		if p := apitest.Decoded[problem](w, w.Must(http.StatusUnprocessableEntity, "POST", uploads+other.query, other.body, key...)); p.Code != "idempotency_key_reused" {
			t.Errorf("%+v", p)
		}
	}
	w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "abc", "Idempotency-Key", "l")
	if a := w.MustAnswer(http.StatusConflict, "POST", uploads, "abcdef", "Idempotency-Key", "l"); a.Header().Get("Upload-Offset") != "3" {
		t.Errorf("an upload that is under way: %s", a.Body)
	}
}

func TestAnUploadHasTheDigestThatItShould(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	content := toolOutput(200_000)
	right, wrong := sha256.Sum256([]byte(content)), sha256.Sum256([]byte("x"))
	header := func(sum [32]byte) string { return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":" }
	for name, c := range map[string]struct {
		query, header string
		want          int
	}{
		"the right parameter": {"?sha256=" + hex.EncodeToString(right[:]), "", http.StatusCreated},
		"the right header":    {"", "sha-512=:AA==:, " + header(right), http.StatusCreated},
		"another parameter":   {"?sha256=" + hex.EncodeToString(wrong[:]), "", http.StatusUnprocessableEntity},
		"another header":      {"", header(wrong), http.StatusUnprocessableEntity},
	} {
		a := w.MustAnswer(c.want, "POST", uploads+c.query, content, "Repr-Digest", c.header)
		if c.want == http.StatusCreated {
			continue
		}
		if p := apitest.Decoded[problem](w, a.Body.String()); p.Code != "digest_mismatch" || !strings.Contains(p.Detail, hex.EncodeToString(right[:])) {
			t.Errorf("%s: %+v", name, p)
		}
		w.MustAnswer(http.StatusNotFound, "GET", a.Header().Get("Location"), "")
	}
}

func TestHostileUploadsAreRefused(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	long := strings.Repeat("x", 300)
	for query, want := range map[string]int{
		"?tool=" + long: 422, "?tool=a%00b": 422, "?tool=%ff": 422, "?call_id=" + strings.Repeat("x", 70_000): 422, "?call_id=" + long: 201, "?call_id=a%0Ab": 422, "?media_type=nothing": 422,
		"?media_type=" + long + "/x": 422, "?media_type=text/plain%0d%0aX:y": 422, "?sha256=12": 422, "?sha256=" + long[:64]: 422, "?more=yes": 422,
		"?offset=1": 400, "?unknown=1": 400, "?tool=..%2F..%2Fetc%2Fpasswd": 201, "?tool=%E6%97%A5": 201, "?media_type=APPLICATION/JSON": 201,
	} {
		if a := w.Ask("POST", uploads+query, "x"); a.Code != want {
			t.Errorf("%s: %d %s", query, a.Code, a.Body)
		}
	}
	begun := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "abc").Header().Get("Location")
	for query, want := range map[string]int{"?offset=-1": 422, "?offset=9999999999999999999": 422, "?offset=x": 422, "?offset=": 422, "?offset=3&tool=x": 400} {
		if a := w.Ask("POST", begun+query, "x"); a.Code != want {
			t.Errorf("%s: %d %s", query, a.Code, a.Body)
		}
	}
	for _, path := range []string{uploads + "/uploads/x", uploads + "/uploads/..%2Fuploads", uploads + "/uploads/00000000-0000-7000-8000-000000000000"} {
		w.MustAnswer(http.StatusNotFound, "GET", path, "")
		w.MustAnswer(http.StatusNotFound, "POST", path+"?offset=0", "x")
		w.MustAnswer(http.StatusNotFound, "DELETE", path, "")
	}
	w.MustAnswer(http.StatusCreated, "PUT", "/v1/sessions/other", "{}")
	w.MustAnswer(http.StatusNotFound, "GET", strings.Replace(begun, "/s/", "/other/", 1), "")
	w.MustAnswer(http.StatusNotFound, "POST", "/v1/sessions/none/results", "x")
	w.MustAnswer(http.StatusUnsupportedMediaType, "POST", uploads, "x", "Content-Encoding", "br")
	if a := w.Ask("POST", uploads, "no gzip", "Content-Encoding", "gzip"); a.Code != http.StatusBadRequest {
		t.Errorf("no gzip: %d %s", a.Code, a.Body)
	}
}

func TestCompressedBytesAreUploadedAsTheyWere(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	content := toolOutput(600_000)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, content[:300_000])
	_ = z.Close()
	encoder, _ := zstd.NewWriter(nil)
	begun := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", zipped.String(), "Content-Encoding", "gzip")
	at := begun.Header().Get("Location")
	if got := begun.Header().Get("Upload-Offset"); got != "300000" {
		t.Fatalf("offset %s", got)
	}
	packed := encoder.EncodeAll([]byte(content[300_000:]), nil)
	w.holds(apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", at+"?offset=300000", string(packed), "Content-Encoding", "zstd")), content)
}

// goneReader is a body whose sender is gone.
type goneReader struct{}

func (goneReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestUploadsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	given := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "abc").Header().Get("Location")
	w.MustAnswer(http.StatusNoContent, "DELETE", given, "")
	w.MustAnswer(http.StatusNotFound, "POST", given+"?offset=3", "def")
	old := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "abc", "Idempotency-Key", "k").Header().Get("Location")
	whole := apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", uploads, "whole"))
	w.Exec(`UPDATE result_bodies SET touched_at = now() - interval '24 hours 1 second'`)
	w.MustAnswer(http.StatusNotFound, "GET", old, "")
	w.MustAnswer(http.StatusNotFound, "POST", old+"?offset=3", "def")
	if waste, err := w.Store.CollectBodies(t.Context(), w.Tenant, time.Hour, 100); err != nil || len(waste) != 2 {
		t.Errorf("%d bodies of uploads that were given up are collected, want 2; %v", len(waste), err)
	}
	w.holds(whole, "whole")
	anew := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "", "Idempotency-Key", "k")
	if u := apitest.Decoded[upload.Answer](w, anew.Body.String()); u.Offset != 0 || strings.HasSuffix(old, u.ID.String()) {
		t.Errorf("the key finds %+v", u)
	}
	for range session.MaxUploads - 1 {
		w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "")
	}
	if detail := w.Refused("too_many_uploads", "POST", uploads, "x"); !strings.Contains(detail, "32") {
		t.Error(detail)
	}
	const rows = `DO $$ BEGIN IF %s (SELECT FROM uploads UNION ALL SELECT FROM result_bodies UNION ALL SELECT FROM result_chunks) THEN RAISE 'rows'; END IF; END $$`
	w.Exec(fmt.Sprintf(rows, "NOT EXISTS"))
	w.MustAnswer(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	w.Exec(fmt.Sprintf(rows, "EXISTS"))
}

// TestATenantHasAFewUploadsAtOnce: a place is free again when an upload ends.
func TestATenantHasAFewUploadsAtOnce(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	began, free := make(chan bool), make(chan bool)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "POST", uploads+"?more=true", &waitingReader{began: began, free: free})
			r.Header.Set("Authorization", "Bearer "+w.Key)
			got := httptest.NewRecorder()
			if w.Server.ServeHTTP(got, r); got.Code != http.StatusAccepted {
				t.Errorf("%d %s", got.Code, got.Body)
			}
		})
		<-began
	}
	a := w.MustAnswer(http.StatusTooManyRequests, "POST", uploads, "x")
	if p := apitest.Decoded[problem](w, a.Body.String()); p.Code != "too_many_uploads" || a.Header().Get("Retry-After") == "" || !p.Retryable {
		t.Errorf("%+v", p)
	}
	_, other := w.NewTenant("other")
	mine := w.Key
	w.Key = other
	w.MustAnswer(http.StatusCreated, "PUT", "/v1/sessions/s", "{}")
	w.MustAnswer(http.StatusCreated, "POST", uploads, "x")
	w.Key = mine
	close(free)
	group.Wait()
	w.MustAnswer(http.StatusCreated, "POST", uploads, "x")
}

// waitingReader is a body that ends when it may.
type waitingReader struct {
	began, free chan bool
	said        bool
}

func (r *waitingReader) Read([]byte) (int, error) {
	if !r.said {
		r.said = true
		r.began <- true
	}
	<-r.free
	return 0, io.EOF
}

// TestUploadsAtOnce: many results are uploaded to a session at once, some of them equal.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	var mu sync.Mutex
	refs := map[string]string{}
	var group sync.WaitGroup
	for k := range 4 {
		group.Go(func() {
			for i := range 5 {
				content := toolOutput(20_000*(i+1)) + fmt.Sprint((k+i)%3)
				a := w.Ask("POST", uploads, content)
				if a.Code != http.StatusCreated {
					t.Errorf("%d %s", a.Code, a.Body)
					return
				}
				mu.Lock()
				refs[apitest.Decoded[upload.UploadedResult](w, a.Body.String()).Ref] = content
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(refs) != 20 {
		t.Errorf("%d refs", len(refs))
	}
	for ref, content := range refs {
		if got := w.MustAnswer(http.StatusOK, "GET", uploads+"/"+ref+"?raw=true", "").Body.String(); got != content {
			t.Errorf("%s brings %d other bytes back", ref, len(got))
		}
	}
}

// TestTwoSendersOfOneUpload: of two requests that send the same upload, what one stored is never counted twice.
func TestTwoSendersOfOneUpload(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	content := toolOutput(3 << 20)
	at := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "").Header().Get("Location")
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if a := w.Ask("POST", at+"?offset=0&more=true", content[:2<<20]); a.Code != http.StatusAccepted && a.Code != http.StatusConflict {
				t.Errorf("%d %s", a.Code, a.Body)
			}
		})
	}
	group.Wait()
	w.holds(apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", fmt.Sprintf("%s?offset=%d", at, 2<<20), content[2<<20:])), content)
}

// takenReader is a body during which another request sends the same bytes.
type takenReader struct {
	w     *world
	at    string
	taken bool
}

func (r *takenReader) Read(p []byte) (int, error) {
	if r.taken {
		return 0, io.EOF
	}
	r.taken = true
	r.w.MustAnswer(http.StatusAccepted, "POST", r.at+"?offset=0&more=true", "abc")
	return copy(p, "abc"), nil
}

// TestAMiscopiedUploadMisses: no ref that differs in one character finds another result.
func TestAMiscopiedUploadMisses(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	refs := map[string]bool{}
	for i := range 13 {
		refs[apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", uploads, toolOutput(100*i))).Ref] = true
	}
	at := session.Address{Tenant: w.Tenant, ID: "s"}
	for ref := range refs {
		for i := range ref {
			for _, c := range "0123456789abcdefru.-" {
				other := ref[:i] + string(c) + ref[i+1:]
				if parsed, err := session.ParseResultRef(other); err == nil && !refs[other] {
					if found, _, err := w.Store.OpenResult(t.Context(), at, parsed); err == nil {
						t.Errorf("%s, of %s, brings %s back", other, ref, found.Ref)
					}
				}
			}
		}
	}
}

// TestAnUploadHasOneSender: of two requests that send bytes of an upload, the second one to end is refused.
func TestAnUploadHasOneSender(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	at := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "").Header().Get("Location")
	r := httptest.NewRequestWithContext(t.Context(), "POST", at+"?offset=0", &takenReader{w, at, false})
	r.Header.Set("Authorization", "Bearer "+w.Key)
	got := httptest.NewRecorder()
	w.Server.ServeHTTP(got, r)
	if p := apitest.Decoded[problem](w, got.Body.String()); got.Code != http.StatusConflict || p.Code != "upload_taken" || !strings.Contains(p.Detail, "another request") {
		t.Errorf("%d %+v", got.Code, p)
	}
}
