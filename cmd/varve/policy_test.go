package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const somePolicy = `{"policy_version":{"tenant":3,"session":2},"patch":{},"effective":{"profile":"cortex","target":0.3,"trim":{"enabled":true,"categories":{"a/b":"ephemeral","Read":"rereadable"}}},
	"sources":{"/profile":"tenant","/target":"session","/trim/enabled":"profile:cortex","/trim/categories":"profile:cortex","/trim/categories/a~1b":"session"}}`

func TestAPolicyIsPrintedWithWhereItsValuesComeFrom(t *testing.T) {
	t.Parallel()
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, somePolicy) }))
	for _, test := range []struct {
		all  bool
		want string
	}{
		{false, "profile cortex, version 2 of the session's own, on version 3 of the tenant's default\nFIELD VALUE FROM\nprofile \"cortex\" tenant\ntarget 0.3 session\ntrim.categories.a~1b \"ephemeral\" session\n2 more values are the profile's; --all prints them\n"},
		{true, "profile cortex, version 2 of the session's own, on version 3 of the tenant's default\nFIELD VALUE FROM\nprofile \"cortex\" tenant\ntarget 0.3 session\ntrim.enabled true profile:cortex\ntrim.categories {\"a/b\":\"ephemeral\",\"Read\":\"rereadable\"} profile:cortex\ntrim.categories.a~1b \"ephemeral\" session\n"},
	} {
		var out bytes.Buffer
		if err := client.showPolicy(t.Context(), &out, call{method: "GET", path: policyPath("s")}, test.all); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(out.String()) {
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
		client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.EscapedPath())
			fmt.Fprint(w, somePolicy)
		}))
		cli, err := parse(append(strings.Fields("policy set "+args), file)...)
		if err != nil {
			t.Fatal(err)
		}
		err = cli.Policy.Set.set(t.Context(), client, &bytes.Buffer{})
		_, path, _ := strings.Cut(want, " ")
		if diff := cmp.Diff([]string{want, "GET " + path}, asked); err != nil || diff != "" {
			t.Errorf("%q: %v, asked (-want +got):\n%s", args, err, diff)
		}
	}
}

func TestProfilesAreListedOrOneIsPrinted(t *testing.T) {
	t.Parallel()
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"name":"default","policy":{"target":0.5}},{"name":"cortex","policy":{}}]}`)
	}))
	for name, want := range map[string]string{"": "default\ncortex\n", "default": "{\n  \"target\": 0.5\n}\n"} {
		var out bytes.Buffer
		if err := (&policyProfilesCommand{Name: name}).print(t.Context(), client, &out); err != nil || out.String() != want {
			t.Errorf("%q: %q, %v", name, out.String(), err)
		}
	}
	err := (&policyProfilesCommand{Name: "none"}).print(t.Context(), client, &bytes.Buffer{})
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "default, cortex") {
		t.Errorf("a profile that is not there: %v", err)
	}
}
