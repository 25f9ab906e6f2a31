package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
)

// What a page may take and have. On an idle machine half of the requests take 100 ms at most, and none 500 ms: the log
// has the figures. The limits are for a busy one.
const (
	p50, p99  = 500 * time.Millisecond, 2500 * time.Millisecond
	wireBytes = 150 << 10
	pageHeap  = 64 << 20
)

// TestPagesOfMuchAreQuick opens every page of two sessions of 100,000 messages, one compacted and one not, of a tenant
// of 200,000 sessions beside 1,000 others.
func TestPagesOfMuchAreQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	const messages, sessions, tenants = 100_000, 200_000, 1000
	began, w := time.Now(), newWorld(t)
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/raw", `{"format":"openai-chat","window_tokens":10000000}`)
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/compacted", `{"format":"openai-chat","window_tokens":128000}`)
	for _, id := range []string{"raw", "compacted"} {
		w.fill(id, messages)
	}
	t.Logf("%s: appended", time.Since(began))
	w.many(sessions, tenants)
	t.Logf("%s: copied", time.Since(began))
	w.Work(jobs.Config{Compactions: 2, SweepEvery: time.Second})
	w.Until("compacted", func() bool {
		return strings.Contains(w.Must(http.StatusOK, "GET", "/v1/sessions/compacted/checkpoints", ""), `"n":1`)
	})
	tenant := w.signedIn(w.Key)
	pages := []string{
		"", "sessions", "sessions?over_window=1", "sessions?failing=1", "sessions?quarantined=1", "sessions?due=1", "sessions?order=last_append",
		"sessions?model=none", "sessions?min_tokens=100", "sessions?q=paragraph", "sessions?metadata=" + url.QueryEscape(`{"user":"u7"}`),
		"failures", "replays", "recompactions", "recompactions/new", "policy", "audit", "playground",
	}
	for _, id := range []string{"raw", "compacted"} {
		for _, page := range []string{
			"", "?from_seq=50000", "?from_seq=99990", "?as_of_seq=50000", "?as_of_seq=99999", "?format=anthropic", "/log", "/log?from_seq=50000", "/messages/50000", "/timeline", "/timeline?over=cost", "/checkpoints", "/pins",
			"/preview", "/policy", "/runs", "/results", "/results/m100-200",
		} {
			pages = append(pages, "sessions/"+id+page)
		}
	}
	pages = append(pages, "sessions/compacted/checkpoints/1")
	tenant.measure(pages)
	w.operator().measure([]string{"", "tenants", "tenants/" + w.Tenant.String(), "fleet", "fleet?order=failing", "audit"})
}

// fill appends messages to a session: questions, calls with results, and answers.
func (w *world) fill(id string, n int) {
	w.Helper()
	for first := 0; first < n; first += 1000 {
		var list []string
		for i := first; i < first+1000; i += 4 {
			list = append(list, fmt.Sprintf(`{"role":"user","content":"question %d"}`, i),
				fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"f%d\"}"}}]}`, i, i%50),
				fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, i, strings.Repeat(fmt.Sprintf("line %d of a paragraph\\n", i), 12)),
				fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, i))
		}
		w.Must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", `{"messages":[`+strings.Join(list, ",")+`]}`)
	}
}

// many copies a session and the tenant.
func (w *world) many(sessions, tenants int) {
	w.Helper()
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/one", `{"format":"openai-chat","model":"gpt-4o"}`)
	w.Append("one", "hi")
	for tenant := range tenants {
		w.NewTenant(fmt.Sprint("tenant ", tenant))
	}
	w.Exec(`
		INSERT INTO sessions
		SELECT (jsonb_populate_record(s, jsonb_build_object(
		       'key', md5(n::text)::uuid, 'id', 'copy ' || n, 'created_at', s.created_at - n * interval '1 second',
		       'last_append_at', s.last_append_at - n * interval '1 second'))).*
		  FROM sessions s, generate_series(1, $2::integer) n
		 WHERE s.tenant_id = $1 AND s.id = 'one'`, w.Tenant, sessions)
	w.Exec(`
		INSERT INTO usage_sessions (tenant_id, session_key, tokens)
		SELECT $1, md5(n::text)::uuid, n
		  FROM generate_series(1, $2::integer) n`, w.Tenant, sessions)
	w.Exec(`
		INSERT INTO usage_days
		SELECT t.id, current_date - d, 1, 2, 3, 4, 5, 6, 7, 8
		  FROM generate_series(0, 365) d, tenants t
		    ON CONFLICT DO NOTHING`)
	w.Exec(`ANALYZE`)
}

// operator returns a visitor who has signed in with a key of an operator.
func (w *world) operator() *visitor {
	w.Helper()
	return w.signedIn(w.operatorKey())
}

func (w *world) operatorKey() string {
	w.Helper()
	key := session.NewOperatorKey()
	if _, err := w.Admin.CreateOperatorKey(w.Context(), "test", key, nil); err != nil {
		w.Fatal(err)
	}
	return key
}

// measure holds pages to what they may take.
func (v *visitor) measure(pages []string) {
	v.Helper()
	const rounds = 20
	for _, page := range pages {
		size, heap := v.packedSize("/console/"+page), v.made("/console/"+page)
		var took []time.Duration
		for range rounds {
			began := time.Now()
			v.packedSize("/console/" + page)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		v.Logf("%-60s %6.1f ms %6.1f ms %5d kB %5d MB made", page, ms(took[rounds/2]), ms(took[rounds-1]), size>>10, heap>>20)
		if took[rounds/2] > p50 || took[rounds-1] > p99 || size > wireBytes || heap > pageHeap {
			v.Errorf("%s: half of the requests take %s, one %s; %d bytes, %d of memory", page, took[rounds/2], took[rounds-1], size, heap)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// made returns the memory that a page takes if none is freed meanwhile.
func (v *visitor) made(path string) uint64 {
	v.Helper()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v.packedSize(path)
	runtime.ReadMemStats(&after)
	return after.HeapAlloc - before.HeapAlloc
}

// packedSize returns the bytes of a page as it is sent.
func (v *visitor) packedSize(path string) int {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.url+path, http.NoBody)
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	got, err := v.client.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != http.StatusOK {
		v.Fatalf("%s: %d %v", path, got.StatusCode, err)
	}
	return len(body)
}
