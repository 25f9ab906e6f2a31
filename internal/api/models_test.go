package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/models"
)

// window is where a session's window comes from, and how large it is.
type window struct {
	Tokens int    `json:"window_tokens"`
	Source string `json:"window_source"`
}

func TestTheWindowOfASessionIsThatOfItsModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, test := range []struct {
		body string
		want window
	}{
		{`{}`, window{128_000, "default"}},
		{`{"model":""}`, window{128_000, "default"}},
		{`{"model":"gpt-5"}`, window{272_000, "model"}},
		{`{"model":"anthropic/claude-sonnet-4-5-20250929"}`, window{200_000, "model"}},
		{`{"model":"gpt-5","window_tokens":5000}`, window{5_000, "request"}},
		{`{"model":"my-own","window_tokens":5000}`, window{5_000, "request"}},
	} {
		path := fmt.Sprint("/v1/sessions/s", i)
		if got := decoded[window](w.must(http.StatusCreated, "PUT", path, test.body)); got != test.want {
			t.Errorf("PUT %s: %+v, want %+v", test.body, got, test.want)
		}
		if got := decoded[window](w.must(http.StatusOK, "GET", path, "")); got != test.want {
			t.Errorf("GET after %s: %+v, want %+v", test.body, got, test.want)
		}
		if got := decoded[window](w.must(http.StatusCreated, "POST", "/v1/sessions", test.body)); got != test.want {
			t.Errorf("POST %s: %+v, want %+v", test.body, got, test.want)
		}
	}
	for _, test := range []struct {
		body string
		want window
	}{
		{`{"overhead_tokens":7}`, window{128_000, "default"}},
		{`{"model":"gpt-4.1"}`, window{1_047_576, "model"}},
		{`{"window_tokens":9000}`, window{9_000, "request"}},
		{`{"metadata":{}}`, window{9_000, "request"}},
		{`{"model":"o3"}`, window{200_000, "model"}},
		{`{"model":""}`, window{200_000, "model"}},
		{`{"model":"my-own","window_tokens":7000}`, window{7_000, "request"}},
	} {
		if got := decoded[window](w.must(http.StatusOK, "PATCH", "/v1/sessions/s0", test.body)); got != test.want {
			t.Errorf("PATCH %s: %+v, want %+v", test.body, got, test.want)
		}
	}
}

func TestAnUnknownModelIsRefusedWhereItsWindowIsNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for _, test := range []struct{ method, path string }{{"PUT", "/v1/sessions/t"}, {"POST", "/v1/sessions"}, {"PATCH", "/v1/sessions/s"}} {
		got := w.must(http.StatusUnprocessableEntity, test.method, test.path, `{"model":"gpt-4oo"}`)
		p := decoded[problem](got)
		checkProblem(t, got, p)
		if p.Code != "unknown_model" || len(p.Errors) != 1 || p.Errors[0].Pointer != "/model" {
			t.Errorf("%s: %s", test.method, got.Body)
		}
		for _, want := range []string{`"gpt-4oo"`, "did you mean gpt-4o or ", "window_tokens", "VARVE_MODELS", "/v1/models"} {
			if !strings.Contains(p.Detail, want) {
				t.Errorf("%s does not say %s", p.Detail, want)
			}
		}
	}
	several := decoded[problem](w.must(http.StatusUnprocessableEntity, "PATCH", "/v1/sessions/s", `{"model":"nobody's","overhead_tokens":-1,"metadata":[]}`))
	if several.Code != "invalid_request" || len(several.Errors) != 3 {
		t.Errorf("%+v", several)
	}
	tooMuch := decoded[problem](w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/t", `{"model":"gpt-4","overhead_tokens":8192}`))
	if tooMuch.Errors[0].Pointer != "/overhead_tokens" {
		t.Errorf("%+v", tooMuch)
	}
	if got := decoded[window](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")); got != (window{128_000, "default"}) {
		t.Errorf("after what was refused: %+v", got)
	}
}

// modelList is a list of models.
type modelList struct {
	Data []struct {
		models.Model
		Window int `json:"window_tokens"`
	}
}

func TestModelsAreListedAndLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := decoded[modelList](w.must(http.StatusOK, "GET", "/v1/models", ""))
	if len(all.Data) != len(models.Embedded().Models()) {
		t.Errorf("%d models", len(all.Data))
	}
	for _, m := range all.Data {
		if m.Window != m.Model.Window() || len(m.Sources) == 0 || m.Sources[0].Date == "" {
			t.Errorf("%+v", m)
		}
	}
	one := decoded[modelList](w.must(http.StatusOK, "GET", "/v1/models?model=openai/gpt-5-2025-08-07", ""))
	if len(one.Data) != 1 || one.Data[0].ID != "gpt-5" || one.Data[0].Window != 272_000 || one.Data[0].Cache.LongSeconds != 86_400 {
		t.Errorf("%+v", one)
	}
	for _, path := range []string{"/v1/models?model=gpt-4oo", "/v1/models?model="} {
		got := w.must(http.StatusUnprocessableEntity, "GET", path, "")
		checkProblem(t, got, decoded[problem](got))
	}
	w.must(http.StatusBadRequest, "GET", "/v1/models?name=gpt-4o", "")
}

func TestAnOperatorsModelsComeFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	known, err := models.Embedded().Extend([]byte(`{"models":[{"id":"gpt-4o","provider":"us","context_tokens":6000,"sources":[{"of":"window","name":"us","date":"2026-01-31"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	w.server = api.New(api.Config{Store: w.store, Models: known})
	if got := decoded[window](w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"model":"gpt-4o"}`)); got != (window{6_000, "model"}) {
		t.Errorf("%+v", got)
	}
}
