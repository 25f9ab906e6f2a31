package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// policyBody is a policy as the routes about policies answer it.
type policyBody struct {
	Version   session.PolicyVersion `json:"policy_version"`
	Patch     json.RawMessage       `json:"patch"`
	Effective policy.Policy         `json:"effective"`
	Sources   policy.Sources        `json:"sources"`
}

func TestABadPolicyIsOneAnswerThatListsEveryMistake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	const bad = `{"taget":0.4,"trigger":7,"protect":{"last_units":"four"},"dedupe":{"keep_last":0},"budget":{"min_tokens":70000}}`
	want := []string{
		"/taget unknown_field", "/protect/last_units wrong_type", "/trigger out_of_range", "/dedupe/keep_last out_of_range",
		"/budget/min_tokens contradiction",
	}
	for _, r := range []struct{ method, path, body, prefix string }{
		{"PUT", "/v1/policy", bad, ""},
		{"PATCH", "/v1/policy", bad, ""},
		{"POST", "/v1/policy/check", bad, ""},
		{"POST", "/v1/policy/check?as=session", bad, ""},
		{"PATCH", "/v1/sessions/s", `{"policy":` + bad + `}`, "/policy"},
		{"PUT", "/v1/sessions/new", `{"policy":` + bad + `}`, "/policy"},
		{"PUT", "/v1/sessions/s", `{"policy":` + bad + `}`, "/policy"}, // which is there: nothing of the body would be used
		{"POST", "/v1/sessions", `{"policy":` + bad + `}`, "/policy"},
	} {
		got := w.must(http.StatusUnprocessableEntity, r.method, r.path, r.body)
		p := decoded[problem](got)
		checkProblem(t, got, p)
		var found []string
		for _, e := range p.Errors {
			found = append(found, strings.TrimPrefix(e.Pointer, r.prefix)+" "+e.Code)
		}
		if diff := cmp.Diff(want, found); diff != "" || p.Code != "invalid_request" {
			t.Errorf("%s %s: %s (-want +got):\n%s", r.method, r.path, p.Code, diff)
		}
	}
}

func TestUnknownFieldsOfAPolicyAloneAre422Too(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/policy", `{"taget":0.4}`)
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/s", `{"zz":1,"policy":{"taget":0.4}}`)
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/policy", `[]`)
	w.must(http.StatusBadRequest, "PUT", "/v1/policy", `{"target":}`)
	w.must(http.StatusBadRequest, "PUT", "/v1/policy", ``)
}

func TestATenantsDefaultHoldsForItsSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/plain", "")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/own", `{"policy":{"target":0.45}}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/anew", `{"policy":{"profile":"cortex"}}`)
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"trigger":0.7,"target":0.3}`)
	for id, want := range map[string]struct {
		trigger, target float64
		version         session.PolicyVersion
		sources         policy.Sources
	}{
		"plain": {0.7, 0.3, session.PolicyVersion{Tenant: 2}, policy.Sources{"/trigger": "tenant", "/target": "tenant", "/hard": "profile:default"}},
		"own":   {0.7, 0.45, session.PolicyVersion{Tenant: 2, Session: 1}, policy.Sources{"/trigger": "tenant", "/target": "session"}},
		"anew":  {0.7, 0.25, session.PolicyVersion{Tenant: 2, Session: 1}, policy.Sources{"/trigger": "profile:cortex", "/profile": "session"}},
	} {
		got := decoded[policyBody](w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/policy", ""))
		if got.Effective.Trigger != want.trigger || got.Effective.Target != want.target || got.Version != want.version {
			t.Errorf("%s: %+v, trigger %v, target %v", id, got.Version, got.Effective.Trigger, got.Effective.Target)
		}
		for pointer, source := range want.sources {
			if got.Sources[pointer] != source {
				t.Errorf("%s: %s comes from %q, want %q", id, pointer, got.Sources[pointer], source)
			}
		}
		answer := decoded[struct {
			Policy  policy.Policy
			Version session.PolicyVersion `json:"policy_version"`
		}](w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"?include=policy", ""))
		if answer.Policy.Target != want.target || answer.Version != want.version {
			t.Errorf("%s: the session says target %v of %+v", id, answer.Policy.Target, answer.Version)
		}
	}
	if got := w.must(http.StatusOK, "GET", "/v1/sessions/plain/policy", ""); !strings.Contains(got.Body.String(), `"patch":null`) {
		t.Errorf("a session without a policy of its own: %s", got.Body)
	}
}

func TestAPatchMergesAndAPutReplaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":0.3,"hard":0.9}`)
	merged := decoded[policyBody](w.must(http.StatusOK, "PATCH", "/v1/policy", `{"target":null,"trigger":0.75}`))
	if p := merged.Effective; p.Target != policy.Default().Target || p.Hard != 0.9 || p.Trigger != 0.75 || merged.Version.Tenant != 3 {
		t.Errorf("after a PATCH: %+v", merged)
	}
	replaced := decoded[policyBody](w.must(http.StatusOK, "PUT", "/v1/policy", `{"profile":"codelia"}`))
	if p := replaced.Effective; p.Hard != 0.95 || p.Profile != "codelia" {
		t.Errorf("after a PUT: %+v", p)
	}
	if p := decoded[policyBody](w.must(http.StatusOK, "DELETE", "/v1/policy", "")).Effective; p.Profile != "default" {
		t.Errorf("after a DELETE: %+v", p)
	}

	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"policy":{"target":0.3,"hard":0.9}}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"policy":{"target":null,"trigger":0.75}}`)
	own := decoded[policyBody](w.must(http.StatusOK, "GET", "/v1/sessions/s/policy", ""))
	if p := own.Effective; p.Target != policy.Default().Target || p.Hard != 0.9 || p.Trigger != 0.75 || own.Version.Session != 2 {
		t.Errorf("after a PATCH of the session: %+v", own)
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"policy":null}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"policy":{"hard":0.92}}`)
	own = decoded[policyBody](w.must(http.StatusOK, "GET", "/v1/sessions/s/policy", ""))
	if own.Effective.Trigger != policy.Default().Trigger || own.Version != (session.PolicyVersion{Tenant: 5, Session: 4}) {
		t.Errorf("after null and another: %+v", own)
	}
}

func TestASessionsOwnPolicyIsReplacedMergedAndTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusNotFound, "PUT", "/v1/sessions/s/policy", `{"target":0.3}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"policy":{"hard":0.9}}`)
	for _, step := range []struct {
		method, body string
		target, hard float64
		patch        string
	}{
		{"PUT", `{"target":0.3}`, 0.3, 0.95, `{"target":0.3}`},
		{"PATCH", `{"hard":0.92}`, 0.3, 0.92, `{"hard":0.92,"target":0.3}`},
		{"DELETE", ``, policy.Default().Target, policy.Default().Hard, `null`},
	} {
		w.must(http.StatusOK, step.method, "/v1/sessions/s/policy", step.body)
		got := decoded[policyBody](w.must(http.StatusOK, "GET", "/v1/sessions/s/policy", ""))
		if got.Effective.Target != step.target || got.Effective.Hard != step.hard || string(got.Patch) != step.patch {
			t.Errorf("after %s %s: %s", step.method, step.body, got.Patch)
		}
	}
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/s/policy", `{"target":7}`)
}

func TestVersionsOfPoliciesAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"policy":{"target":0.4}}`)
	for _, target := range []string{"0.31", "0.32", "0.33"} {
		w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":`+target+`}`)
	}
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":0.33}`) // nothing new
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"policy":null}`)
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"policy":null}`)
	for path, want := range map[string][]string{
		"/v1/policy/versions":            {`4 {"target":0.33}`, `3 {"target":0.32}`, `2 {"target":0.31}`, `1 {}`},
		"/v1/sessions/s/policy/versions": {`2 null`, `1 {"target":0.4}`},
	} {
		var got []string
		for cursor := ""; ; {
			page := decoded[struct {
				Data    []session.PolicyRecord
				HasMore bool   `json:"has_more"`
				Next    string `json:"next_cursor"`
			}](w.must(http.StatusOK, "GET", path+"?limit=1"+cursor, ""))
			for _, r := range page.Data {
				got = append(got, fmt.Sprintf("%d %s", r.Version, r.Patch))
				if string(r.Patch) != "{}" && r.ChangedBy == nil || r.CreatedAt.IsZero() {
					t.Errorf("%s: nobody made version %d", path, r.Version)
				}
			}
			if !page.HasMore {
				break
			}
			cursor = "&cursor=" + page.Next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestAVersionThatWasChangedMeanwhileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := w.must(http.StatusOK, "GET", "/v1/policy", "").Header().Get("Etag")
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":0.3}`, "If-Match", seen)
	got := w.must(http.StatusPreconditionFailed, "PATCH", "/v1/policy", `{"target":0.4}`, "If-Match", seen)
	if p := decoded[problem](got); p.Code != "stale_policy_version" {
		t.Errorf("%s", got.Body)
	}
	w.must(http.StatusUnprocessableEntity, "DELETE", "/v1/policy", "", "If-Match", `"x"`)
	w.must(http.StatusOK, "DELETE", "/v1/policy", "", "If-Match", "*")
}

func TestAChangeOfADefaultHappensOnceForEachKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.must(http.StatusOK, "PATCH", "/v1/policy", `{"target":0.3}`, "Idempotency-Key", "k")
	w.must(http.StatusOK, "PATCH", "/v1/policy", `{"target":0.4}`)
	again := w.must(http.StatusOK, "PATCH", "/v1/policy", `{"target":0.3}`, "Idempotency-Key", "k")
	if again.Header().Get("Idempotent-Replayed") != "true" || again.Body.String() != first.Body.String() {
		t.Errorf("first %s\nagain %s", first.Body, again.Body)
	}
	w.must(http.StatusUnprocessableEntity, "PATCH", "/v1/policy", `{"target":0.2}`, "Idempotency-Key", "k")
}

