package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/protocol"
)

func TestClientWaitsForAServerThatStarts(t *testing.T) {
	t.Parallel()
	var waits []time.Duration
	var tries atomic.Int32 // each try is a connection of its own
	c := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		switch tries.Add(1) {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"code":"unavailable","detail":"the database does not answer"}`)
		default:
			fmt.Fprint(w, `{}`)
		}
	})
	c.Sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	if _, err := client.ReadSession.Call(t.Context(), c, "s"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{100 * time.Millisecond, 3 * time.Second}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestAPOSTWithoutAKeyIsSentOnce(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	c := clienttest.Of(t, func(http.ResponseWriter, *http.Request) {
		tries.Add(1)
		panic(http.ErrAbortHandler)
	})
	_, err := client.CreateToken.Call(t.Context(), c, "s")
	if tries.Load() != 1 || !errors.As(err, new(*client.UnreachableError)) || !strings.Contains(err.Error(), "may have had its effect") {
		t.Errorf("%d tries: %v", tries.Load(), err)
	}
}

func TestAClientWithoutAKeySaysSo(t *testing.T) {
	t.Parallel()
	if c, err := client.Open("http://127.0.0.1:1", ""); err == nil || !strings.Contains(err.Error(), "VARVE_KEY") {
		t.Errorf("%v, %v", c, err)
	}
}

func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	down := clienttest.Of(t, http.NotFound)
	down.Base = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	down.Patience = time.Hour
	var notes bytes.Buffer
	down.Notes = &notes
	var waited time.Duration
	down.Sleep = func(_ context.Context, d time.Duration) error { waited += d; return nil }
	_, err := client.ReadSession.Call(t.Context(), down, "s")
	if !errors.As(err, new(*client.UnreachableError)) || !strings.Contains(err.Error(), "no Varve answers at http://127.0.0.1:1 ") {
		t.Errorf("the error is %v", err)
	}
	if waited < 5*time.Second || waited > 7*time.Second {
		t.Errorf("it waited %s where nothing listens, want 5s", waited)
	}
	if !regexp.MustCompile(`^waiting for http://127\.0\.0\.1:1: .* \(is varve up running\?\)\n$`).MatchString(notes.String()) {
		t.Errorf("it printed %q, want one line", notes.String())
	}
	refused := clienttest.Of(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	refused.Sleep = func(context.Context, time.Duration) error { t.Error("waited after a 400"); return nil }
	var problem *client.Error
	if _, err := client.ReadSession.Call(t.Context(), refused, "s"); !errors.As(err, &problem) || problem.Status != http.StatusBadRequest {
		t.Errorf("the error is %v", err)
	}
}

func TestClientSendsKeyAndEscapesIDs(t *testing.T) {
	t.Parallel()
	var got []string
	c := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"), r.URL.EscapedPath())
		fmt.Fprint(w, `{}`)
	})
	if _, err := client.ReadContext.Call(t.Context(), c, "a/b %?#ü"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bearer vk_test", "/v1/sessions/a%2Fb%20%25%3F%23%C3%BC/context"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorsReadAsSentences(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"a missing session", 404, `{"code":"not_found","detail":"no such session"}`, "no such session (not_found)"},
		{
			"every problem with its pointer", 422,
			`{"code":"invalid_request","detail":"2 members are wrong","errors":[{"pointer":"/model","code":"x","detail":"too long"},
				{"pointer":"/policy/trigger","code":"y","detail":"0 to 1"}]}`,
			"2 members are wrong (invalid_request)\n  /model: too long\n  /policy/trigger: 0 to 1",
		},
		{
			"one problem, written once", 400,
			`{"code":"unknown_field","detail":"/x: there is no field x","errors":[{"pointer":"/x","code":"unknown_field","detail":"there is no field x"}]}`,
			"/x: there is no field x (unknown_field)",
		},
		{
			"several problems, each written once", 400,
			`{"code":"unknown_field","detail":"/x: no field (and 1 more)","errors":[{"pointer":"/x","code":"c","detail":"no field"},
				{"pointer":"/y","code":"c","detail":"no field, too"}]}`,
			"2 problems (unknown_field)\n  /x: no field\n  /y: no field, too",
		},
		{
			"our fault, with the request to ask about", 500,
			`{"code":"internal","detail":"an internal error","request_id":"req_1"}`, "an internal error (internal), request req_1",
		},
		{"another server's page", 502, `<html>`, "answered 502 Bad Gateway, which is not an answer of Varve"},
		{"too many requests", 429, `{"code":"limited","detail":"slow down"}`, "slow down (limited)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := clienttest.Of(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			c.Patience = 0
			_, err := client.ReadSession.Call(t.Context(), c, "s")
			var problem *client.Error
			if !errors.As(err, &problem) || !strings.HasSuffix(err.Error(), tt.want) || problem.Status != tt.status {
				t.Errorf("the error is %q, want %q", err, tt.want)
			}
		})
	}
}

func TestListsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	var queries []string
	c := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		if r.FormValue("cursor") == "" {
			fmt.Fprint(w, `{"data":[{"ref":"r1.0-0000","seq":1,"new":"x"}],"has_more":true,"next_cursor":"c+1"}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"ref":"r2.0-0000","seq":2}],"has_more":false,"next_cursor":null}`)
	})
	found, err := client.ListResults.All(t.Context(), c, 1000, "s")
	if err != nil || len(found) != 2 || found[0].Value.Seq != 1 || found[1].Value.Ref != "r2.0-0000" {
		t.Errorf("found %+v, %v", found, err)
	}
	if diff := cmp.Diff([]string{"limit=100", "cursor=c%2B1&limit=100"}, queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	if raw := string(found[0].Raw); raw != `{"ref":"r1.0-0000","seq":1,"new":"x"}` {
		t.Errorf("an entry was sent as %s", raw)
	}
	if found, err = client.ListResults.All(t.Context(), c, 1, "s"); err != nil || len(found) != 1 {
		t.Errorf("with a limit of 1: %d, %v", len(found), err)
	}
}

// with returns a call of a route with query parameters.
func with[T any](c *client.Client, r client.Route[T], q client.Query, args ...any) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := r.With(ctx, c, client.Options{Query: q}, args...)
		return err
	}
}

// all returns a call of a list's route.
func all[T any](c *client.Client, r client.ListRoute[T], limit int, args ...any) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := r.All(ctx, c, limit, args...)
		return err
	}
}

func TestARouteIsItsMethodAndPath(t *testing.T) {
	t.Parallel()
	var asked string
	c := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.RequestURI()
		fmt.Fprint(w, `{}`)
	})
	type query = client.Query
	for want, do := range map[string]func(context.Context) error{
		"GET /v1/sessions/s":                                 with(c, client.ReadSession, nil, "s"),
		"GET /v1/sessions/s/messages?from_seq=3&limit=4":     with(c, client.ListMessages, query{"from_seq": 3, "limit": 4}, "s"),
		"GET /v1/sessions/s/context?max_tokens=-1&view=full": with(c, client.ReadContext, query{"max_tokens": new(-1), "view": "full"}, "s"),
		"GET /v1/sessions/s/context":                         with(c, client.ReadContext, query{"max_tokens": (*int)(nil), "view": ""}, "s"),
		"POST /v1/sessions/s/preview?actions=all":            with(c, client.PreviewSession, query{"actions": "all"}, "s"),
		"POST /v1/sessions/s/compact?wait=60":                with(c, client.CompactSession, query{"wait": 60}, "s"),
		"GET /v1/sessions/s/runs/r":                          with(c, client.ReadRun, nil, "s", "r"),
		"GET /v1/sessions/s/runs?limit=-1":                   all(c, client.ListRuns, -1, "s"),
		"GET /v1/sessions/s/checkpoints?limit=5":             all(c, client.ListCheckpoints, 5, "s"),
		"GET /v1/sessions/s/checkpoints/2?manifest=all":      with(c, client.ReadCheckpoint, query{"manifest": "all"}, "s", 2),
		"GET /v1/sessions/s/checkpoints/2/context":           with(c, client.ReadCheckpointContext, nil, "s", 2),
		"GET /v1/sessions/s/checkpoints/2/diff?to=3":         with(c, client.DiffCheckpoints, query{"to": 3}, "s", 2),
		"POST /v1/sessions/s/checkpoints/2/restore":          with(c, client.RestoreCheckpoint, nil, "s", 2),
		"GET /v1/sessions/s/results?limit=100":               all(c, client.ListResults, 200, "s"),
		"GET /v1/sessions/s/results/r?limit=2&offset=3":      with(c, client.GetResult, query{"offset": new(3), "limit": new(2)}, "s", "r"),
		"GET /v1/policy":                                     with(c, client.Policy("GET", ""), nil, ""),
		"PUT /v1/sessions/s/policy":                          with(c, client.Policy("PUT", "s"), nil, "s"),
		"POST /v1/policy/check?as=session":                   with(c, client.CheckPolicy, query{"as": "session"}),
		"GET /v1/policies/profiles":                          with(c, client.Profiles, nil),
		"POST /v1/imports?from=codex&more=true&session=s":    with(c, client.CreateImport, query{"from": "codex", "more": true, "session": "s"}),
		"GET /v1/imports/i":                                  with(c, client.ReadImport, nil, "i"),
		"GET /v1/imports/i/lines?from=1&limit=1000&outcome=rejected": func(ctx context.Context) error {
			return c.EachImportLine(ctx, "i", "rejected", nil)
		},
	} {
		if err := do(t.Context()); err != nil || asked != want {
			t.Errorf("asked %s, want %s: %v", asked, want, err)
		}
	}
}

func TestABodyIsSentAsJSONAndBytesAsTheyAre(t *testing.T) {
	t.Parallel()
	var got []string
	c := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Header.Get("Idempotency-Key")+" "+r.Header.Get("Content-Type")+" "+string(body))
		fmt.Fprint(w, `{}`)
	})
	for _, o := range []client.Options{
		{Body: protocol.PreviewRequest{From: "log"}, Key: "k"},
		{Body: []byte(`{ "not": JSON`)},
		{},
	} {
		if _, err := client.PreviewSession.With(t.Context(), c, o, "s"); err != nil {
			t.Error(err)
		}
	}
	want := []string{`k application/json {"from":"log"}`, ` application/json { "not": JSON`, "  "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
