package recompact

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/command"
)

func TestTheFlagsOfARecompactionAreItsBody(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"target": 0.3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked []byte
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
		cli, err := parse(t, strings.Fields(flags+" --detach")...)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
			asked, _ = io.ReadAll(r.Body)
			fmt.Fprint(w, `{"state":"done"}`)
		})
		if err := cli.Run(t.Context(), &command.Console{API: api, Out: io.Discard}); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
		if diff := cmp.Diff(want, string(asked)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flags, diff)
		}
	}
	if _, err := parse(t, "--policy="+policy, "--profile=cortex"); err == nil {
		t.Error("a policy and a profile at once are accepted")
	}
}

func TestARecompactionIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	const progress = `{"id":"00000000-0000-7000-8000-000000000007","state":%q,"progress":{"total":3,"done":%d,"changed":1,"failed":1},"tokens_before":900,"tokens_after":300,"created_at":"2026-01-02T03:04:05Z",
		"errors":[{"session":"s1","error":"its log is poisoned\u001b[2J"}]}`
	asked := 0
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/admin/recompactions/7" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		state := "running"
		if asked++; asked == 3 {
			state = "done"
		}
		fmt.Fprintf(w, progress, state, asked)
	})
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := follow(t.Context(), api, readRoute, "7", file)
	if err != nil || asked != 3 || r.Value.State != "done" || r.Value.Progress.Done != 3 || len(r.Raw) == 0 {
		t.Errorf("asked %d times: %+v, %v", asked, r, err)
	}
	var out strings.Builder
	if err := (&command.Console{Out: &out}).Print(view, r.Raw, r.Value); err != nil {
		t.Fatal(err)
	}
	want := `recompaction  00000000-0000-7000-8000-000000000007
state         done
created       2026-01-02T03:04:05Z
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
	api := clienttest.Of(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{}`, http.StatusNotFound)
	})
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := follow(t.Context(), api, readRoute, "7", file); err == nil || !strings.Contains(err.Error(), "recompaction 7 continues") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsPrintedOfRecompactions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	id := uuid.MustParse("00000000-0000-7000-8000-000000000001")
	for _, tt := range []struct {
		view  *template.Template
		value any
		want  string
	}{
		{listView, []Recompaction{{ID: id, CreatedAt: at, State: "running", Progress: RecompactionProgress{Done: 1, Total: 2, Changed: 3, Failed: 4}, TokensBefore: 5, TokensAfter: 6}},
			"RECOMPACTION CREATED STATE DONE TOTAL CHANGED FAILED BEFORE AFTER\n" + id.String() + " 2026-01-02T03:04:05Z running 1 2 3 4 5 6\n"},
		{sessionsView, []RecompactionSession{{Session: new("s"), State: "failed", TokensBefore: new(int64(7)), Error: new("why\x1b")}},
			"SESSION STATE BEFORE AFTER RUN ERROR\ns failed 7 - - \"why\\x1b\"\n"},
		{planView, &RecompactionPlan{
			Sessions: 1, Messages: 2, TotalTokens: 3, ContextTokens: 4,
			Sample:   RecompactionSample{Sessions: 5, Failed: 6, TokensBefore: 7, TokensAfter: 8, Errors: []RecompactionError{{Session: "s", Error: "why"}}},
			Estimate: RecompactionEstimate{Changed: 9, TokensBefore: 10, TokensAfter: 11},
		}, "sessions 1\nmessages 2\ntokens of the logs 3\ntokens of the views 4\nsample 5 sessions, 6 failed, 7 → 8 tokens\nestimate 9 sessions change, 10 → 11 tokens\ns why\n"},
	} {
		var out, got strings.Builder
		if err := (&command.Console{Out: &out}).Print(tt.view, nil, tt.value); err != nil {
			t.Error(err)
			continue
		}
		for line := range strings.Lines(out.String()) {
			got.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
		if diff := cmp.Diff(tt.want, got.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// parse returns the command that a command line runs.
func parse(t *testing.T, args ...string) (*startCommand, error) {
	t.Helper()
	var cli commands
	parser, err := kong.New(&cli)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(append([]string{"recompact"}, args...))
	return &cli.Recompact.Start, err
}
