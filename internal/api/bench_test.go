package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

// commit makes a checkpoint of a session's first through messages with this body and these units, of 5 tokens if there are
// none.
func (w *world) commit(id string, base int, through int64, body, units string) {
	w.Helper()
	found, err := w.store.Session(w.Context(), session.Address{Tenant: w.tenant, ID: id})
	if err != nil {
		w.Fatal(err)
	}
	n, tokens := base+1, int64(0)
	var weights []struct{ Tokens int64 }
	if err := json.Unmarshal([]byte(units), &weights); err != nil {
		w.Fatal(err)
	}
	for _, unit := range weights {
		tokens += unit.Tokens
	}
	err = w.store.CommitCheckpoint(w.Context(), session.Key{Tenant: w.tenant, Key: found.Key}, postgres.Outcome{
		Run: session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunDone, Checkpoint: &n}, Base: base,
		Checkpoint: &postgres.Checkpoint{
			Through: through, Tokens: cmp.Or(tokens, 5), Body: zframe.Compress([]byte(body)), Size: len(body), State: []byte("state"), Units: []byte(units),
			Manifest: []byte(`[]`), Policy: []byte(`{}`), EngineVersion: 1, ValidatorState: validatorStateOf(found.Format, body),
		},
	}, 0)
	if err != nil {
		w.Fatal(err)
	}
}

// validatorStateOf returns the state that a checkpoint of these messages, joined by commas, stores.
func validatorStateOf(f session.Format, body string) []byte {
	var messages []json.RawMessage
	if err := json.Unmarshal([]byte("["+body+"]"), &messages); err != nil {
		return nil
	}
	validator := wire.NewFastValidator(f)
	for _, m := range messages {
		shape := wire.ShapeOfBody(f, m)
		validator.Add(&shape)
	}
	return validator.State()
}

// sink is a ResponseWriter that keeps nothing.
type sink struct {
	header http.Header
	status int
	bytes  int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { s.bytes += len(b); return len(b), nil }

func (s *sink) reset() {
	clear(s.header)
	s.status, s.bytes = 0, 0
}

func newBenchWorld(b *testing.B) *world {
	w := newWorld(b)
	w.server = api.New(api.Config{Store: w.store, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	return w
}

func BenchmarkAppend(b *testing.B) {
	w := newBenchWorld(b)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":10000000}`)
	body := []byte(batch("openai-chat", user(strings.Repeat("lorem ipsum ", 80))))
	answer := &sink{header: http.Header{}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/v1/sessions/s/messages", bytes.NewReader(body))
		r.Header["Authorization"] = []string{"Bearer " + w.key}
		answer.reset()
		if w.server.ServeHTTP(answer, r); answer.status != http.StatusCreated {
			b.Fatal(answer.status)
		}
	}
}

func BenchmarkView(b *testing.B) {
	w := newBenchWorld(b)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":10000000}`)
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields(`package import func return error nil string range context append slice map err := != if for the of and to is in a not with`)
	var text strings.Builder
	for text.Len() < 64<<10 {
		line := ""
		for range 80 {
			line += words[random.IntN(len(words))] + strconv.Itoa(random.IntN(100)) + " "
		}
		text.WriteString("," + user(line))
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	w.commit("s", 0, 1, text.String()[1:], `[]`)
	tag := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Header().Get("Etag")
	for name, header := range map[string]http.Header{
		"zstd": {"Accept-Encoding": {"zstd"}}, "plain": {}, "304": {"If-None-Match": {tag}},
	} {
		b.Run(name, func(b *testing.B) {
			answer := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("GET", "/v1/sessions/s/context", nil)
				for key, values := range header {
					r.Header[key] = values
				}
				r.Header["Authorization"] = []string{"Bearer " + w.key}
				answer.reset()
				if w.server.ServeHTTP(answer, r); answer.status >= 400 {
					b.Fatal(answer.status)
				}
			}
			b.ReportMetric(float64(answer.bytes), "bytes/answer")
		})
	}
}
