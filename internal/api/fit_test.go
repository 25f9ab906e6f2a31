package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// fitted is what the tests of the window decode of a view.
type fitted struct {
	view
	Window int64 `json:"window_tokens"`
	Over   bool  `json:"over_window"`
}

func TestEveryViewSaysItsWindowAndWhetherItIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"window_tokens":1000}`)
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user("hi"), user(strings.Repeat("many words ", 600))))
	w.commit("s", 0, 1, user("compacted"), `[{"offset":0,"first_seq":1,"messages":1,"tokens":8}]`)
	queries := map[string]bool{ // whether the view is over the window
		"/context": true, "/context?view=full": true, "/context?view=full&format=gemini": true, "/context?format=anthropic": true,
		"/context?pending=drop": true, "/checkpoints/1/context": false,
	}
	tags := map[string]string{}
	for query, over := range queries {
		got := w.must(http.StatusOK, "GET", path+query, "")
		v := decoded[fitted](got)
		if v.Window != 1000 || v.Over != over || over != (v.Tokens > 800) {
			t.Errorf("%s: %d tokens, window %d, over %t", query, v.Tokens, v.Window, v.Over)
		}
		tags[query] = got.Header().Get("Etag")
	}
	w.must(http.StatusOK, "PATCH", path, `{"window_tokens":100000}`)
	for query := range queries {
		v := decoded[fitted](w.must(http.StatusOK, "GET", path+query, "", "If-None-Match", tags[query]))
		if v.Window != 100000 || v.Over {
			t.Errorf("%s with a larger window: %+v", query, v)
		}
	}
	w.must(http.StatusOK, "PATCH", path, `{"overhead_tokens":99900}`)
	if v := decoded[fitted](w.must(http.StatusOK, "GET", path+"/context", "")); !v.Over {
		t.Errorf("the overhead takes no room: %+v", v)
	}
}
