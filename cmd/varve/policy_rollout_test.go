package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/config"
)

const someRollout = `{"id":"00000000-0000-7000-8000-000000000007","state":"running","base_version":3,"version":4,"per_mille":50,"started_at":"2026-01-02T03:04:05Z",
	"comparison":{"control":{"version":3,"sessions":9,"compactions":10,"tokens_saved":5000,"trimmed":[{"stage":"rank","tokens_saved":5000}],"read_back":{"reads":5},"rates":{"reads_per_compaction":0.5}},
	"canary":{"version":4,"sessions":1,"trimmed":[],"rates":{}}}}`

func TestTheCommandsOfARolloutAreItsRequests(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"target":0.3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"start " + file + " --percent 5":                                           `POST /v1/policy/rollouts {"policy":{"target":0.3},"per_mille":50}`,
		"start --from-version=2 --percent 0.1 --min-sessions 9 --guard-factor 1.5": `POST /v1/policy/rollouts {"version":2,"per_mille":1,"min_sessions":9,"guard":{"factor":1.5,"min_compactions":100}}`,
		"start --from-version=2 --percent 100 --replay":                            `POST /v1/policy/rollouts {"version":2,"per_mille":1000}` + "\n" + `POST /v1/admin/replays {"policies":[{"name":"tenant@3"},{"name":"tenant@4"}],"filter":{}}`,
		"list":                             `GET /v1/policy/rollouts `,
		"show 7":                           `GET /v1/policy/rollouts/7 `,
		"share 7 --percent 20":             `PATCH /v1/policy/rollouts/7 {"per_mille":200}`,
		"share 7 --percent 1 --if-match 4": `PATCH /v1/policy/rollouts/7 {"per_mille":10} "4"`,
		"change 7 --guard-factor 1.5 --min-compactions 9": `PATCH /v1/policy/rollouts/7 {"guard":{"factor":1.5,"min_compactions":9}}`,
		"change 7 --no-guard --min-sessions 0":            `PATCH /v1/policy/rollouts/7 {"min_sessions":0,"guard":null}`,
		"promote 7 --if-match 5":                          `POST /v1/policy/rollouts/7/promote  "5"`,
		"back 7 --if-match 6":                             `POST /v1/policy/rollouts/7/back {} "6"`,
		"promote 7":                                       `POST /v1/policy/rollouts/7/promote `,
		"back 7":                                          `POST /v1/policy/rollouts/7/back {}`,
		"back 7 --roll-back":                              `POST /v1/policy/rollouts/7/back {"roll_back":true}`,
	} {
		var asked []string
		api := answering(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			line := r.Method + " " + r.URL.Path + " " + string(body)
			if tag := r.Header.Get("If-Match"); tag != "" {
				line += " " + tag
			}
			asked = append(asked, line)
			fmt.Fprint(w, someRollout)
		})
		cli, err := parse(append([]string{"policy", "rollout"}, strings.Fields(args)...)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		to, c := &console{Client: &cli.Client, api: api, out: io.Discard}, &cli.Policy.Rollout
		run := map[string]func() error{
			"start": func() error { return c.Start.Run(t.Context(), to) }, "list": func() error { return c.List.Run(t.Context(), to) },
			"show": func() error { return c.Show.Run(t.Context(), to) }, "share": func() error { return c.Share.Run(t.Context(), to) },
			"change":  func() error { return c.Change.Run(t.Context(), to) },
			"promote": func() error { return c.Promote.Run(t.Context(), to) }, "back": func() error { return c.Back.Run(t.Context(), to) },
		}
		name, _, _ := strings.Cut(args, " ")
		if err := run[name](); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		if diff := cmp.Diff(want, strings.Join(asked, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	for _, percent := range []float64{0, 0.05, 100.1, 3.33} {
		if _, err := (&rolloutShare{Percent: percent}).perMille(); err == nil {
			t.Errorf("--percent %v is accepted", percent)
		}
	}
}

func TestARolloutIsShownBesideTheDefault(t *testing.T) {
	t.Parallel()
	out := output(t, answering(t, answer(someRollout)), config.Client{}, &rolloutShowCommand{ID: "7"})
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	shown := strings.Join(lines, "\n")
	for _, want := range []string{
		"version 4, for 50 of 1,000 sessions; the others have version 3", "SINCE THEN version 3 version 4", "sessions 9 1",
		"compactions 10 0", "reads for each compaction 0.5 -", "saved by rank 5000",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not shown:\n%s", want, shown)
		}
	}
}
