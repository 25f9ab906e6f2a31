package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// compaction is one as callers of OpenAI's API decode it.
type compaction struct {
	ID      string
	Object  string
	Created int64 `json:"created_at"`
	Output  []struct {
		Type, Role string
		ID         string
		CallID     string `json:"call_id"`
		Content    []struct{ Type, Text string }
	}
	Usage      map[string]any
	Compaction *struct {
		Before int64 `json:"tokens_before"`
		After  int64 `json:"tokens_after"`
	}
}

// resultsOnly is a policy by which, of the turns of these tests in a window of 30,000 tokens, only results leave.
const resultsOnly = `"policy":{"trigger":0.8,"target":0.5,"trim":{"enabled":true},` +
	`"cap":{"max_ratio":0,"unit_ratio":0},"summarise":{"words_ratio":0,"names_ratio":0,"lines_ratio":0}}`

// turnsOf returns a list of turns, as the items of a request.
func turnsOf(turns int) string {
	var items []string
	for n := range turns {
		items = append(items, turnOf(n)...)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func TestResponsesCompactAnswersMessagesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := `{"model":"gpt-5","window_tokens":30000,"input":` + turnsOf(12) + `,"prompt_cache_key":"k","service_tier":null,"instructions":"be brief",` + resultsOnly + `}`
	got := decoded[compaction](w.must(http.StatusOK, "POST", "/v1/responses/compact", body))
	if got.Object != "response.compaction" || !strings.HasPrefix(got.ID, "resp_") || got.Created == 0 || got.Usage["total_tokens"] != 0.0 {
		t.Errorf("answer %+v", got)
	}
	if got.Compaction == nil || got.Compaction.After > got.Compaction.Before*6/10 {
		t.Errorf("compaction %+v", got.Compaction)
	}
	questions, calls := 0, 0
	for _, item := range got.Output {
		if item.Type != "message" || !strings.HasPrefix(item.ID, "msg_") || len(item.Content) == 0 {
			t.Fatalf("item %+v", item)
		}
		if item.Role == "user" {
			questions++
		}
		if text := item.Content[0].Text; item.Role == "assistant" && strings.HasPrefix(text, fmt.Sprintf(`[Called read with {"path":"c%d"}]`, calls)) {
			calls++
		}
	}
	if questions != 12 || calls != 12 || len(got.Output) != 36 {
		t.Errorf("%d questions and %d calls in %d items", questions, calls, len(got.Output))
	}
	if last := got.Output[34].Content[1].Text; !strings.HasPrefix(last, "a line of output\na line of output") {
		t.Errorf("the newest output is %.100s", last)
	}
}

func TestWhatACompactionToldIsACallAgainInTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	compacted := func(window int, input string) string {
		got := decoded[struct{ Output json.RawMessage }](w.must(http.StatusOK, "POST", fmt.Sprintf("/v1/responses/compact?window_tokens=%d", window), `{"input":`+input+`,`+resultsOnly+`}`))
		return string(got.Output)
	}
	told := compacted(10_000_000, turnsOf(12))
	if strings.Count(told, "a line of output") != 12*400 {
		t.Fatal("a window with room for all has not kept all")
	}
	shorter := compacted(30_000, told)
	if n := strings.Count(shorter, "a line of output"); n < 400 || n > 9*400 {
		t.Errorf("%d lines are left", n)
	}
	for n := range 12 {
		for _, want := range []string{fmt.Sprintf(`[Called read with {\"path\":\"c%d\"}]`, n), fmt.Sprint("question ", n), fmt.Sprint("answer ", n)} {
			if !strings.Contains(shorter, want) {
				t.Errorf("%s is not there any more", want)
			}
		}
	}
}

