package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestUnknownRoutesAreProblemsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]int{
		"/v1":                             http.StatusNotFound,
		"/v1/sessions/":                   http.StatusNotFound,
		"/v1/sessions/s/unknown":          http.StatusNotFound,
		"/v1/sessions/s/results/x/y":      http.StatusNotFound,
		"/v1/sessions/s/runs/not-a-uuid":  http.StatusNotFound,
		"/v1/sessions/s/results/nonsense": http.StatusNotFound,
	} {
		got := w.ask("GET", path, "")
		if p := decoded[problem](got); got.Code != want {
			t.Errorf("GET %s: %d %s", path, got.Code, got.Body)
		} else {
			checkProblem(t, got, p)
		}
	}
	for path, want := range map[string]string{
		"/v1/session":             "there is no such route: did you mean /v1/sessions?; GET /docs/api.html shows all",
		"/v1/sessions/s/mesages":  "there is no such route: did you mean /v1/sessions/{id}/messages?; GET /docs/api.html shows all",
		"/v2/zzzzzzz/s/elsewhere": "there is no such route; GET /docs/api.html shows all",
		strings.Repeat("/v1", 99): "there is no such route; GET /docs/api.html shows all",
	} {
		if p := decoded[problem](w.ask("GET", path, "")); p.Detail != want {
			t.Errorf("GET %.50s: %q, want %q", path, p.Detail, want)
		}
	}
	home := httptest.NewRecorder() // which leads to pages for people
	if w.server.ServeHTTP(home, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)); home.Header().Get("Location") != "/docs" {
		t.Errorf("GET / leads to %v", home.Header())
	}
	got := w.ask("PATCH", "/v1/sessions/s/messages", "{}")
	p := decoded[problem](got)
	if checkProblem(t, got, p); !strings.HasPrefix(p.Detail, "this route has no PATCH: it has ") || !strings.Contains(p.Detail, "POST") {
		t.Error(p.Detail)
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT"} {
		if !strings.Contains(got.Header().Get("Allow"), method) {
			t.Errorf("Allow: %q has no %s", got.Header().Get("Allow"), method)
		}
	}
}

func TestTheFirstProblemDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, test := range []struct{ method, path, body, code, detail string }{
		{"PATCH", "/v1/sessions/s", `{"model":1,"zz":1}`, "invalid_request", "/model: must be a string"},
		{"PATCH", "/v1/sessions/s", `{"zz":1,"model":1}`, "invalid_request", `/zz: "zz" is not known here`},
		{"POST", "/v1/sessions/s/messages", `{"format":"xx","zz":1}`, "invalid_request", "/format: format must be openai-chat or "},
		{"PATCH", "/v1/sessions/s", `{"policy":{"cap":{"enabled":1},"zz":1}}`, "invalid_request", "/policy/cap/enabled: must be true or false, not 1"},
		{"PATCH", "/v1/sessions/s", `{"policy":{"zz":1,"cap":{"enabled":1}}}`, "invalid_request", "/policy/zz: "},
		{"PATCH", "/v1/sessions/s", `{"policy":{"target":0.1,"target":0.2}}`, "invalid_request", `/policy/target: the member "target" appears twice`},
		{"PATCH", "/v1/sessions/s", `{"policy":{"trigger":0.8,"target":0.9}}`, "invalid_request", "/policy/target: 0.9 must be below /policy/trigger (0.8)"},
		{"PATCH", "/v1/sessions/s", `{"policy":{"protect":{"tools":["` + strings.Repeat("x", 8<<20) + `"]}}}`, "invalid_request", "/policy: the policy has 8388"},
		{"PATCH", "/v1/sessions/s", `[]`, "invalid_request", "must be an object"},
		{"POST", "/v1/sessions/s/messages", "", "invalid_json", "the body is empty"},
		{"POST", "/v1/sessions/s/messages", `{"messages":[{"role":"user","content":` + deep + `}]}`, "json_too_complex", "nested deeper than 64 levels"},
		{"POST", "/v1/tokens", `{"x":1}`, "unknown_field", `/x: "x" is not known here: there are format, `},
		{"POST", "/v1/tokens", `{"policy":{}}`, "unknown_field", `/policy: "policy" is not known here`},
		{"GET", "/v1/sessions?limit=0", "", "invalid_request", "limit: must be a whole number from 1 to 100, not "},
		{"GET", "/v1/sessions?limits=1", "", "unknown_field", "limits: the parameter is not known here: did you mean "},
		{"GET", "/v1/sessions/s/context?format=", "", "invalid_request", "format: the format is empty"},
		{"GET", "/v1/sessions/s/context?view=all", "", "invalid_request", "view: must be compacted or full"},
		{"GET", "/v1/sessions/s/runs/0190a5a0-0000-7000-8000-000000000000", "", "not_found", "there is no such session, or no such run of it"},
		{"GET", "/v1/sessions/s/runs/x", "", "not_found", "there is no such session, or no such run of it"},
		{"GET", "/v1/sessions/s/results/r1.0-abcd", "", "not_found", "result r1.0-abcd"},
		{"GET", "/v1/sessions/s/results/x", "", "not_found", `result "x"`},
	} {
		got := w.ask(test.method, test.path, test.body)
		p := decoded[problem](got)
		checkProblem(t, got, p)
		if p.Code != test.code || !strings.HasPrefix(p.Detail, test.detail) || strings.Contains(p.Detail, "PUT") {
			t.Errorf("%s %s %.60s: %s, %q; want %s, %q", test.method, test.path, test.body, p.Code, p.Detail, test.code, test.detail)
		}
	}
}
