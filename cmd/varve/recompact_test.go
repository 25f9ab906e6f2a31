package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheFlagsOfARecompactionAreItsBody(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"target": 0.3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"":                                   `{"filter":{},"max_running":2}`,
		"start --max-running=8 --dry-run":    `{"filter":{},"max_running":8,"dry_run":true}`,
		"--session=a,b --session=c":          `{"filter":{"sessions":["a,b","c"]},"max_running":2}`,
		"--metadata=k=v;w --metadata=team=a": `{"filter":{"metadata":{"k":"v;w","team":"a"}},"max_running":2}`,
		"--created-after=2026-01-31T00:00:00Z --created-before=2026-02-01T00:00:00+01:00": `{"filter":{"created_before":"2026-02-01T00:00:00+01:00","created_after":"2026-01-31T00:00:00Z"},"max_running":2}`,
		"--min-tokens=0 --engine-version-below=3 --policy-version-below=2":                `{"filter":{"min_tokens":0,"policy_version_below":2,"engine_version_below":3},"max_running":2}`,
		"--profile=cortex":        `{"filter":{},"policy":{"profile":"cortex"},"max_running":2}`,
		`--policy={"target":0.2}`: `{"filter":{},"policy":{"target":0.2},"max_running":2}`,
		"--policy=" + policy:      `{"filter":{},"policy":{"target":0.3},"max_running":2}`,
	} {
		cli, err := parse(append([]string{"recompact"}, strings.Fields(flags)...)...)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		got, err := cli.Recompact.Start.body()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flags, diff)
		}
	}
	if _, err := parse("recompact", "--policy="+policy, "--profile=cortex"); err == nil {
		t.Error("a policy and a profile at once are accepted")
	}
}

func TestARecompactionIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	const progress = `{"id":"7","state":%q,"progress":{"total":3,"done":%d,"changed":1,"failed":1},"tokens_before":900,"tokens_after":300,"created_at":"now",
		"errors":[{"session":"s1","error":"its log is poisoned\u001b[2J"}]}`
	asked := 0
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/admin/recompactions/7" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		state := "running"
		if asked++; asked == 3 {
			state = "done"
		}
		fmt.Fprintf(w, progress, state, asked)
	}))
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := recompaction{ID: "7"}
	raw, err := r.follow(t.Context(), client, file)
	if err != nil || asked != 3 || r.State != "done" || r.Progress.Done != 3 || len(raw) == 0 {
		t.Errorf("asked %d times: %+v, %v", asked, r, err)
	}
	var out strings.Builder
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `recompaction  7
state         done
created       now
finished      -
sessions      3 of 3: 1 changed, 0 unchanged, 1 failed, 0 skipped
tokens        900 → 300
failed: s1    "its log is poisoned\x1b[2J"
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARecompactionThatCannotBeFollowedGoesOn(t *testing.T) {
	t.Parallel()
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{}`, http.StatusNotFound)
	}))
	r := recompaction{ID: "7"}
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := r.follow(t.Context(), client, file); err == nil || !strings.Contains(err.Error(), "recompaction 7 goes on") {
		t.Errorf("%v", err)
	}
}
