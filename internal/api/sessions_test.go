package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestTheSettingsOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := decoded[map[string]any](w.must(http.StatusCreated, "POST", "/v1/sessions?include=policy",
		`{"id":"s","format":"anthropic","model":"m","window_tokens":50000,"overhead_tokens":7,"metadata":{"b":"2","a":"1"},"policy":{"trigger":0.7,"target":0.4}}`))
	delete(made, "created_at")
	policy := made["policy"].(map[string]any)
	if policy["trigger"] != 0.7 || policy["target"] != 0.4 || len(policy) < 3 {
		t.Errorf("policy %v", policy)
	}
	delete(made, "policy")
	want := map[string]any{
		"id": "s", "format": "anthropic", "model": "m", "window_tokens": 50000.0, "window_source": "request", "overhead_tokens": 7.0, "metadata": map[string]any{"a": "1", "b": "2"},
		"last_seq": 0.0, "context_tokens": 0.0, "total_tokens": 0.0, "checkpoint": 0.0, "last_append_at": nil,
		"policy_version": map[string]any{"tenant": 1.0, "session": 1.0}, "calibration": 1.0, "unseen_tokens": 0.0, "calibrated_tokens": 7.0, "last_usage": nil,
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	changed := decoded[map[string]any](w.must(http.StatusOK, "PATCH", "/v1/sessions/s?include=policy", `{"metadata":{},"policy":null,"overhead_tokens":0}`))
	if changed["policy"].(map[string]any)["trigger"] == 0.7 || changed["model"] != "m" || len(changed["metadata"].(map[string]any)) != 0 || changed["overhead_tokens"] != 0.0 {
		t.Errorf("changed %v", changed)
	}
	empty := decoded[map[string]any](w.must(http.StatusCreated, "POST", "/v1/sessions", ""))
	if empty["id"] == "" || empty["format"] != nil || empty["window_tokens"] != float64(session.DefaultWindowTokens) {
		t.Errorf("a session of defaults: %v", empty)
	}
	got := w.must(http.StatusOK, "PUT", "/v1/sessions/s", `{"model":"gpt-4o"}`)
	if !strings.Contains(got.Body.String(), `"model":"m"`) {
		t.Errorf("PUT of a session that is there changed it: %s", got.Body)
	}
	w.must(http.StatusOK, "PUT", "/v1/sessions/s", `{"id":"s"}`)
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/s", `{"id":"t"}`)
}

func TestWrongSettingsAreAllToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	long := strings.Repeat("x", 513)
	for _, test := range []struct {
		body, code string
		pointers   []string
	}{
		{`{"window_tokens":999,"overhead_tokens":-1,"model":null}`, "invalid_request", []string{"/window_tokens", "/overhead_tokens", "/model"}},
		{`{"window_tokens":10000001}`, "invalid_request", []string{"/window_tokens"}},
		{`{"window_tokens":1e5}`, "invalid_request", []string{"/window_tokens"}},
		{`{"windowTokens":1,"model":1}`, "invalid_request", []string{"/windowTokens", "/model"}},
		{`{"a/b~c":1}`, "unknown_field", []string{"/a~1b~0c"}},
		{`{"id":"s"}`, "unknown_field", []string{"/id"}},
		{`{"model":"a","model":"b"}`, "invalid_json", []string{"/model"}},
		{`{"model":"a\u0000"}`, "invalid_request", []string{"/model"}},
		{`{"metadata":[]}`, "invalid_request", []string{"/metadata"}},
		{`{"metadata":{"a":1,"b":{},"c":null}}`, "invalid_request", []string{"/metadata/a", "/metadata/b", "/metadata/c"}},
		{`{"metadata":{"a":"` + long + `"}}`, "invalid_request", []string{"/metadata/a"}},
		{`{"metadata":{"` + long[:65] + `":"a","":"b"}}`, "invalid_request", []string{"/metadata/" + long[:65], "/metadata/"}},
		{`{"metadata":{"a":"\u0000","\u0000":"a","\ud800":"a"}}`, "invalid_request", []string{"/metadata/a", "/metadata/\x00", "/metadata/\ufffd"}},
		{`{"metadata":{"a":"1","a":"2"}}`, "invalid_json", []string{"/metadata/a"}},
		{`{"metadata":` + object(17) + `}`, "invalid_request", []string{"/metadata"}},
		{`{"policy":[]}`, "invalid_request", []string{"/policy"}},
		{`{"window_tokens":2000,"overhead_tokens":2000}`, "invalid_request", []string{"/overhead_tokens"}},
		{`{"policy":{"trigger":2}}`, "invalid_request", []string{"/policy/trigger"}},
		{`{"policy":{"triger":0.5}}`, "invalid_request", []string{"/policy/triger"}},
		{`{"policy":{"trigger":2,"hard":-1,"triger":0.5,"cache":{"ttl_seconds":"x"},"protect":{"last_units":-1}}}`, "invalid_request",
			[]string{"/policy/trigger", "/policy/hard", "/policy/triger", "/policy/cache/ttl_seconds", "/policy/protect/last_units"}},
		{`"text"`, "invalid_request", []string{""}},
		{`{"model":"a"}x`, "invalid_json", []string{""}},
	} {
		got := w.ask("PATCH", "/v1/sessions/s", test.body)
		p := decoded[problem](got)
		checkProblem(t, got, p)
		var pointers []string
		for _, e := range p.Errors {
			pointers = append(pointers, e.Pointer)
		}
		if p.Code != test.code || !covers(pointers, test.pointers) {
			t.Errorf("%.80s: %s %q, want %s %q\n%s", test.body, p.Code, pointers, test.code, test.pointers, p.Detail)
		}
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"metadata":`+object(16)+`}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"metadata":{"`+strings.Repeat("é", 64)+`":"`+strings.Repeat("😀", 512)+`"}}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"window_tokens":1000}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"window_tokens":10000000}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"overhead_tokens":1999,"window_tokens":2000}`)
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/sessions", `{"overhead_tokens":128000}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions", `{"overhead_tokens":127999}`)
	w.must(http.StatusBadRequest, "POST", "/v1/sessions/s/compact", `{"wait":5}`)
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/sessions/s/compact?wait=61", ``)
}

func object(members int) string {
	m := map[string]string{}
	for i := range members {
		m[fmt.Sprint(i)] = "x"
	}
	text, _ := json.Marshal(m)
	return string(text)
}

// covers reports whether every pointer is wanted, and every wanted one is there.
func covers(got, want []string) bool {
	for _, list := range [][2][]string{{got, want}, {want, got}} {
		for _, pointer := range list[0] {
			found := false
			for _, other := range list[1] {
				found = found || other == pointer || strings.HasPrefix(pointer, "/policy/") && strings.HasPrefix(other, "/policy/")
			}
			if !found {
				return false
			}
		}
	}
	return true
}

func TestWaitingForACompaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":20000}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", 1, 12, 6000)...))
	began := time.Now()
	waited := w.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact?wait=1", "")
	if spent := time.Since(began); spent < time.Second || spent > 5*time.Minute {
		t.Errorf("it waited %s for a worker that does not live", spent)
	}
	if waited.Header().Get("Retry-After") == "" || waited.Header().Get("Location") == "" {
		t.Errorf("headers %v", waited.Header())
	}
	run := decoded[session.Run](waited)
	w.work()
	ended := decoded[session.Run](w.must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=60", ""))
	if !ended.State.Ended() {
		t.Errorf("run %+v", ended)
	}
	read := w.must(http.StatusOK, "GET", waited.Header().Get("Location"), "")
	if got := decoded[session.Run](read); got.ID != run.ID || got.State != session.RunDone || got.TokensAfter == nil {
		t.Errorf("run %s", read.Body)
	}
	results := decoded[listPage](w.must(http.StatusOK, "GET", "/v1/sessions/s/results", ""))
	for _, r := range results.Data {
		w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/sessions/s/results/%s", r["ref"]), "")
	}
	if len(results.Data) == 0 {
		t.Error("the compaction persisted nothing")
	}
}
