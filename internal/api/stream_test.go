package api_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api"
)

// streaming returns an API on the same store for which every view is large.
func (w *world) streaming() *api.Server {
	return api.New(api.Config{Store: w.store, Log: slog.New(slog.DiscardHandler), SmallView: -1, Memory: admit.New(admit.Config{Name: "memory", Size: 1 << 30, Each: 1 << 30, Patience: time.Minute})})
}

// asked returns what a server answers to a GET.
func (w *world) asked(server http.Handler, path string, headers ...string) answer {
	w.Helper()
	r := httptest.NewRequest("GET", path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+w.key)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got := httptest.NewRecorder()
	server.ServeHTTP(got, r)
	return answer{w.TB, got}
}

func TestALargeViewIsTheSameAsASmallOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	paths := []string{w.compacted("anthropic"), w.compacted("openai-chat")}
	w.must(http.StatusCreated, "PUT", "/v1/sessions/empty", "")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/mixed", `{"format":"gemini"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/mixed/messages", batch("openai-chat", unusual...))
	paths = append(paths, "/v1/sessions/empty", "/v1/sessions/mixed")
	large := w.streaming()
	for _, path := range paths {
		reads := readsOf(path)
		reads = append(reads, []string{path + "/context?view=full&format=gemini", "identity"}, []string{path + "/checkpoints/1/context", "zstd"})
		for _, read := range reads {
			want := w.ask("GET", read[0], "", "Accept-Encoding", read[1])
			got := w.asked(large, read[0], "Accept-Encoding", read[1])
			if diff := cmp.Diff(plainOf(want), plainOf(got)); diff != "" || got.Header().Get("Etag") != want.Header().Get("Etag") {
				t.Fatalf("%s in %s: %d, ETag %s, want %d, %s\n%.2000s", read[0], read[1], got.Code, got.Header().Get("Etag"), want.Code, want.Header().Get("Etag"), diff)
			}
			if tag := want.Header().Get("Etag"); tag != "" {
				if again := w.asked(large, read[0], "Accept-Encoding", read[1], "If-None-Match", tag); again.Code != http.StatusNotModified {
					t.Errorf("%s with its ETag: %d", read[0], again.Code)
				}
			}
		}
	}
}

// plainOf returns the body of an answer without its coding and without what is of one request alone.
func plainOf(a answer) string {
	text := a.Body.String()
	if a.Header().Get("Content-Encoding") == "zstd" {
		text = unzstd(a.TB.(*testing.T), a.Body.Bytes())
	}
	if a.Code >= http.StatusBadRequest {
		text, _, _ = strings.Cut(text, `"request_id"`)
	}
	return fmt.Sprint(a.Code, text)
}

// meddler does something once the first bytes of an answer were written.
type meddler struct {
	*httptest.ResponseRecorder
	once func()
}

func (m *meddler) Write(p []byte) (int, error) {
	if m.once != nil {
		m.once()
		m.once = nil
	}
	return m.ResponseRecorder.Write(p)
}

func TestALargeViewThatChangesIsCutOff(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"a message is removed":     `UPDATE messages SET removed_at = now(), removed_seq = 100 WHERE seq = 4`,
		"a message gets damaged":   `UPDATE messages SET body = body || 'x' WHERE seq = 4`,
		"a message gets lost":      `DELETE FROM messages WHERE seq = 4`,
		"a message is exchanged":   `UPDATE messages m SET body = o.body, shape = o.shape FROM messages o WHERE m.seq = 4 AND o.seq = 1`,
		"nothing that concerns it": `UPDATE messages SET created_at = now() WHERE seq = 4`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
			for n := range 4 {
				w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(strings.Repeat(fmt.Sprint(n), 900_000))))
			}
			r := httptest.NewRequest("GET", "/v1/sessions/s/context", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+w.key)
			got := &meddler{httptest.NewRecorder(), func() { w.exec(change) }}
			cut := func() (cause any) {
				defer func() { cause = recover() }()
				w.streaming().ServeHTTP(got, r)
				return nil
			}()
			whole := strings.HasSuffix(got.Body.String(), "]}")
			if err, _ := cut.(error); strings.HasPrefix(name, "nothing") != whole || whole == errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("whole: %v, panic: %v", whole, cut)
			}
		})
	}
}

