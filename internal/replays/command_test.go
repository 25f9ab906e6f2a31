package replays

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/command"
)

func TestTheFlagsOfAReplayAreItsBody(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), "deep.json")
	if err := os.WriteFile(deep, []byte(`{"target":0.3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked []byte
	for flags, want := range map[string]string{
		"--policy=" + deep + " --policy=tenant@3":         `{"tenant":"7","policies":[{"name":"deep","policy":{"target":0.3}},{"name":"tenant@3"}],"filter":{}}`,
		`--policy={"target":0.1} --policy={"target":0.2}`: `{"tenant":"7","policies":[{"name":"policy-1","policy":{"target":0.1}},{"name":"policy-2","policy":{"target":0.2}}],"filter":{}}`,
		"--profiles=default,cortex --yardsticks=never --windows=20000,32000 --sample=5 --seed=2 --max-messages=3 --max-bytes=4": `{"tenant":"7","policies":[{"name":"default"},{"name":"cortex"},{"name":"never"}],"windows":[20000,32000],"filter":{},"sample":5,"seed":2,"max_messages":3,"max_bytes":4}`,
		"--policy=tenant --session=a --metadata=k=v --min-tokens=9":                                                             `{"tenant":"7","policies":[{"name":"tenant"}],"filter":{"sessions":["a"],"metadata":{"k":"v"},"min_tokens":9}}`,
	} {
		cli, err := parse(t, append([]string{"--tenant=7", "--detach"}, strings.Fields(flags)...)...)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
			asked, _ = io.ReadAll(r.Body)
			fmt.Fprint(w, `{"state":"queued"}`)
		})
		if err := cli.ofTenant(t.Context(), &command.Console{API: api, Out: io.Discard}); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
		if diff := cmp.Diff(want, string(asked)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flags, diff)
		}
	}
}

func TestAReplayIsOfAFolderOrOfStoredSessions(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"samples --tenant=7":           "do not go with a folder",
		"samples --sample=7":           "do not go with a folder",
		"samples --metadata=a=b":       "do not go with a folder",
		"--tenant=7 --only=x":          "are for a folder",
		"--tenant=7 --half=odd":        "are for a folder",
		"--tenant=7 --without":         "are for a folder",
		"":                             "name a folder",
		"--sample=7":                   "name a folder",
		"--tenant=7 --policy=none.txt": "none.txt",
		"--tenant=7":                   "to measure stored sessions, policies",
	} {
		c, err := parse(t, strings.Fields(flags)...)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		err = c.check()
		if err == nil {
			_, err = c.request()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(command.Usage)) {
			t.Errorf("%s: %v, want %s", flags, err, want)
		}
	}
}

func TestAReplayIsFollowedToItsTables(t *testing.T) {
	t.Parallel()
	const progress = `{"id":"00000000-0000-7000-8000-000000000007","state":%q,"policies":[{"name":"a","source":"document"}],"created_at":"2026-01-02T03:04:05Z",
		"progress":{"matched":9,"too_short":2,"total":3,"done":%d,"measured":2,"failed":0,"outcomes":5,"contender":"a","skipped":[{"reason":"erased","sessions":1}]}}`
	asked := 0
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/report"):
			fmt.Fprint(w, `{"equal":[],"same":[{"contender":"a","window":20000,"sessions":2}]}`)
		case r.Method == http.MethodPost:
			fmt.Fprintf(w, progress, "queued", 0)
		default:
			state := "running"
			if asked++; asked >= 3 {
				state = "done"
			}
			fmt.Fprintf(w, progress, state, asked)
		}
	})
	cli, err := parse(t, "--tenant=7", "--policy={}")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := cli.ofTenant(t.Context(), &command.Console{API: api, Out: &out}); err != nil {
		t.Fatal(err)
	}
	want := `replay        00000000-0000-7000-8000-000000000007
state         done
created       2026-01-02T03:04:05Z
finished      -
found         9 sessions, 2 of them too short
sample        3 of 3: 2 measured, 0 failed
skipped       1: erased
measurements  5
document      a
Window of 20000 tokens: 2 sessions`
	if !strings.HasPrefix(out.String(), want) || asked != 3 {
		t.Errorf("asked %d times:\n%s", asked, out.String())
	}
	out.Reset()
	cli.CSV, cli.SVG = filepath.Join(t.TempDir(), "rows.csv"), filepath.Join(t.TempDir(), "plot.svg")
	if err := cli.ofTenant(t.Context(), &command.Console{API: api, JSON: true, Out: &out}); err != nil {
		t.Fatal(err)
	}
	if !json.Valid([]byte(out.String())) || !strings.Contains(out.String(), `"contender": "a"`) {
		t.Errorf("JSON: %s", out.String())
	}
	for file, want := range map[string]string{cli.CSV: "20000", cli.SVG: "<svg"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v", file, text, err)
		}
	}
}

func TestAReplayThatFailedIsAnError(t *testing.T) {
	t.Parallel()
	api := clienttest.Of(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"00000000-0000-7000-8000-000000000007","state":"failed","error":"the disk is full"}`)
	})
	cli, err := parse(t, "--tenant=7", "--policy=tenant")
	if err != nil {
		t.Fatal(err)
	}
	err = cli.ofTenant(t.Context(), &command.Console{API: api, Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "0007 failed: the disk is full") {
		t.Errorf("%v", err)
	}
}

// parse returns the command that a command line runs.
func parse(t *testing.T, args ...string) (*runCommand, error) {
	t.Helper()
	var cli commands
	_, err := kong.Must(&cli).Parse(append([]string{"replay"}, args...))
	return &cli.Replay.Run, err
}
