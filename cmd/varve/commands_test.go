package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
)

func TestListsAreTablesOrJSON(t *testing.T) {
	t.Parallel()
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("cursor") == "" {
			fmt.Fprint(w, `{"data":[{"ref":"r1.0-0000","seq":1,"tool":"Read","category":"rereadable","bytes":9,"lines":1,"tokens":3}],`+
				`"has_more":true,"next_cursor":"c+1"}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"ref":"r2.0-0000","seq":2}],"has_more":false,"next_cursor":null}`)
	})
	want := "REF        MESSAGE  TOOL  CATEGORY    BYTES  LINES  TOKENS\n" +
		"r1.0-0000  1        Read  rereadable  9      1      3\nr2.0-0000  2                          0      0      0\n"
	if diff := cmp.Diff(want, output(t, api, config.Client{}, &resultsCommand{Session: "s"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := output(t, api, config.Client{JSON: true}, &resultsCommand{Session: "s", Limit: new(1)})
	if !strings.HasPrefix(got, `[{"ref":"r1.0-0000","seq":1`) || !strings.HasSuffix(got, "}]\n") {
		t.Errorf("JSON: %s", got)
	}
}

func TestResultsArePrintedByLinesOrRaw(t *testing.T) {
	t.Parallel()
	sum := "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.FormValue("raw") == "true":
			w.Header().Set("X-Content-Sha256", sum)
			fmt.Fprint(w, strings.TrimPrefix(r.URL.Path, "/v1/sessions/s/results/"))
		case r.FormValue("offset") == "9":
			fmt.Fprint(w, `{"ref":"r","lines":5,"content":"","next_offset":null}`)
		default:
			fmt.Fprintf(w, `{"ref":"r","lines":5,"content":"%s\t%s\n","next_offset":3}`, r.FormValue("offset"), r.FormValue("limit"))
		}
	})
	var out, notes bytes.Buffer
	to := &command.Console{API: api, Out: &out}
	page := resultsCommand{Session: "s", Ref: "r", Offset: new(2), Limit: new(1)}
	if err := page.lines(t.Context(), to, &notes); err != nil {
		t.Fatal(err)
	}
	if out.String() != "2\t1\n" || notes.String() != "… 5 lines in all; continue with --offset 3\n" {
		t.Errorf("printed %q and %q", out.String(), notes.String())
	}
	notes.Reset()
	after := resultsCommand{Session: "s", Ref: "r", Offset: new(9)}
	if err := after.lines(t.Context(), to, &notes); err != nil || notes.String() != "the result has 5 lines, none from line 9 on\n" {
		t.Errorf("after the end: %q, %v", notes.String(), err)
	}
	if got := output(t, api, config.Client{}, &resultsCommand{Session: "s", Ref: "hello", Raw: true}); got != "hello" {
		t.Errorf("raw: %q", got)
	}
	err := (&resultsCommand{Session: "s", Ref: "hullo"}).raw(t.Context(), to)
	if err == nil || !strings.Contains(err.Error(), "its SHA-256 must be "+sum) {
		t.Errorf("another content was accepted: %v", err)
	}
	both := resultsCommand{Session: "s", Ref: "hello", Raw: true}
	if err := both.Run(t.Context(), &command.Console{JSON: true, API: api, Out: &out}); exitCode(err) != exitUsage {
		t.Errorf("--raw --json: %v", err)
	}
}

const runID = "00000000-0000-7000-8000-000000000001"

func TestCompactWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	asked := []string{}
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"id":"`+runID+`","state":"queued","trigger":"manual"}`)
			return
		}
		fmt.Fprint(w, `{"id":"`+runID+`","state":"done","trigger":"manual","checkpoint":3,"through_seq":180,"tokens_before":61200,
			"tokens_after":29417,"results_persisted":40,"reason":"asked for",
			"stages":[{"stage":"cap","entered":false},{"stage":"trim","entered":true,"actions":40,"tokens_saved":31783},
			{"stage":"summarise","entered":true,"error":"no room"}]}`)
	})
	got := output(t, api, config.Client{}, &compactCommand{Session: "s", Wait: waitFlag(time.Hour)})
	if diff := cmp.Diff([]string{"POST /v1/sessions/s/compact?wait=60", "GET /v1/sessions/s/runs/" + runID}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	want := `run                ` + runID + `