// turnTaker takes the only turn of a processor when an answer's first bytes are written, as often as the next ones need
// one.
type turnTaker struct {
	*httptest.ResponseRecorder
	gate   *admit.Gate
	turns  int
	given  atomic.Bool // all back
	writes int
	t      *testing.T
}

func (w *turnTaker) Write(p []byte) (int, error) {
	switch w.writes++; w.writes {
	case 1:
		turn, err := w.gate.Acquire(w.t.Context(), uuid.New(), 1)
		if err != nil {
			w.t.Error("a turn is held while the answer is written, for as long as its reader likes:", err)
		}
		go w.take(turn)
	case 2:
		if !w.given.Load() {
			w.t.Error("the answer's next piece was made without a turn")
		}
	}
	return w.ResponseRecorder.Write(p)
}

// take gives a turn back once the answer waits for it, and takes the one after that of the answer.
func (w *turnTaker) take(turn admit.Turn) {
	const enough = 100 * time.Millisecond // to wait behind the answer
	for range w.turns - 1 {
		time.Sleep(enough)
		time.AfterFunc(enough, turn.Done)
		turn, _ = w.gate.Acquire(w.t.Context(), uuid.New(), 1)
	}
	time.Sleep(enough)
	w.given.Store(true)
	turn.Done()
}

func TestTheCodingOfALargeViewTakesTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	compacted := w.compacted("openai-chat")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/plain", `{"window_tokens":10000000}`)
	for path, of := range map[string]struct {
		coding string
		turns  int
	}{
		compacted:            {"identity", 1}, // to decompress the checkpoint
		"/v1/sessions/plain": {"zstd", 2},     // to read a page, and to compress it
	} {
		for range 3 {
			w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user(fmt.Sprint(rand.Perm(90_000)))))
		}
		server := w.streaming()
		server.CPU = admit.New(admit.Config{Name: "cpu", Size: 1, Each: 1, Patience: time.Second})
		r := httptest.NewRequest("GET", path+"/context", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+w.key)
		r.Header.Set("Accept-Encoding", of.coding)
		got := &turnTaker{ResponseRecorder: httptest.NewRecorder(), gate: server.CPU, turns: of.turns, t: t}
		server.ServeHTTP(got, r)
		want := w.ask("GET", path+"/context", "", "Accept-Encoding", of.coding)
		if got.writes < 2 || plainOf(answer{t, got.ResponseRecorder}) != plainOf(want) {
			t.Errorf("%s: %d in %d writes, another answer than that at once", path, got.Code, got.writes)
		}
	}
}

// TestAPageOfALongTailIsWhatTheWholeViewHas reads units of a view of which only a piece is read for them.
func TestAPageOfALongTailIsWhatTheWholeViewHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	var list []string
	for i := range 200 {
		list = append(list, user(fmt.Sprint("question ", i)),
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"result %d"}`, i, i))
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", list...))
	pieces := w.streaming()
	for _, query := range []string{"", "from_seq=2", "from_seq=299", "from_seq=300", "from_seq=598", "from_seq=601", "from_seq=301&as_of_seq=500", "from_seq=500&as_of_seq=500"} {
		path := "/v1/sessions/s/context/units?limit=7&" + query
		want, got := w.must(http.StatusOK, "GET", path, "").Body.String(), w.asked(pieces, path).Body.String()
		if got != want || strings.Contains(got, `"tokens":0,"pinned"`) {
			t.Errorf("%s: %s, not %s", query, got, want)
		}
	}
}
