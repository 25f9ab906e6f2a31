package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
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

func TestAnUnknownModelHasTheDefaultWindowAndAWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"model":"gpt-4"}`)
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{"PUT", "/v1/sessions/t", http.StatusCreated}, {"POST", "/v1/sessions", http.StatusCreated}, {"PATCH", "/v1/sessions/s", http.StatusOK},
		{"GET", "/v1/sessions/s", http.StatusOK},
	} {
		body := ""
		if test.method != "GET" {
			body = `{"model":"gpt-4oo"}`
			p := decoded[problem](w.must(http.StatusUnprocessableEntity, test.method, test.path+"?strict=true", body))
			if p.Code != "unknown_model" || len(p.Errors) != 1 || p.Errors[0].Pointer != "/model" {
				t.Errorf("strict %s %s: %+v", test.method, test.path, p)
			}
		}
		got := w.must(test.status, test.method, test.path, body)
		answer := decoded[protocol.Session](got)
		if decoded[window](got) != (window{128_000, "default"}) || len(answer.Warnings) != 1 || answer.Warnings[0].Pointer != "/model" {
			t.Errorf("%s %s: %s", test.method, test.path, got.Body)
			continue
		}
		for _, want := range []string{`"gpt-4oo"`, "did you mean gpt-4o or ", "128000", "window_tokens", "VARVE_MODELS", "/v1/models"} {
			if !strings.Contains(answer.Warnings[0].Detail, want) {
				t.Errorf("%s does not say %s", answer.Warnings[0].Detail, want)
			}
		}
	}
	for _, body := range []string{`{"model":"gpt-4oo","window_tokens":9000}`, `{"model":"gpt-4o"}`, `{"model":""}`} {
		if got := decoded[protocol.Session](w.must(http.StatusOK, "PATCH", "/v1/sessions/s?strict=true", body)); got.Warnings != nil {
			t.Errorf("%s: %+v", body, got.Warnings)
		}
	}
	messages := `"format":"openai-chat","messages":[{"role":"user","content":"hi"}]`
	compacted := decoded[struct {
		Warnings []session.Warning `json:"warnings"`
	}](w.must(http.StatusOK, "POST", "/v1/compact", `{"model":"gpt-4oo",`+messages+`}`))
	if len(compacted.Warnings) != 1 {
		t.Errorf("compacted alone: %+v", compacted)
	}
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/compact?strict=true", `{"model":"gpt-4oo",`+messages+`}`)
	several := decoded[problem](w.must(http.StatusUnprocessableEntity, "PATCH", "/v1/sessions/s?strict=true", `{"model":"nobody's","overhead_tokens":-1,"metadata":[]}`))
	if several.Code != "invalid_request" || len(several.Errors) != 3 {
		t.Errorf("%+v", several)
	}
	tooMuch := decoded[problem](w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/t", `{"model":"gpt-4","overhead_tokens":8192}`))
	if tooMuch.Errors[0].Pointer != "/overhead_tokens" {
		t.Errorf("%+v", tooMuch)
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
	if len(all.Data) < len(models.Embedded().Models()) {
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
	register(t, "ours-large", "vllm")
	if got := decoded[window](w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"model":"us/Ours-Large"}`)); got != (window{100_000, "model"}) {
		t.Errorf("%+v", got)
	}
}

// TestWhatIsTheSameForEverybodyIsWrittenOnce: many who ask for it at once took all processors.
func TestWhatIsTheSameForEverybodyIsWrittenOnce(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/v1/models", "/v1/policies/profiles", "/v1/policies/schema"} {
		w.must(http.StatusOK, "GET", path, "")
		allocated := testing.AllocsPerRun(5, func() {
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, http.NoBody)
			r.Header.Set("Authorization", "Bearer "+w.key)
			w.server.ServeHTTP(httptest.NewRecorder(), r)
		})
		if allocated > 500 {
			t.Errorf("%s allocates %.0f times", path, allocated)
		}
	}
}