func TestResponsesCompactKeepsItemsForWhoAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := decoded[compaction](w.must(http.StatusOK, "POST", "/v1/responses/compact?tools=items", `{"model":"gpt-5","window_tokens":30000,"input":`+turnsOf(12)+`,`+resultsOnly+`}`))
	if len(got.Output) != 48 {
		t.Fatalf("%d items", len(got.Output))
	}
	for n := range 12 {
		id := fmt.Sprint("c", n)
		if c, o := got.Output[4*n+1], got.Output[4*n+2]; c.Type != "function_call" || c.CallID != id || o.Type != "function_call_output" || o.CallID != id {
			t.Errorf("turn %d: %+v, %+v", n, c, o)
		}
	}
}

func TestWhatCannotBeAMessageOfTheAssistantIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	image := `{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"}`
	got := w.must(http.StatusOK, "POST", "/v1/responses/compact", `{"input":[`+strings.Join([]string{
		`{"type":"compaction","id":"cmp_1","encrypted_content":"sealed"}`, user("look"), call("a"),
		`{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"here \ud800"},` + image + `]}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"a thought"}`, call("b"),
	}, ",")+`]}`).Body.String()
	for _, want := range []string{"here \uFFFD", image, `a thought`, `{"type":"compaction","id":"cmp_1","encrypted_content":"sealed"}`, `[web_search_call: {`, call("b")} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

func TestAStringIsInputToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := decoded[compaction](w.must(http.StatusOK, "POST", "/v1/responses/compact", `{"model":"a-model-of-tomorrow","input":"hi"}`))
	if len(got.Output) != 1 || got.Output[0].Role != "user" || got.Output[0].Content[0].Text != "hi" {
		t.Errorf("output %+v", got.Output)
	}
}

func TestAConversationIsCompactedByItsIDAndNothingOfItIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	id := w.conversing()
	for n := range 12 {
		w.must(http.StatusOK, "POST", "/v1/conversations/"+id+"/items", `{"items":[`+strings.Join(turnOf(n), ",")+`]}`)
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/"+id, `{"window_tokens":30000,`+resultsOnly+`}`)
	answer := w.must(http.StatusOK, "POST", "/v1/responses/compact?tools=items", `{"model":"gpt-5","previous_response_id":"`+id+`"}`).Body
	got := decoded[compaction](w.must(http.StatusOK, "POST", "/v1/responses/compact?tools=items", `{"model":"gpt-5","previous_response_id":"`+id+`"}`))
	if len(got.Output) != 48 {
		t.Errorf("%d items", len(got.Output))
	}
	results := decoded[struct{ Data []struct{ Ref string } }](w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/results", ""))
	if len(results.Data) == 0 {
		t.Fatal("nothing has left")
	}
	for _, r := range results.Data {
		if !strings.Contains(answer.String(), r.Ref) {
			t.Errorf("the output does not name %s", r.Ref)
		}
		w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/results/"+r.Ref, "")
	}
}

func TestAConversationWhoseNewestItemsAreGiantIsCutToItsWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for n, query := range []string{"?tools=items", ""} {
		id := w.conversing(user("hi"))
		w.must(http.StatusOK, "PATCH", "/v1/sessions/"+id, `{"window_tokens":20000}`)
		items := parallelReads(session.OpenAIResponses, 6, 6000, 0)
		w.must(http.StatusOK, "POST", "/v1/conversations/"+id+"/items", `{"items":[`+strings.Join(items, ",")+`]}`)
		got := decoded[struct{ Output []json.RawMessage }](w.must(http.StatusOK, "POST", "/v1/responses/compact"+query, `{"previous_response_id":"`+id+`"}`))
		sum := 0
		for _, item := range got.Output {
			facts, err := wire.Inspect(session.OpenAIResponses, item)
			if err != nil {
				t.Fatal(err)
			}
			sum += facts.Tokens
		}
		if sum > 20000 || sum < 5000 || len(got.Output) < 8 {
			t.Errorf("%d: %d tokens in %d items", n, sum, len(got.Output))
		}
	}
}
