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
)

// bodyReads counts the statements that read bodies of messages or checkpoints.
type bodyReads struct{ n atomic.Int64 }

func (r *bodyReads) count(sql string) {
	if strings.Contains(sql, "body") && (strings.Contains(sql, "FROM messages") || strings.Contains(sql, "FROM checkpoints")) &&
		!strings.Contains(sql, "coalesce(sum(octet_length(body)), 0)") { // whether the log fits into memory
		r.n.Add(1)
	}
}

func (r *bodyReads) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.count(data.SQL)
	return ctx
}

func (*bodyReads) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*bodyReads) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *bodyReads) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.count(data.SQL)
}

func (*bodyReads) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// traced serves the world's database by a server of its own, which holds no checkpoint in memory yet and counts its
// reads.
func (w *world) traced() (*world, *bodyReads) {
	w.Helper()
	reads := &bodyReads{}
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
	for name, test := range map[string]struct{ path, has string }{
		"as it is stored":                 {path + "/context", `"checkpoint":3`},
		"repaired":                        {"/v1/sessions/broken/context", `"repairs":[`},
		"repaired and bounded":            {"/v1/sessions/broken/context?max_tokens=60", `"omitted":{`},
		"bounded":                         {path + "/context?max_tokens=6000", `"omitted":{`},
		"with no need of its bound":       {path + "/context?max_tokens=10000000", `"checkpoint":3`},
		"in another format":               {path + "/context?format=gemini", `"format":"gemini"`},
		"for another model":               {path + "/context?model=mistral-large", `"checkpoint":3`},
		"the whole log in another format": {path + "/context?view=full&format=gemini", `"checkpoint":0`},
		"of an older checkpoint":          {path + "/checkpoints/1/context", `"checkpoint":1`},
	} {
		other, reads := w.traced()
		answer := other.must(http.StatusOK, "GET", test.path, "")
		if got := reads.n.Load(); got != 1 || !strings.Contains(answer.Body.String(), test.has) {
			t.Errorf("a view %s took %d reads, want 1; it has %s: %t", name, got, test.has, strings.Contains(answer.Body.String(), test.has))
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
