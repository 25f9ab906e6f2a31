package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api/apitest"
)

// uncommanded says why routes have no command: all of a tag, or one. A feature's has that in its description, as
// x-uncommanded.
var uncommanded = map[string]string{
	"Agent tools": "models call them; varve mcp serves the same tools",
	"OpenAI":      "OpenAI's SDKs speak it",
	"Operation":   "load balancers, Prometheus and browsers ask",
	"Usage":       "reports are files: curl writes them",

	"POST /v1/sessions":                          "a program makes its sessions; varve import makes those of files",
	"PUT /v1/sessions/{id}":                      "as POST",
	"GET /v1/sessions/{id}/timeline":             "the console draws it",
	"GET /v1/sessions/{id}/context/units":        "the console shows them beside the log",
	"PATCH /v1/sessions/{id}":                    "the program that made it",
	"GET /v1/sessions/{id}/messages":             "varve context --full and varve export print the log",
	"POST /v1/sessions/{id}/messages":            "a program appends; varve import appends files",
	"PUT /v1/sessions/{id}/messages":             "a program has the array",
	"PATCH /v1/sessions/{id}/messages/{message}": "as PUT",
	"POST /v1/compact":                           "for programs without sessions; varve demo and replay take files",
	"GET /v1/sessions/{id}/results/grep":         "varve results prints what grep(1) reads",
	"GET /v1/sessions/{id}/results/{ref}/grep":   "varve results prints what grep(1) reads",
	"GET /v1/sessions/{id}/search":               "varve search looks in all sessions",
	"GET /v1/policy/versions":                    "varve audit list --action has who changed what",
	"GET /v1/sessions/{id}/policy/versions":      "varve audit list --action has who changed what",
	"GET /v1/policies/schema":                    "editors fetch it",
	"GET /v1/events":                             "a program follows them; varve webhooks sends them",
	"GET /v1/models":                             "docs/models.md lists them",
	"GET /v1/models/summaries":                   "varve config prints them",
	"GET /v1/limits":                             "for a tenant's programs; varve tenants limits is the operator's",
	"POST /v1/tokens":                            "programs count",
	"GET /v1/admin/usage":                        "reports are files: curl writes them",
	"GET /v1/admin/usage/state":                  "the console shows it; varve doctor has it of its process",
	"GET /v1/key":                                "the console says for whom it acts",
	"GET /v1/admin/key":                          "as GET /v1/key",
	"POST /v1/admin/jobs/retry":                  "River UI asks for it in the console; varve failures retry is for a session",
	"POST /v1/admin/jobs/cancel":                 "as retry",
}

// families are the routes that functions of the client make.
var families = map[string][]string{
	"client.Keys(": {"GET keys", "POST keys", "POST keys/{}/rotate", "DELETE keys/{}"},
	"client.KeysOf(": {"GET admin/tenants/{}/keys", "POST admin/tenants/{}/keys", "POST admin/tenants/{}/keys/{}/rotate",
		"DELETE admin/tenants/{}/keys/{}"},
	"client.TenantPolicy(": {"GET admin/tenants/{}/policy", "PUT admin/tenants/{}/policy", "PATCH admin/tenants/{}/policy"},
	"client.Policy(method": {"PUT policy", "PATCH policy", "DELETE policy", "PUT sessions/{}/policy", "PATCH sessions/{}/policy", "DELETE sessions/{}/policy"},
	`client.Policy("GET"`:  {"GET policy", "GET sessions/{}/policy"},
}

var (
	declared = regexp.MustCompile(`(\w+) +(?:client\.)?(ListRoute|Route|Effect)\S* += "([^"]+)"`)
	listed   = regexp.MustCompile(`ListRoute\[\S+\("([^"]+)"\)`)
	literal  = regexp.MustCompile(`"((?:GET|POST|PUT|PATCH|DELETE) [a-z][^" ]*)"`)
	inBraces = regexp.MustCompile(`\{[^}]*\}`)
)

// commanded returns the routes that commands call, without the names in braces.
func commanded(t *testing.T) map[string]bool {
	t.Helper()
	read := func(patterns ...string) (text string) {
		for _, pattern := range patterns {
			files, _ := filepath.Glob(pattern) // a pattern without an error
			for _, file := range files {
				source, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasSuffix(file, "_test.go") {
					text += string(source)
				}
			}
		}
		return text
	}
	found := map[string]bool{}
	add := func(route string) { found[inBraces.ReplaceAllString(route, "{}")] = true }
	ofClient := []string{"../../client/routes.go", "../../client/upload.go"}
	commands := read(append(ofClient, "*.go", "../../internal/*/command*.go")...)
	operations := read("../../client/operations.go")
	for _, of := range declared.FindAllStringSubmatch(commands+operations, -1) {
		used := regexp.MustCompile(`client\.` + of[1] + `\b|\b` + of[1] + `\.`) // those of features are, or lint tells
		if strings.Contains(operations, of[0]) && !used.MatchString(commands) {
			continue
		}
		if of[2] == "ListRoute" {
			of[3] = "GET " + of[3]
		}
		add(of[3])
	}
	for _, of := range listed.FindAllStringSubmatch(commands, -1) {
		add("GET " + of[1])
	}
	for _, of := range literal.FindAllStringSubmatch(read(ofClient...), -1) {
		add(of[1])
	}
	for call, routes := range families {
		for _, route := range routes {
			if strings.Contains(commands, call) {
				add(route)
			}
		}
	}
	return found
}

// TestEveryRouteHasItsCommandOrAReason fails for a route that has neither, and for a reason that no route needs.
func TestEveryRouteHasItsCommandOrAReason(t *testing.T) {
	t.Parallel()
	found, used := commanded(t), map[string]bool{}
	for _, op := range apitest.Described().Operations {
		route, tag := op.Method+" "+op.Path, op.Value["tags"].([]any)[0].(string)
		reason := ""
		for _, key := range []string{tag, route} {
			if uncommanded[key] != "" {
				reason = key
			}
		}
		_, described := op.Value["x-uncommanded"]
		has := found[inBraces.ReplaceAllString(op.Method+" "+strings.TrimPrefix(op.Path, "/v1/"), "{}")]
		switch {
		case has && (reason == route || described):
			t.Errorf("%s has a command, and a reason not to have one", route)
		case !has && reason == "" && !described:
			t.Errorf("%s has no command: x-uncommanded in its description says why", route)
		case !has && !described:
			used[reason] = true
		}
	}
	for reason := range uncommanded {
		if !used[reason] {
			t.Errorf("%s: there is no such route without a command", reason)
		}
	}
}
