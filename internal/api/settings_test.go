package api_test

import (
	"net/http"
	"testing"
)

func TestWhatContradictsItselfIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":20000}`)
	for _, test := range []struct{ method, path, body string }{
		{"PUT", "/v1/sessions/.", ""},
		{"PUT", "/v1/sessions/%2E%2E", ""},
		{"POST", "/v1/sessions", `{"id":".."}`},
		{"PATCH", "/v1/sessions/s", `{"overhead_tokens":20000}`}, // of a window that is stored
		{"GET", "/v1/sessions/s/results/r1.0-abcd?raw=true&offset=2", ""},
		{"GET", "/v1/sessions/s/results/r1.0-abcd?raw=true&limit=2", ""},
	} {
		got := w.must(http.StatusUnprocessableEntity, test.method, test.path, test.body)
		checkProblem(t, got, decoded[problem](got))
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"overhead_tokens":19999}`)
}
