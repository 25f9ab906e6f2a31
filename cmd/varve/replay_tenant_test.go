package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
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
		cli, err := parse(append([]string{"replay", "--tenant=7", "--detach"}, strings.Fields(flags)...)...)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		api := answering(t, func(w http.ResponseWriter, r *http.Request) {
			asked, _ = io.ReadAll(r.Body)
			fmt.Fprint(w, `{"state":"queued"}`)
		})
		if err := cli.Replay.Run.ofTenant(t.Context(), &console{Client: &cli.Client, api: api, out: io.Discard}); err != nil {
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
		"":                             "name a folder",
		"samples --tenant=7":           "do not go with a folder",
		"samples --sample=7":           "do not go with a folder",
		"samples --metadata=a=b":       "do not go with a folder",
		"--tenant=7 --only=x":          "are for a folder",
		"--tenant=7 --half=odd":        "are for a folder",
		"--sample=7":                   "name a folder",
		"--tenant=7 --policy=none.txt": "none.txt",
		"--tenant=7":                   "name what to measure",
	} {
		cli, err := parse(append([]string{"replay", "--url=http://127.0.0.1:1", "--data=" + t.TempDir()}, strings.Fields(flags)...)...)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		c := &cli.Replay.Run
		err = c.check()
		if err == nil {
			_, err = c.request()
		}
		if err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
			t.Errorf("%s: %v, want %s", flags, err, want)
		}
	}
}

func TestAReplayIsFollowedToItsTables(t *testing.T) {
	t.Parallel()
	const progress = `{"id":"00000000-0000-7000-8000-000000000007","state":%q,"policies":[{"name":"a","source":"document"}],"created_at":"2026-01-02T03:04:05Z",
		"progress":{"matched":9,"too_short":2,"total":3,"done":%d,"measured":2,"failed":0,"outcomes":5,"contender":"a","skipped":[{"reason":"erased","sessions":1}]}}`
	asked := 0
	api := answering(t, func(w http.ResponseWriter, r *http.Request) {
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
	cli, err := parse("replay", "--tenant=7", "--policy={}")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := cli.Replay.Run.ofTenant(t.Context(), &console{Client: &cli.Client, api: api, out: &out}); err != nil {
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
	cli.JSON = true
	out.Reset()
	cli.Replay.Run.CSV, cli.Replay.Run.SVG = filepath.Join(t.TempDir(), "rows.csv"), filepath.Join(t.TempDir(), "plot.svg")
	if err := cli.Replay.Run.ofTenant(t.Context(), &console{Client: &cli.Client, api: api, out: &out}); err != nil {
		t.Fatal(err)
	}
	if !json.Valid([]byte(out.String())) || !strings.Contains(out.String(), `"contender": "a"`) {
		t.Errorf("JSON: %s", out.String())
	}
	for file, want := range map[string]string{cli.Replay.Run.CSV: "20000", cli.Replay.Run.SVG: "<svg"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v", file, text, err)
		}
	}
}

func TestAReplayThatFailedIsAnError(t *testing.T) {
	t.Parallel()
	api := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"00000000-0000-7000-8000-000000000007","state":"failed","error":"the disk is full"}`)
	})
	cli, err := parse("replay", "--tenant=7", "--policy=tenant")
	if err != nil {
		t.Fatal(err)
	}
	err = cli.Replay.Run.ofTenant(t.Context(), &console{Client: &cli.Client, api: api, out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "0007 failed: the disk is full") {
		t.Errorf("%v", err)
	}
}

// TestStoredSessionsAreReplayed runs the command line against varve up.
func TestStoredSessionsAreReplayed(t *testing.T) {
	t.Parallel()
	u := startUp(t, filepath.Join(t.TempDir(), "data"))
	for _, id := range []string{"a", "b", "c"} {
		u.want(201, "PUT", "/v1/sessions/"+id, `{"window_tokens":1000000}`)
		for n := range 20 {
			body, _ := toolTurn(id, n)
			u.want(201, "POST", "/v1/sessions/"+id+"/messages", body)
		}
	}
	tenant, _, err := session.ParseKey(u.key)
	if err != nil {
		t.Fatal(err)
	}
	varve := func(args ...string) string {
		t.Helper()
		out, err := program(t.Context(), append([]string{"replay"}, append(args, "--url="+u.url, "--data="+u.data)...)...).Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	shown := varve("--tenant="+tenant.String(), `--policy={"target":0.3}`, "--policy=tenant", "--windows=4000")
	for _, part := range []string{"3 of 3: 3 measured, 0 failed", "measurements  6", "Window of 4000 tokens: 3 sessions"} {
		if !strings.Contains(shown, part) {
			t.Errorf("%q is not in\n%s", part, shown)
		}
	}
	list := varve("list")
	fields := strings.Fields(strings.Split(list, "\n")[1])
	if got := varve("report", fields[0]); !strings.HasSuffix(shown, got) {
		t.Errorf("%s\nis not the end of\n%s", got, shown)
	}
	if got := varve("show", fields[0], "--sessions"); strings.Count(got, "measured") != 3 {
		t.Errorf("%s", got)
	}
	if got := varve("cancel", fields[0]); !strings.Contains(got, "done") {
		t.Errorf("%s", got)
	}
	u.stop()
}
