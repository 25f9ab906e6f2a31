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
	"github.com/varve-dev/varve/internal/client/clienttest"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
)

const somePolicy = `{"policy_version":{"tenant":3,"session":2},"patch":{},"effective":{"profile":"cortex","target":0.3,"trim":{"enabled":true,"categories":{"a/b":"ephemeral","Read":"rereadable"}}},
	"sources":{"/profile":"tenant","/target":"session","/trim/enabled":"profile:cortex","/trim/categories":"profile:cortex","/trim/categories/a~1b":"session"}}`

func TestAPolicyIsPrintedWithWhereItsValuesComeFrom(t *testing.T) {
	t.Parallel()
	api := clienttest.Of(t, answer(somePolicy))
	for _, test := range []struct {
		all  bool
		want string
	}{
		{false, "profile cortex, version 2 of the session's own, on version 3 of the tenant's default\nFIELD VALUE FROM\nprofile \"cortex\" tenant\ntarget 0.3 session\ntrim.categories.a~1b \"ephemeral\" session\n2 more values are the profile's; --all prints them\n"},
		{true, "profile cortex, version 2 of the session's own, on version 3 of the tenant's default\nFIELD VALUE FROM\nprofile \"cortex\" tenant\ntarget 0.3 session\ntrim.enabled true profile:cortex\ntrim.categories {\"a/b\":\"ephemeral\",\"Read\":\"rereadable\"} profile:cortex\ntrim.categories.a~1b \"ephemeral\" session\n"},
	} {
		out := output(t, api, config.Client{}, &policyShowCommand{Session: "s", All: test.all})
		var lines []string
		for line := range strings.Lines(out) {
			lines = append(lines, strings.Join(strings.Fields(line), " ")+"\n")
		}
		if diff := cmp.Diff(test.want, strings.Join(lines, "")); diff != "" {
			t.Errorf("all %v (-want +got):\n%s", test.all, diff)
		}
	}
}

func TestAPolicyIsSetWhereItBelongs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"target":0.3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                      "PUT /v1/policy",
		"--merge":               "PATCH /v1/policy",
		"--session=a/b":         "PUT /v1/sessions/a%2Fb/policy",
		"--session=a/b --merge": "PATCH /v1/sessions/a%2Fb/policy",
	} {
		var asked []string
		api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.EscapedPath())
			fmt.Fprint(w, somePolicy)
		})
		cli, err := parse(append(strings.Fields("policy set "+args), file)...)
		if err != nil {
			t.Fatal(err)
		}
		err = cli.Policy.Set.Run(t.Context(), &console{Client: &cli.Client, api: api, out: io.Discard})
		_, path, _ := strings.Cut(want, " ")
		if diff := cmp.Diff([]string{want, "GET " + path}, asked); err != nil || diff != "" {
			t.Errorf("%q: %v, asked (-want +got):\n%s", args, err, diff)
		}
	}
}

func TestProfilesAreListedOrOneIsPrinted(t *testing.T) {
	t.Parallel()
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"name":"default","policy":{"target":0.5}},{"name":"cortex","policy":{}}]}`)
	})
	for name, want := range map[string]string{"": "default\ncortex\n", "default": "{\n  \"target\": 0.5\n}\n"} {
		if out := output(t, api, config.Client{}, &policyProfilesCommand{Name: name}); out != want {
			t.Errorf("%q: %q", name, out)
		}
	}
	err := (&policyProfilesCommand{Name: "none"}).Run(t.Context(), &console{Client: &config.Client{}, api: api, out: io.Discard})
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "default, cortex") {
		t.Errorf("a profile that is not there: %v", err)
	}
}

func TestPolicyIsJSONOrAFile(t *testing.T) {
	t.Parallel()
	file := write(t, "p.json", []byte(`{"trigger":0.1}`))
	for text, want := range map[string]string{"": "", `{"a":1}`: `{"a":1}`, file: `{"trigger":0.1}`} {
		if got, err := command.ReadPolicy(text); err != nil || string(got) != want {
			t.Errorf("command.ReadPolicy(%q) = %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"{", "missing.json"} {
		if _, err := command.ReadPolicy(text); exitCode(err) != exitUsage {
			t.Errorf("command.ReadPolicy(%q): %v", text, err)
		}
	}
}
