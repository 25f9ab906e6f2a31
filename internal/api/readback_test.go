package api_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

const (
	readCall   = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a.go\"}"}}]}`
	readResult = `{"role":"tool","tool_call_id":"c1","content":"package a\nvar x = 1\n"}`
)

func TestAResultThatNeverLeftTheViewIsReadByItsRef(t *testing.T) {
	t.Parallel()
	for format, messages := range map[string][]string{
		"openai-chat": {user("x"), readCall, readResult},
		"anthropic": {
			`{"role":"user","content":"x"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a.go"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"package a\nvar x = 1\n"}]}`,
		},
	} {
		w := newWorld(t)
		w.must(http.StatusCreated, "PUT", "/v1/sessions/s", fmt.Sprintf(`{"format":%q}`, format))
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch(format, messages...))
		ref := session.NewResultRef(3, 0, sha256.Sum256([]byte("package a\nvar x = 1\n"))).String()
		raw := w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+ref+"?raw=true", "")
		if got := raw.Body.String(); got != "package a\nvar x = 1\n" {
			t.Errorf("%s: %s is %q", format, ref, got)
		}
		page := w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+ref+"?offset=2", "").Body.String()
		if !strings.Contains(page, `"lines":2`) || !strings.Contains(page, `     2\tvar x = 1\n`) {
			t.Errorf("%s: %s", format, page)
		}
	}
}

func TestMessagesAreReadByTheirRef(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("find x"), readCall, readResult))
	if got := w.must(http.StatusOK, "GET", "/v1/sessions/s/results/m3?raw=true", "").Body.String(); got != readResult {
		t.Errorf("m3 is %s", got)
	}
	both := w.must(http.StatusOK, "GET", "/v1/sessions/s/results/m2-3?raw=true", "").Body.String()
	if want := "[" + readCall + "," + readResult + "]"; both != want {
		t.Errorf("m2-3 is %s, want %s", both, want)
	}
	type page struct {
		Ref, Content string
		NextRef      *string `json:"next_ref"`
		NextOffset   *int64  `json:"next_offset"`
		Messages     int
	}
	text := decoded[page](w.must(http.StatusOK, "GET", "/v1/sessions/s/results/m1-99?limit=3", ""))
	want := page{Ref: "m1-3", Messages: 3, Content: "     1\t## [1] user\n     2\t\n     3\tfind x\n"}
	if text.NextOffset == nil || *text.NextOffset != 4 {
		t.Errorf("%+v", text)
	}
	if text.NextOffset = nil; text != want {
		t.Errorf("got %+v, want %+v", text, want)
	}
}

// TestARunOfMessagesThatIsTooLongForOneAnswerNamesTheRest: the limit is 1,000 messages.
func TestARunOfMessagesThatIsTooLongForOneAnswerNamesTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	many := make([]string, 501)
	for i := range many {
		many[i] = user(fmt.Sprint(i))
	}
	for range 2 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", many...))
	}
	body := w.must(http.StatusOK, "GET", "/v1/sessions/s/results/m1-5000", "").Body.String()
	for _, want := range []string{`"ref":"m1-1000"`, `"next_ref":"m1001-1002"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %.200s", want, body)
		}
	}
}

func TestAWrongRefNamesTheNearestRightOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x"), readCall, readResult))
	right := session.NewResultRef(3, 0, sha256.Sum256([]byte("package a\nvar x = 1\n"))).String()
	persisted := w.putResult("s", []byte("of message 4"))
	for ref, want := range map[string]string{
		right[:len(right)-1] + "_": "a ref looks like r17.1-9f3a",
		"r3.0-0000":                "message 3 has " + right,
		"r1.0-0000":                "message 1 has no result, the nearest are " + persisted,
		"r77.0-0000":               "the nearest are " + persisted,
		"m9":                       "the session has messages 1 to 3",
		"m3-2":                     "a ref looks like",
	} {
		if body := w.must(http.StatusNotFound, "GET", "/v1/sessions/s/results/"+ref, "").Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: %s is not in %s", ref, want, body)
		}
	}
}

// TestAnotherTenantsRefsAreLikeMissingOnes: a ref that follows from the log must not tell that the log exists.
func TestAnotherTenantsRefsAreLikeMissingOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stranger := w.newTenant("stranger")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/theirs", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/theirs/messages", batch("openai-chat", user("secret"), readCall, readResult))
	logged := session.NewResultRef(3, 0, sha256.Sum256([]byte("package a\nvar x = 1\n"))).String()
	for _, ref := range []string{"m1", "m1-3", "m99", logged, "r3.0-0000"} {
		ask := func(id string) string {
			got := w.ask("GET", "/v1/sessions/"+id+"/results/"+ref, "", "Authorization", "Bearer "+stranger)
			if got.Code != http.StatusNotFound {
				t.Errorf("%s of %s: %d %s", ref, id, got.Code, got.Body)
			}
			return strings.ReplaceAll(requestID.ReplaceAllString(got.Body.String(), "req"), id, "ID")
		}
		if theirs, missing := ask("theirs"), ask("absent"); theirs != missing {
			t.Errorf("%s: another's\n%s\nmissing\n%s", ref, theirs, missing)
		}
	}
}
