package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestClientWaitsForAServerThatStarts(t *testing.T) {
	t.Parallel()
	var waits []time.Duration
	var tries atomic.Int32 // each try is a connection of its own
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch tries.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"code":"unavailable","detail":"the database does not answer"}`)
		case 2:
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	client.sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	if _, err := client.decode(t.Context(), call{method: http.MethodPost, path: []string{"sessions"}, body: []byte(`{}`)}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{3 * time.Second, 2 * time.Second}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	down := clientOf(t, http.NotFoundHandler())
	down.base = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	down.patience = time.Hour
	var notes bytes.Buffer
	down.notes = &notes
	var waited time.Duration
	down.sleep = func(_ context.Context, d time.Duration) error { waited += d; return nil }
	_, err := down.decode(t.Context(), call{method: http.MethodGet, path: []string{"sessions"}}, nil)
	if exitCode(err) != exitUnavailable || !strings.Contains(err.Error(), "no Varve answers at http://127.0.0.1:1 ") {
		t.Errorf("error %v, exit %d", err, exitCode(err))
	}
	if waited < refusedPatience || waited > refusedPatience+2*time.Second {
		t.Errorf("waited %s with a patience of %s", waited, refusedPatience)
	}
	if !regexp.MustCompile(`^waiting for http://127\.0\.0\.1:1: .* \(is varve up running\?\)\n$`).MatchString(notes.String()) {
		t.Errorf("it said %q, want one line", notes.String())
	}
	refused := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	refused.sleep = func(context.Context, time.Duration) error { t.Error("waited after a 400"); return nil }
	if _, err := refused.decode(t.Context(), call{method: http.MethodGet}, nil); exitCode(err) != exitError {
		t.Errorf("error %v, exit %d", err, exitCode(err))
	}
}

func TestClientSendsKeyAndEscapesIDs(t *testing.T) {
	t.Parallel()
	var got []string
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"), r.URL.EscapedPath())
		fmt.Fprint(w, `{}`)
	}))
	if _, err := client.decode(t.Context(), call{method: http.MethodGet, path: []string{"sessions", "a/b %?#ü", "context"}}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bearer vk_test", "/v1/sessions/a%2Fb%20%25%3F%23%C3%BC/context"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClientReadsItsKeyFromTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := readKey(filepath.Join(dir, "key")); exitCode(err) != exitAuth || !strings.Contains(err.Error(), "VARVE_KEY") {
		t.Errorf("without a key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("vk_x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := readKey(filepath.Join(dir, "key")); key != "vk_x" || err != nil {
		t.Errorf("key %q, %v", key, err)
	}
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://", "%"} {
		if _, err := (&Globals{URL: bad, Data: dir}).Client(); exitCode(err) != exitUsage {
			t.Errorf("URL %q: %v", bad, err)
		}
	}
}

