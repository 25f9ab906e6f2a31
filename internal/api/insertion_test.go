package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestAnOversizedResultNeverEntersAViewWhole appends results to a session whose policy caps them at insertion.
func TestAnOversizedResultNeverEntersAViewWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","policy":{"profile":"cortex","cap":{"max_tokens":1000}}}`)
	small, large := reading(1, 200), reading(2, 5_000)
	calls := decoded[session.Appended](w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("go"), small[0], small[1], large[0])))
	done := decoded[session.Appended](w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", large[1])))
	if spared := calls.ContextTokens + done.Tokens - done.ContextTokens; spared < 1_000 || done.TotalTokens != calls.TotalTokens+done.Tokens {
		t.Errorf("%d tokens spared: %+v after %+v", spared, done, calls)
	}
	view := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String()
	if !strings.Contains(view, small[1]) || strings.Contains(view, large[1]) || !strings.Contains(view, "trimmed at insertion; full content: read_result r5.0-") {
		t.Errorf("view %s", view)
	}
	for _, query := range []string{"view=full", "view=full&format=openai-chat"} {
		if full := w.must(http.StatusOK, "GET", "/v1/sessions/s/context?"+query, "").Body.String(); !strings.Contains(full, large[1]) {
			t.Error("the log has another message than was appended")
		}
	}
	results := decoded[struct {
		Data []struct {
			Ref  string
			Tool string
		}
	}](w.must(http.StatusOK, "GET", "/v1/sessions/s/results", ""))
	if len(results.Data) != 1 || !strings.HasPrefix(results.Data[0].Ref, "r5.0-") {
		t.Fatalf("results %+v", results)
	}
	whole := w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+results.Data[0].Ref+"?raw=true", "").Body.String()
	if !strings.Contains(large[1], strings.ReplaceAll(whole, "\n", `\n`)) {
		t.Errorf("the result reads back as %d other bytes", len(whole))
	}
}

// TestTheNextCompactionKeepsWhatInsertionCapped: what a view shows of a capped result does not change with a compaction.
func TestTheNextCompactionKeepsWhatInsertionCapped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","policy":{"profile":"codelia","cap":{"max_bytes":2000,"head_chars":1000}}}`)
	large := reading(1, 5_000)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", append([]string{user("go")}, large...)...))
	before := decoded[struct{ Messages []any }](w.must(http.StatusOK, "GET", "/v1/sessions/s/context", ""))
	preview := decoded[struct {
		Before  int64 `json:"tokens_before"`
		After   int64 `json:"tokens_after"`
		Actions []struct {
			Do     string
			Before int64 `json:"tokens_before"`
			After  int64 `json:"tokens_after"`
		}
	}](w.must(http.StatusOK, "POST", "/v1/sessions/s/preview?actions=changed", `{}`))
	if n := len(preview.Actions); n != 1 || preview.Actions[0].Do != "cap" || preview.Before-preview.After != preview.Actions[0].Before-preview.Actions[0].After {
		t.Errorf("preview %+v", preview)
	}
	stateless := decoded[struct{ Messages []any }](w.must(http.StatusOK, "POST", "/v1/compact",
		fmt.Sprintf(`{"format":"openai-chat","window_tokens":2000,"policy":{"profile":"codelia","cap":{"max_bytes":2000,"head_chars":1000}},"messages":[%s]}`,
			strings.Join(append([]string{user("go")}, large...), ","))))
	if got, want := fmt.Sprint(stateless.Messages), fmt.Sprint(before.Messages); got != want {
		t.Errorf("a compaction makes\n%s\nof what insertion has made\n%s", got, want)
	}
}

// TestASecondResultOfACallIsNotCapped: the engine takes it for an orphan and would have to show it whole again.
func TestASecondResultOfACallIsNotCapped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","policy":{"profile":"cortex","cap":{"max_tokens":1000}}}`)
	large := reading(1, 5_000)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("go"), large[0], large[1], large[1]))
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", large[1]))
	view := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String()
	if capped, whole := strings.Count(view, "trimmed at insertion"), strings.Count(view, "not in this conversation"); capped != 1 || whole != 2 || len(view) < 2*len(large[1]) {
		t.Errorf("%d capped and %d whole", capped, whole)
	}
	context := decoded[session.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")).ContextTokens
	after := decoded[previewed](w.must(http.StatusOK, "POST", "/v1/sessions/s/preview", `{}`)).TokensAfter
	if after > context {
		t.Errorf("a compaction makes %d tokens of the view's %d", after, context)
	}
}

// TestWhatIsCappedIsCountedLikeEverythingElse: usage, and an exact tokenizer, count an append whether or not it is capped.
func TestWhatIsCappedIsCountedLikeEverythingElse(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"usage": ``, "tokenizer": `,"tokens":{"tokenizer":"o200k"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","policy":{"profile":"cortex","cap":{"max_tokens":1000}`+policy+`}}`)
			large := reading(1, 5_000)
			w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("go"), large[0]))
			body := batch("openai-chat", large[1])
			if name == "usage" {
				body = strings.Replace(body, `{`, `{"usage":{"input_tokens":50},`, 1)
			}
			w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", body)
			found := decoded[session.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", ""))
			if found.Calibration == 1 && found.UnseenTokens == 0 || found.ContextTokens >= found.TotalTokens {
				t.Errorf("calibration %v, %d of %d tokens are in the view", found.Calibration, found.ContextTokens, found.TotalTokens)
			}
		})
	}
}