state              done
trigger            manual
reason             asked for
checkpoint         3 through message 180
tokens             61200 → 29417
results persisted  40
trim               40 actions, 31783 tokens saved
summarise          0 actions, 0 tokens saved
error              summarise: no room
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAViewIsTextOnRequestUnlessItIsWantedAsJSON(t *testing.T) {
	t.Parallel()
	const view = `{"session":"s","format":"gemini","messages":[{"role":"user","parts":[{"text":"hi"}]}]}`
	api := clienttest.Of(t, answer(view))
	for _, tt := range []struct {
		command  contextCommand
		settings config.Client
		want     string
	}{
		{contextCommand{Session: "s"}, config.Client{}, view + "\n"},
		{contextCommand{Session: "s", Pretty: true}, config.Client{JSON: true}, view + "\n"},
		{
			contextCommand{Session: "s", Pretty: true}, config.Client{},
			"session s (gemini): 1 messages, 0 tokens, checkpoint 0 through 0 of 0\n\n## user\n\nhi\n",
		},
	} {
		if diff := cmp.Diff(tt.want, output(t, api, tt.settings, &tt.command)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.command, diff)
		}
	}
}

func TestRunsAreATable(t *testing.T) {
	t.Parallel()
	api := clienttest.Of(t, answer(`{"data":[{"id":"`+runID+`","state":"failed","trigger":"sweep","triggered_at":"2026-01-01T00:00:00.123456Z",
		"tokens_before":0,"error":"the plan is not valid"}]}`))
	want := "RUN                                   TRIGGERED             TRIGGER  STATE   CHECKPOINT  THROUGH  BEFORE  AFTER  RESULTS  ERROR\n" +
		runID + "  2026-01-01T00:00:00Z  sweep    failed  -           -        0       -      -        the plan is not valid\n"
	if diff := cmp.Diff(want, output(t, api, config.Client{}, &runsCommand{Session: "s"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTokensAreMadeListedAndRevoked(t *testing.T) {
	t.Parallel()
	const id = "0198f0c1-7c1e-7000-8000-000000000008"
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		body.ReadFrom(r.Body)
		switch r.Method + " " + r.URL.Path + " " + body.String() {
		case `POST /v1/sessions/s/tokens {"ttl_seconds":3600,"scopes":["read","compact"]}`:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"token":"st_x","id":"`+id+`"}`)
		case `GET /v1/sessions/s/tokens `:
			fmt.Fprint(w, `{"data":[{"id":"`+id+`","last4":"abcd","scopes":["read"]}],"has_more":false,"next_cursor":null}`)
		case `DELETE /v1/sessions/s/tokens/` + id + ` `:
			w.WriteHeader(http.StatusNoContent)
		default:
			t.Errorf("%s %s %s", r.Method, r.URL.Path, &body)
		}
	})
	if got := output(t, api, config.Client{}, &tokensCreateCommand{Session: "s", Expires: time.Hour, Compact: true}); got != "st_x\n" {
		t.Errorf("made %q", got)
	}
	if got := output(t, api, config.Client{}, &tokensListCommand{Session: "s"}); !strings.Contains(got, id+"  …abcd") {
		t.Errorf("listed %q", got)
	}
	output(t, api, config.Client{}, &tokensRevokeCommand{Session: "s", ID: uuid.MustParse(id)})
	for _, wrong := range []time.Duration{0, 25 * time.Hour} {
		if (&tokensCreateCommand{Expires: wrong}).Validate() == nil {
			t.Errorf("a token may live for %s", wrong)
		}
	}
}