func TestErrorsReadAsSentencesAndEndTheProgramWithTheirCode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   string
		code   int
	}{
		{"a missing session", 404, `{"code":"not_found","detail":"no such session"}`, "no such session (not_found)", exitNotFound},
		{"a bad key", 401, `{"code":"unauthorized","detail":"the key is unknown"}`, "the key is unknown (unauthorized)", exitAuth},
		{"a stale seq", 412, `{"code":"stale_expected_seq","detail":"stale"}`, "stale (stale_expected_seq)", exitConflict},
		{
			"every problem with its pointer", 422,
			`{"code":"invalid_request","detail":"2 members are wrong","errors":[{"pointer":"/model","code":"x","detail":"too long"},{"pointer":"/policy/trigger","code":"y","detail":"0 to 1"}]}`,
			"2 members are wrong (invalid_request)\n  /model: too long\n  /policy/trigger: 0 to 1", exitError,
		},
		{
			"one problem, said once", 400, `{"code":"unknown_field","detail":"/x: there is no field x","errors":[{"pointer":"/x","code":"unknown_field","detail":"there is no field x"}]}`,
			"/x: there is no field x (unknown_field)", exitError,
		},
		{
			"several problems, each said once", 400,
			`{"code":"unknown_field","detail":"/x: no field (and 1 more)","errors":[{"pointer":"/x","code":"c","detail":"no field"},{"pointer":"/y","code":"c","detail":"no field, too"}]}`,
			"2 problems (unknown_field)\n  /x: no field\n  /y: no field, too", exitError,
		},
		{"our fault, with the request to ask about", 500, `{"code":"internal","detail":"an internal error","request_id":"req_1"}`, "an internal error (internal), request req_1", exitError},
		{"another server's page", 502, `<html>`, "answered 502 Bad Gateway, which is no answer of Varve's", exitUnavailable},
		{"too many requests", 429, `{"code":"limited","detail":"slow down"}`, "slow down (limited)", exitLimited},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			client.patience = 0
			_, err := client.decode(t.Context(), call{method: http.MethodGet}, nil)
			if !strings.HasSuffix(describe(err), tt.want) || exitCode(err) != tt.code {
				t.Errorf("%q with exit code %d, want %q with %d", describe(err), exitCode(err), tt.want, tt.code)
			}
			if got := complaint(err); got != "varve: "+describe(err) {
				t.Errorf("it complains %q", got)
			}
			client.json = true
			if _, err := client.decode(t.Context(), call{method: http.MethodGet}, nil); json.Valid([]byte(tt.body)) && complaint(err) != tt.body {
				t.Errorf("with --json: %s", complaint(err))
			}
		})
	}
	for err, want := range map[error]int{session.ErrNotFound: exitNotFound, context.Canceled: exitInterrupted, errors.New("x"): exitError} {
		if got := exitCode(err); got != want {
			t.Errorf("exitCode(%v) = %d, want %d", err, got, want)
		}
	}
}

func TestListsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	var queries []string
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		if r.FormValue("cursor") == "" {
			fmt.Fprint(w, `{"data":[{"ref":"r1.0-0000","seq":1,"tool":"Read","category":"rereadable","bytes":9,"lines":1,"tokens":3}],"has_more":true,"next_cursor":"c+1"}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"ref":"r2.0-0000","seq":2}],"has_more":false,"next_cursor":null}`)
	}))
	var out bytes.Buffer
	if err := (&resultsCommand{Session: "s"}).list(t.Context(), client, &out); err != nil {
		t.Fatal(err)
	}
	want := "REF        MESSAGE  TOOL  CATEGORY    BYTES  LINES  TOKENS\nr1.0-0000  1        Read  rereadable  9      1      3\nr2.0-0000  2                          0      0      0\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"limit=100", "cursor=c%2B1&limit=100"}, queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	out.Reset()
	queries = nil
	if err := (&resultsCommand{Session: "s", Limit: new(-1)}).list(t.Context(), client, io.Discard); err != nil || queries[0] != "limit=-1" {
		t.Errorf("a limit of -1 asked for %q: %v", queries, err)
	}
	if err := listJSON(t.Context(), client, &out, 1, "sessions", "s", "results"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), `[{"ref":"r1.0-0000","seq":1`) || !strings.HasSuffix(out.String(), "}]\n") {
		t.Errorf("JSON: %s", out.String())
	}
}

func TestResultsArePrintedByLinesOrRaw(t *testing.T) {
	t.Parallel()
	sum := "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("raw") != "true" {
			fmt.Fprintf(w, `{"ref":"r","lines":5,"content":"%s\t%s\n","next_offset":3}`, r.FormValue("offset"), r.FormValue("limit"))
			return
		}
		w.Header().Set("X-Content-Sha256", sum)
		fmt.Fprint(w, strings.TrimPrefix(r.URL.Path, "/v1/sessions/s/results/"))
	}))
	var out, notes bytes.Buffer
	if err := (&resultsCommand{Session: "s", Ref: "r", Offset: new(2), Limit: new(1)}).lines(t.Context(), client, &out, &notes); err != nil {
		t.Fatal(err)
	}
	if out.String() != "2\t1\n" || notes.String() != "… 5 lines in all; --offset 3 goes on\n" {
		t.Errorf("printed %q and %q", out.String(), notes.String())
	}
	out.Reset()
	if err := (&resultsCommand{Session: "s", Ref: "hello"}).raw(t.Context(), client, &out); err != nil || out.String() != "hello" {
		t.Errorf("raw: %q, %v", out.String(), err)
	}
	if err := (&resultsCommand{Session: "s", Ref: "hullo"}).raw(t.Context(), client, &out); err == nil || !strings.Contains(err.Error(), "its SHA-256 should be "+sum) {
		t.Errorf("another content was accepted: %v", err)
	}
}

func TestCompactWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	asked := []string{}
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"id":"run1","state":"queued","trigger":"manual"}`)
			return
		}
		fmt.Fprint(w, `{"id":"run1","state":"done","trigger":"manual","checkpoint":3,"through_seq":180,"tokens_before":61200,"tokens_after":29417,"results_persisted":40,"reason":"asked for",
			"stages":[{"stage":"cap","entered":false},{"stage":"trim","entered":true,"actions":40,"tokens_saved":31783}]}`)
	}))
	run, _, err := (&compactCommand{Session: "s", Wait: waitFlag(time.Hour)}).compact(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"POST /v1/sessions/s/compact?wait=60", "GET /v1/sessions/s/runs/run1"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	if err := run.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `run                run1
state              done
trigger            manual
reason             asked for
checkpoint         3 through message 180
tokens             61200 → 29417
results persisted  40
trim               40 actions, 31783 tokens saved
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if run, _, err := (&compactCommand{Session: "s"}).compact(t.Context(), client); err != nil || run.State != "queued" {
		t.Errorf("without --wait: %q, %v", run.State, err)
	}
	if last := asked[len(asked)-1]; last != "POST /v1/sessions/s/compact" {
		t.Errorf("without --wait the last request is %s", last)
	}
}

func TestRunsAreATable(t *testing.T) {
	t.Parallel()
	failed := "the plan is not valid"
	var out bytes.Buffer
	if err := writeRuns(&out, []compaction{{ID: "r1", State: "failed", Trigger: "sweep", TriggeredAt: "2026-01-01T00:00:00.123456Z", Error: &failed}}); err != nil {
		t.Fatal(err)
	}
	want := "RUN  TRIGGERED             TRIGGER  STATE   CHECKPOINT  THROUGH  BEFORE  AFTER  RESULTS  ERROR\n" +
		"r1   2026-01-01T00:00:00Z  sweep    failed  -           -        0       0      0        the plan is not valid\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrettyViewIsTextWithoutControlCharacters(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, view, want string }{
		{
			"OpenAI Chat",
			`{"session":"s","format":"openai-chat","checkpoint":1,"through_seq":2,"last_seq":4,"tokens":9,"omitted":{"units":1,"messages":2,"tokens":5},"messages":[
				{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"ls","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"c1","content":"a\u001b[31mb"}]}`,
			"session s (openai-chat): 2 messages, 9 tokens, checkpoint 1 through 2 of 4\nleft out: 1 units (2 messages, 5 tokens)\n" +
				"\n## assistant\n\n\n→ ls {} (c1)\n\n## tool\n\n← c1\na\uFFFD[31mb\n",
		},
		{
			"Anthropic",
			`{"session":"s","format":"anthropic","last_seq":2,"system":[{"type":"text","text":"be brief"}],"messages":[
				{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t1","name":"ls","input":{"p":1}},{"type":"image","source":{}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"}]}]}, 7]}`,
			"session s (anthropic): 3 messages, 0 tokens, checkpoint 0 through 0 of 2\n\n## system\n\nbe brief\n" +
				"\n## assistant\n\n(thinking) hm\n→ ls {\"p\":1} (t1)\n(image, 28 bytes)\n\n## user\n\n← t1\nx\n\n## a message\n\n7\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var v view
			if err := json.Unmarshal([]byte(tt.view), &v); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := v.write(&out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
