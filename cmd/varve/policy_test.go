package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/varve-dev/varve/internal/clienttest"
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
		err = cli.Policy.Set.Run(t.Context(), &command.Console{API: api, Out: io.Discard})
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
	to := &command.Console{API: api, Out: io.Discard}
	for _, c := range []interface {
		Run(ctx context.Context, to *command.Console) error
	}{&policyProfilesCommand{Name: "none"}, &policyExplainCommand{Name: "none"}, &policyExplainCommand{Name: "default"}} {
		if err := c.Run(t.Context(), to); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "default") {
			t.Errorf("a profile that is not there, or follows nothing: %v", err)
		}
	}
}

func TestAProfileIsExplained(t *testing.T) {
	t.Parallel()
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"data":[{"name":"cortex","document":"Cortex, its manual","explained":[
			{"field":"cap.max_tokens","value":50000,"section":"Defaults","says":"It is 50,000.","classes":["limit","whole"]},
			{"field":"hard","value":0.9,"section":"","says":"Varve's.","classes":[]}]}]}`)
	})
	const head = "profile cortex follows Cortex, its manual\nFIELD VALUE SECTION DIFFERS IN WHAT IT SAYS\n" +
		"cap.max_tokens 50000 Defaults limit,whole It is 50,000.\n"
	for all, want := range map[bool]string{
		false: head + "1 more values are Varve's; --all prints them\n", true: head + "hard 0.9 - - Varve's.\n",
	} {
		var got strings.Builder
		for line := range strings.Lines(output(t, api, config.Client{}, &policyExplainCommand{Name: "cortex", All: all})) {
			got.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
		if got.String() != want {
			t.Errorf("all %t:\n%s", all, got.String())
		}
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