func TestADefaultThatDoesNotFitUnderASessionsOwnPolicyIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/high", `{"policy":{"target":0.7}}`)
	got := w.must(http.StatusUnprocessableEntity, "PUT", "/v1/policy", `{"trigger":0.6}`)
	if p := decoded[problem](got); !strings.Contains(p.Detail, `session "high"`) || !strings.Contains(p.Detail, "0.7 must be below") {
		t.Errorf("%s", got.Body)
	}
	if now := decoded[policyBody](w.must(http.StatusOK, "GET", "/v1/policy", "")); now.Version.Tenant != 1 || now.Effective.Trigger != policy.Default().Trigger {
		t.Errorf("the refused default: %+v", now.Version)
	}
}

func TestACheckAnswersWhatAPutWouldAndStoresNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":0.3}`)
	asTenant := decoded[policyBody](w.must(http.StatusOK, "POST", "/v1/policy/check", `{"hard":0.9}`))
	asSession := decoded[policyBody](w.must(http.StatusOK, "POST", "/v1/policy/check?as=session", `{"hard":0.9}`))
	if asTenant.Effective.Target != policy.Default().Target || asSession.Effective.Target != 0.3 || asSession.Sources["/hard"] != "session" {
		t.Errorf("as the tenant's %v, as a session's %v", asTenant.Effective.Target, asSession.Effective.Target)
	}
	if now := decoded[policyBody](w.must(http.StatusOK, "GET", "/v1/policy", "")); now.Version.Tenant != 2 || now.Effective.Hard != 0.95 {
		t.Errorf("after two checks: %+v", now)
	}
}

// TestACheckShowsTheNamesThatAPutStores sends names of the five systems, which the description does not list.
func TestACheckShowsTheNamesThatAPutStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	patch := func(method, path string) string {
		body := strings.NewReader(`{"thresholdRatio":0.7,"cap":{"maxMessageBytes":9000}}`)
		r := httptest.NewRequestWithContext(t.Context(), method, path, body)
		r.Header.Set("Authorization", "Bearer "+w.key)
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		w.server.ServeHTTP(recorder, r)
		return string(decoded[policyBody](answer{t, recorder}).Patch)
	}
	const want = `{"trigger":0.7,"cap":{"max_bytes":9000}}`
	if checked, stored := patch("POST", "/v1/policy/check"), patch("PUT", "/v1/policy"); checked != want || stored != want {
		t.Errorf("the check says %s, the PUT %s", checked, stored)
	}
}

func TestProfilesAndSchemaAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := decoded[struct {
		Data []struct {
			Name   string
			Policy json.RawMessage
		}
	}](w.must(http.StatusOK, "GET", "/v1/policies/profiles", ""))
	var names []string
	for _, p := range list.Data {
		names = append(names, p.Name)
		if _, err := policy.Parse(p.Policy); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if !slices.Equal(names, policy.Profiles()) {
		t.Errorf("profiles %v", names)
	}
	published, err := os.ReadFile("../../docs/policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	got := w.must(http.StatusOK, "GET", "/v1/policies/schema", "")
	if got.Body.String() != string(published) || got.Header().Get("Content-Type") != "application/schema+json" {
		t.Errorf("the schema is not that of docs/policy.schema.json")
	}
}

func TestOneTenantsDefaultIsNotAnothers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stranger := w.newTenant("stranger")
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":0.3}`)
	theirs := w.must(http.StatusOK, "GET", "/v1/policy", "", "Authorization", "Bearer "+stranger)
	if p := decoded[policyBody](theirs); p.Version.Tenant != 1 || p.Effective.Target != policy.Default().Target {
		t.Errorf("the stranger's: %s", theirs.Body)
	}
	versions := w.must(http.StatusOK, "GET", "/v1/policy/versions", "", "Authorization", "Bearer "+stranger)
	if strings.Contains(versions.Body.String(), "0.3}") {
		t.Errorf("the stranger sees %s", versions.Body)
	}
}

