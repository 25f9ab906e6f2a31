package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/config"
)

// checkpointServer answers as the API does.
func checkpointServer(t *testing.T) *client.Client {
	t.Helper()
	answers := map[string]string{
		"GET /v1/sessions/s/checkpoints": `{"data":[{"n":2,"base":1,"restored_from":1,"through_seq":7,"tokens":90,"has_body":true,"engine_version":1,"policy_digest":"0123456789","created_at":"2026-01-02T03:04:05.678Z"},
			{"n":1,"base":0,"restored_from":null,"through_seq":7,"tokens":90,"has_body":false,"engine_version":1,"policy_digest":"0123456789","created_at":"2026-01-01T00:00:00Z"}]}`,
		"GET /v1/sessions/s/checkpoints/2?manifest=all": `{"n":2,"base":1,"through_seq":7,"created_at":"2026-01-02T03:04:05.678Z","run":"00000000-0000-7000-8000-000000000001","manifest":{"of":"all","tokens_before":500,"tokens_after":90,"tokens_saved":410,
			"stages":[{"stage":"trim","entries":2,"tokens_saved":410}],"entries":[
			{"seq":3,"part":0,"tool":"Read","do":"clear","stage":"trim","reason":"old","tokens_before":400,"tokens_after":10,"ref":"r3.0-aaaa"},
			{"seq":4,"last_seq":6,"part":-1,"do":"summarise","stage":"summarise","reason":"older","tokens_before":90,"tokens_after":70}]}}`,
		"GET /v1/sessions/s/checkpoints/1/diff?to=2": `{"from":{"n":1,"through_seq":5,"tokens":70},"to":{"n":2,"through_seq":7,"tokens":90},"tokens_covered":50,"tokens_changed":-30,
			"changes":[{"seq":3,"part":0,"tool":"Read","change":"left","from":{"do":"keep","tokens":40},"to":{"do":"clear","tokens":10},"ref":"r3.0-aaaa"}]}`,
		"GET /v1/sessions/s/checkpoints/1/context":  `{"messages":[]}`,
		"POST /v1/sessions/s/checkpoints/1/restore": `{"n":3,"restored_from":1,"through_seq":7}`,
	}
	return clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Get("limit") != "" {
			r.URL.RawQuery = ""
		}
		answer, ok := answers[r.Method+" "+r.URL.RequestURI()]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write([]byte(answer))
	})
}

func TestCheckpointsAsAPersonReadsThem(t *testing.T) {
	t.Parallel()
	api := checkpointServer(t)
	one, two := checkpointNumber(1), checkpointNumber(2)
	for _, test := range []struct {
		name    string
		command checkpointsCommand
		want    []string
	}{
		{"a list", checkpointsCommand{Limit: 5}, []string{"2           2026-01-02T03:04:05Z  1     1         7        90      kept    1       01234567", "pruned"}},
		{"one", checkpointsCommand{Number: &two, Manifest: "all"}, []string{"500 → 90 (410 saved, all)", "2 entries, 410 tokens", "3.0   Read  r3.0-aaaa", "4–6   -     -"}},
		{"a diff", checkpointsCommand{Number: &one, Diff: &two}, []string{"+50 tokens", "-30 tokens", "keep  clear  40 → 10"}},
		{"a view", checkpointsCommand{Number: &one, View: true}, []string{`{"messages":[]}`}},
		{"a restoration", checkpointsCommand{Number: &one, Restore: true}, []string{"checkpoint 1 is restored as checkpoint 3"}},
	} {
		test.command.Session = "s"
		out := output(t, api, config.Client{}, &test.command)
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s:\n%s\nhas no %q", test.name, out, want)
			}
		}
	}
}

func TestCheckpointFlagsWithoutMeaningAreRefused(t *testing.T) {
	t.Parallel()
	one := checkpointNumber(1)
	for _, c := range []checkpointsCommand{{Restore: true}, {View: true}, {Diff: &one}, {Number: &one, Restore: true, View: true}} {
		if c.Validate() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	for _, c := range []checkpointsCommand{{}, {Number: &one}, {Number: &one, Diff: &one}} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
