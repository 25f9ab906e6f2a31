package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// viewReads counts the statements that read messages or checkpoints.
type viewReads struct{ n atomic.Int64 }

func (r *viewReads) count(sql string) {
	const fits = "SELECT coalesce(sum(coalesce(bytes, octet_length(body))), 0)" // does the log fit into memory?
	reads := strings.Contains(sql, "FROM messages") || strings.Contains(sql, "FROM checkpoints")
	if reads && !strings.HasPrefix(strings.TrimSpace(sql), fits) {
		r.n.Add(1)
	}
}

func (r *viewReads) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.count(data.SQL)
	return ctx
}

func (*viewReads) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*viewReads) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *viewReads) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.count(data.SQL)
}

func (*viewReads) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// traced serves the world's database by a server of its own, which holds no checkpoint in memory yet and counts its
// reads.
func (w *world) traced() (*world, *viewReads) {
	w.Helper()
	reads := &viewReads{}
	config := w.store.Pool().Config()
	config.ConnConfig.Tracer = reads
	pool, err := pgxpool.NewWithConfig(w.Context(), config)
	if err != nil {
		w.Fatal(err)
	}
	inserts, err := queue.New(pool)
	if err != nil {
		w.Fatal(err)
	}
	other := *w
	other.store = postgres.New(pool, inserts, compactor.CapAtIngest)
	other.server = api.New(api.Config{Store: other.store, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	w.Cleanup(pool.Close)
	return &other, reads
}

func TestAViewIsReadOnceHoweverItIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	path := w.compacted("openai-chat")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/broken", `{"format":"anthropic"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/broken/messages", batch("anthropic",
		`{"role":"user","content":"`+strings.Repeat("a long question ", 40)+`"}`, `{"role":"assistant","content":"an answer"}`,
		`{"role":"user","content":"go"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
		`{"role":"user","content":"never mind"}`))
	w.must(http.StatusCreated, "PUT", "/v1/sessions/removed", `{"format":"anthropic"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/removed/messages", batch("anthropic", `{"role":"user","content":"go"}`,
		`{"role":"user","content":"on"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`))
	if _, _, err := w.store.Remove(t.Context(), session.Address{Tenant: w.tenant, ID: "removed"}, 2, nil); err != nil {
		t.Fatal(err)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/removed/messages", batch("anthropic", `{"role":"user","content":"never mind"}`))
	for name, test := range map[string]struct{ path, has string }{
		"as it is stored":                 {path + "/context", `"checkpoint":3`},
		"repaired":                        {"/v1/sessions/broken/context", `"repairs":[`},
		"repaired beside a gap":           {"/v1/sessions/removed/context", `"seq":3`},
		"repaired and bounded":            {"/v1/sessions/broken/context?max_tokens=60", `"omitted":{`},
		"bounded":                         {path + "/context?max_tokens=6000", `"omitted":{`},
		"with no need of its bound":       {path + "/context?max_tokens=10000000", `"checkpoint":3`},
		"in another format":               {path + "/context?format=gemini", `"format":"gemini"`},
		"for another model":               {path + "/context?model=mistral-large", `"checkpoint":3`},
		"the whole log in another format": {path + "/context?view=full&format=gemini", `"checkpoint":0`},
		"of an older checkpoint":          {path + "/checkpoints/1/context", `"checkpoint":1`},
	} {
		other, reads := w.traced()
		for _, when := range []string{"read", "read again, its checkpoint held"} {
			reads.n.Store(0)
			answer := other.must(http.StatusOK, "GET", test.path, "").Body.String()
			limit := int64(1)
			if strings.Contains(test.path, "view=full") {
				limit = 3 // messages in packs are read beside it
			}
			if got := reads.n.Load(); got < 1 || got > limit || !strings.Contains(answer, test.has) {
				t.Errorf("a view %s, %s, took %d reads, want %d; it has %s: %t\n%.600s",
					name, when, got, limit, test.has, strings.Contains(answer, test.has), answer)
			}
		}
	}
}

func TestAViewThatTheReaderHasIsReadOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, "")
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user("a")))
	for _, query := range []string{"", "?format=gemini", "?view=full&format=gemini", "?max_tokens=1000"} {
		tag := w.must(http.StatusOK, "GET", path+"/context"+query, "").Header().Get("ETag")
		other, reads := w.traced()
		other.must(http.StatusNotModified, "GET", path+"/context"+query, "", "If-None-Match", tag)
		if got := reads.n.Load(); got != 1 {
			t.Errorf("%q took %d reads, want 1", query, got)
		}
	}
}
