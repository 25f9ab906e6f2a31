package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// server keeps sessions as docs/api.md says, as far as an import notices. The tests with it are about what the client
// sends; the end-to-end tests run against the real thing.
type server struct {
	mu       sync.Mutex
	sessions map[string]*stored
	appends  int
	refuse   func(appends int) int // status for the n-th append, 0 to do it
}

type stored struct {
	Format   session.Format    `json:"format"`
	LastSeq  int               `json:"last_seq"`
	Settings json.RawMessage   `json:"-"`
	IDs      []string          `json:"-"`
	Messages []json.RawMessage `json:"-"`
}

func newServer(t *testing.T) (*server, *Client) {
	t.Helper()
	s := &server{sessions: map[string]*stored{}, refuse: func(int) int { return 0 }}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/sessions/{id}", s.put)
	mux.HandleFunc("POST /v1/sessions/{id}/messages", s.append)
	mux.HandleFunc("GET /v1/sessions/{id}/messages", s.messages)
	return s, clientOf(t, mux)
}

// clientOf serves a handler, one request at a time, to a client that never really waits.
func clientOf(t *testing.T, h http.Handler) *Client {
	t.Helper()
	var one sync.Mutex
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	base, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Client{base: base, key: "vk_test", http: web.Client(), notes: t.Output(), patience: 5 * time.Second, sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
}

func (s *server) put(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	if s.sessions[id] == nil {
		made := &stored{}
		var raw json.RawMessage
		if json.NewDecoder(r.Body).Decode(&raw) != nil || json.Unmarshal(raw, made) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		made.Settings = raw
		s.sessions[id] = made
		w.WriteHeader(http.StatusCreated)
	}
	_ = json.NewEncoder(w).Encode(s.sessions[id])
}

func (s *server) append(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appends++
	if status := s.refuse(s.appends); status != 0 {
		w.WriteHeader(status)
		return
	}
	var body struct {
		Format      session.Format    `json:"format"`
		ExpectedSeq int               `json:"expected_seq"`
		ClientIDs   []string          `json:"client_ids"`
		Messages    []json.RawMessage `json:"messages"`
	}
	to := s.sessions[r.PathValue("id")]
	if json.NewDecoder(r.Body).Decode(&body) != nil || body.Format != to.Format || len(body.ClientIDs) != len(body.Messages) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if n := len(to.IDs); n > 0 && to.IDs[n-1] == body.ClientIDs[len(body.ClientIDs)-1] {
		fmt.Fprintf(w, `{"last_seq":%d,"compaction":"none","replayed":true}`, to.LastSeq)
		return
	}
	if body.ExpectedSeq != to.LastSeq {
		w.WriteHeader(http.StatusPreconditionFailed)
		fmt.Fprintf(w, `{"code":"stale_expected_seq","detail":"expected_seq is %d, but the session's last seq is %d"}`, body.ExpectedSeq, to.LastSeq)
		return
	}
	to.IDs, to.Messages = append(to.IDs, body.ClientIDs...), append(to.Messages, body.Messages...)
	to.LastSeq = len(to.IDs)
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"last_seq":%d,"total_tokens":%d,"compaction":"none"}`, to.LastSeq, 10*to.LastSeq)
}

func (s *server) messages(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.sessions[r.PathValue("id")]
	from, _ := strconv.Atoi(r.FormValue("from_seq"))
	to, _ := strconv.Atoi(r.FormValue("to_seq"))
	to = min(to, of.LastSeq, from+9) // small pages
	fmt.Fprint(w, `{"data":[`)
	for seq := from; seq <= to; seq++ {
		if seq > from {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, `{"seq":%d,"client_id":%q,"message":%s}`, seq, of.IDs[seq-1], of.Messages[seq-1])
	}
	fmt.Fprint(w, `]}`)
}