// twoModels returns a caller with the models haiku and mini, which nobody asks.
func twoModels(t *testing.T) *modelcall.Caller {
	t.Helper()
	models, err := llm.Open(llm.Config{
		Providers: map[string]llm.Provider{"a": {Kind: llm.Anthropic, BaseURL: "https://hush.example", Key: llm.NewKey("sk-hush")}},
		Models: map[string]llm.Definition{
			"haiku": {Provider: "a", Model: "claude-haiku-4-5", Window: 200_000, Price: llm.Price{Input: 1, Cached: 0.1, Output: 5}},
			"mini":  {Provider: "a", Model: "m", Window: 16_000, MaxOutput: 500},
		},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &modelcall.Caller{Models: models}
}

func TestTheModelsForSummariesAreListedWithoutAddressesAndKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/models/summaries"
	if got := w.must(http.StatusOK, "GET", path, "").Body.String(); !strings.Contains(got, `"data":[]`) {
		t.Errorf("without models: %s", got)
	}
	w.server = api.New(api.Config{Store: w.store, Caller: twoModels(t)})
	const want = `{"object":"list","data":[` +
		`{"id":"haiku","provider":"anthropic","model":"claude-haiku-4-5","window_tokens":200000,"max_output_tokens":4096,"price":{"input":1,"cached_input":0.1,"output":5}},` +
		`{"id":"mini","provider":"anthropic","model":"m","window_tokens":16000,"max_output_tokens":500,"price":{"input":0,"cached_input":0,"output":0}}],` +
		`"has_more":false,"next_cursor":null}`
	if got := w.must(http.StatusOK, "GET", path, "").Body.String(); strings.TrimSpace(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAModelThatIsNotThereIsRefusedWhereverAPolicyIsSent asks each route that takes a policy.
func TestAModelThatIsNotThereIsRefusedWhereverAPolicyIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server = api.New(api.Config{Store: w.store, Caller: twoModels(t)})
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	const bad, good = `{"summarise":{"model":"hiaku"}}`, `{"summarise":{"model":"haiku","prompt":"Be short."}}`
	messages := `{"format":"openai-chat","messages":[` + user("hi") + `],"policy":`
	for _, r := range []struct{ method, path, before, after, pointer string }{
		{"PUT", "/v1/policy", "", "", ""},
		{"PATCH", "/v1/policy", "", "", ""},
		{"POST", "/v1/policy/check", "", "", ""},
		{"POST", "/v1/policy/check?as=session", "", "", ""},
		{"PUT", "/v1/sessions/s/policy", "", "", ""},
		{"PATCH", "/v1/sessions/s/policy", "", "", ""},
		{"PATCH", "/v1/sessions/s", `{"policy":`, "}", "/policy"},
		{"PUT", "/v1/sessions/new", `{"policy":`, "}", "/policy"},
		{"POST", "/v1/sessions", `{"policy":`, "}", "/policy"},
		{"POST", "/v1/sessions/s/preview", `{"policy":`, "}", "/policy"},
		{"POST", "/v1/compact", messages, "}", "/policy"},
	} {
		got := w.must(http.StatusUnprocessableEntity, r.method, r.path, r.before+bad+r.after)
		p := decoded[problem](got)
		const want = `there is no model "hiaku": did you mean "haiku"?; GET /v1/models/summaries lists them`
		if len(p.Errors) != 1 || p.Errors[0].Pointer != r.pointer+"/summarise/model" || p.Errors[0].Detail != want {
			t.Errorf("%s %s: %+v", r.method, r.path, p.Errors)
		}
		if got := w.ask(r.method, r.path, r.before+good+r.after); got.Code >= 300 {
			t.Errorf("%s %s: %d %s", r.method, r.path, got.Code, got.Body)
		}
	}
}
