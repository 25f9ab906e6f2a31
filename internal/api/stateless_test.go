package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

type statelessAnswer struct {
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
	Changed      bool
	Due          bool
	Reason       string
	System       json.RawMessage
	Messages     []json.RawMessage
	Actions      []struct {
		Ref          string
		TokensBefore int64 `json:"tokens_before"`
		TokensAfter  int64 `json:"tokens_after"`
	}
	Stages  []compact.StageReport
	Results []returned
	Report  *struct {
		TokensSaved  int64                  `json:"tokens_saved"`
		OverflowRisk *protocol.OverflowRisk `json:"overflow_risk"`
	}
}

// returned is a result that an answer has because it was taken out of the messages.
type returned struct {
	Ref, SHA256, Content string
	Bytes                int
}

func TestMessagesAreCompactedWithoutASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := `{"format":"openai-chat","window_tokens":10000,"include_results":true,"messages":[` + strings.Join(conversation(30, 500), ",") + `]}`
	got := decoded[statelessAnswer](w.must(http.StatusOK, "POST", "/v1/compact", body))
	if !got.Changed || !got.Due || got.TokensAfter >= got.TokensBefore || got.Report == nil || got.Report.TokensSaved != got.TokensBefore-got.TokensAfter {
		t.Fatalf("%d → %d, changed %t, due %t, report %+v", got.TokensBefore, got.TokensAfter, got.Changed, got.Due, got.Report)
	}
	bodies := make([][]byte, len(got.Messages))
	for i := range got.Messages {
		bodies[i] = got.Messages[i]
	}
	if violations := wiretest.Validate(session.OpenAIChat, bodies, wire.Options{}); len(violations) > 0 {
		t.Errorf("the messages break their provider's rules: %v", violations)
	}
	contents, saved := map[string]string{}, int64(0)
	for _, r := range got.Results {
		contents[r.Ref] = r.Content
		if sum := sha256.Sum256([]byte(r.Content)); hex.EncodeToString(sum[:]) != r.SHA256 || r.Bytes != len(r.Content) {
			t.Errorf("result %s is not what is said of it", r.Ref)
		}
	}
	for _, a := range got.Actions {
		saved += a.TokensBefore - a.TokensAfter
		if strings.HasPrefix(a.Ref, "r") && contents[a.Ref] == "" { // m2-51 names messages that the caller has
			t.Errorf("the result %s is gone", a.Ref)
		}
	}
	if saved != got.TokensBefore-got.TokensAfter {
		t.Errorf("the manifest's sum is %d, the tokens go from %d to %d", saved, got.TokensBefore, got.TokensAfter)
	}
	if list := w.must(http.StatusOK, "GET", "/v1/sessions", "").Body.String(); !strings.Contains(list, `"data":[]`) {
		t.Errorf("something was stored: %s", list)
	}
}

func TestWhatIsNotDueStaysIfForceIsFalse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	messages := strings.Join(conversation(30, 500), ",")
	for body, changed := range map[string]bool{
		`{"format":"openai-chat","window_tokens":25000,"messages":[` + messages + `]}`:               true,
		`{"format":"openai-chat","window_tokens":25000,"force":false,"messages":[` + messages + `]}`: false,
	} {
		answer := w.must(http.StatusOK, "POST", "/v1/compact", body)
		got := decoded[statelessAnswer](answer)
		if got.Due || got.Changed != changed || strings.HasSuffix(answer.Body.String(), `"messages":[`+messages+`]}`) == changed {
			t.Errorf("force %t: due %t, changed %t", changed, got.Due, got.Changed)
		}
	}
}

func TestWhatIsDueSaysItsTriggerIfForceIsFalse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const body = `{"format":"openai-chat","window_tokens":%d,"include_results":true,"force":%t,"messages":[%s]}`
	messages := strings.Join(conversation(30, 500), ",")
	for force, want := range map[bool]string{false: "the hard limit is 9500", true: "asked for: "} {
		answer := w.must(http.StatusOK, "POST", "/v1/compact", fmt.Sprintf(body, 10000, force, messages))
		if !strings.Contains(decoded[struct{ Reason string }](answer).Reason, want) {
			t.Errorf("force %t: %.300s", force, answer.Body)
		}
	}
	unchanged := w.must(http.StatusOK, "POST", "/v1/compact", fmt.Sprintf(body, 100000, true, user("hi")))
	if !strings.Contains(unchanged.Body.String(), `"results":[]`) {
		t.Errorf("results that were asked for are not there: %s", unchanged.Body)
	}
}

func TestAnAnthropicSystemPromptStandsApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := decoded[statelessAnswer](w.must(http.StatusOK, "POST", "/v1/compact",
		`{"format":"anthropic","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"a < b"}]}`))
	if string(got.System) != `"be brief"` || len(got.Messages) != 1 || got.Changed || string(got.Messages[0]) != `{"role":"user","content":"a < b"}` {
		t.Errorf("%+v", got)
	}
}

func TestAllThatIsWrongWithMessagesIsToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := decoded[problem](w.must(http.StatusUnprocessableEntity, "POST", "/v1/compact",
		`{"format":"x","messages":7,"window_tokens":1,"force":"yes","policy":{"trigger":2}}`))
	if len(got.Errors) != 5 {
		t.Errorf("problems %+v", got.Errors)
	}
	got = decoded[problem](w.must(http.StatusUnprocessableEntity, "POST", "/v1/compact", `{"format":"openai-chat","messages":[1,{"role":3},{"role":"user"}]}`))
	if len(got.Errors) != 2 || got.Errors[1].Pointer != "/messages/1/role" {
		t.Errorf("problems %+v", got.Errors)
	}
	got = decoded[problem](w.must(http.StatusUnprocessableEntity, "POST", "/v1/compact?strict=true",
		`{"format":"openai-chat","messages":[{},{"role":"user"}],"model":"none","policy":{"trigger":2,"triger":1}}`))
	var pointers []string
	for _, e := range got.Errors {
		pointers = append(pointers, e.Pointer)
	}
	if diff := cmp.Diff([]string{"/policy/triger", "/policy/trigger", "/model", "/messages/0/role", "/messages/1"}, pointers); diff != "" {
		t.Errorf("of messages, policy and model (-want +got):\n%s", diff)
	}
	if got = decoded[problem](w.must(http.StatusUnprocessableEntity, "POST", "/v1/compact", `{}`)); len(got.Errors) != 2 {
		t.Errorf("without anything: %+v", got.Errors)
	}
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/compact", `{"format":"openai-chat","messages":[]}`)
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/compact", `{"format":"openai-chat","messages":[{"role":"user"}],"window_tokens":2000,"overhead_tokens":2000}`)
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/compact", `{"format":"openai-chat","messages":[{"role":"user"}],"window_tokens":0}`)
	many := strings.Repeat(`{"role":"user"},`, 100_000) + `{"role":"user"}`
	w.must(http.StatusRequestEntityTooLarge, "POST", "/v1/compact", `{"format":"openai-chat","messages":[`+many+`]}`)
}
