package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
)

// pinServer answers as the API does; its candidates have two pages.
func pinServer(t *testing.T) *client.Client {
	t.Helper()
	const one = `{"ref":"m17.0","seq":17,"part":0,"text":"Never push\nto main.","tokens":9,"note":"rules","created_at":"2026-01-02T03:04:05Z"}`
	answers := map[string]string{
		`GET /v1/sessions/s/pins `:                             `{"data":[` + one + `]}`,
		`PUT /v1/sessions/s/pins/m17.0 {"note":"rules"}`:       one,
		`DELETE /v1/sessions/s/pins/m17.0 `:                    "",
		`GET /v1/sessions/s/pins/candidates?from_seq=1 `:       `{"data":[{"ref":"m2.0","seq":2,"part":0,"text":"Always use tabs.","tokens":4}],"has_more":true,"next_seq":1001}`,
		`GET /v1/sessions/s/pins/candidates?from_seq=1001 `:    `{"data":[{"ref":"m1007.0","seq":1007,"part":0,"text":"Never.","tokens":2}],"has_more":false,"next_seq":null}`,
		`POST /v1/sessions/s/summaries/rebuild?wait=60 `:       `{"id":"` + runID + `","state":"done","trigger":"manual","tokens_before":9,"tokens_after":8}`,
		`POST /v1/sessions/failing/summaries/rebuild?wait=60 `: `{"id":"` + runID + `","state":"failed","trigger":"manual","error":"the log is too large"}`,
		`GET /v1/sessions/s/summaries?checkpoint=3 `:           summariesOf(`{"calls":2,"cost_micros":2240}`),
		`GET /v1/sessions/s/summaries `:                        summariesOf(`{"calls":1,"cost_micros":70}`),
	}
	return clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		answer, ok := answers[fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)]
		switch {
		case err != nil || !ok:
			w.WriteHeader(http.StatusNotFound)
		case answer == "":
			w.WriteHeader(http.StatusNoContent)
		}
		_, _ = w.Write([]byte(answer))
	})
}

func summariesOf(spent string) string {
	return `{"checkpoint":3,"summaries":[
		{"first_seq":2,"last_seq":57,"ref":"m2-57","messages":56,"tokens":310,"writer":"small","state":"written","generation":1,
		 "flags":["instruction_like"],"text":"Port 5433.\u001b[2J","provenance":{"model":"small","spent":` + spent + `}},
		{"first_seq":58,"last_seq":90,"ref":"m58-90","messages":33,"tokens":200,"writer":"extract","state":"failed","generation":1,
		 "flags":[],"text":"Later.","reason":"the model has failed: small: status 401"}]}`
}

func TestPinsAndSummariesAsAPersonReadsThem(t *testing.T) {
	t.Parallel()
	api := pinServer(t)
	three := 3
	for _, test := range []struct {
		name    string
		command runner
		want    []string
	}{
		{"pins", &pinsListCommand{Session: "s"}, []string{"m17.0  9       2026-01-02T03:04:05Z  rules", `"Never push\nto main."`}},
		{"a pin", &pinsAddCommand{Session: "s", Ref: "m17.0", Note: "rules"}, []string{`pinned m17.0, 9 tokens: "Never push\nto main."`}},
		{"no pin", &pinsRmCommand{Session: "s", Ref: "m17.0"}, nil},
		{"candidates", &pinsCandidatesCommand{Session: "s"}, []string{"m2.0     4       Always use tabs.", "m1007.0  2       Never."}},
		{"summaries", &summariesShowCommand{Session: "s"}, []string{"2–57      m2-57", "instruction_like  1 call, cost 0.0001", "the model has failed: small"}},
		{"those of a checkpoint", &summariesShowCommand{Session: "s", Checkpoint: &three}, []string{"2 calls, cost 0.0022"}},
		{"texts", &summariesShowCommand{Session: "s", Text: true}, []string{"m2-57:\nPort 5433.\uFFFD[2J\n", "m58-90:\nLater.\n"}},
		{"a rebuild", &summariesRebuildCommand{Session: "s"}, []string{"state              done"}},
	} {
		out := output(t, api, config.Client{}, test.command)
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s:\n%s\nhas no %q", test.name, out, want)
			}
		}
	}
	got := output(t, api, config.Client{JSON: true}, &pinsCandidatesCommand{Session: "s"})
	if strings.Count(got, `"ref"`) != 2 {
		t.Errorf("JSON of two pages: %s", got)
	}
	to := &command.Console{API: api, Out: io.Discard}
	if err := (&summariesRebuildCommand{Session: "failing"}).Run(t.Context(), to); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a rebuild that fails: %v", err)
	}
}
