package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// fitted is what the tests of the window decode of a view.
type fitted struct {
	view
	Window int64 `json:"window_tokens"`
	Over   bool  `json:"over_window"`
	Cut    []protocol.Cut
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

// parallelReads returns, in a format, a question, an answer with n calls that run at once and their results, each of
// about size tokens, and turns small turns.
func parallelReads(f session.Format, n, size, turns int) []string {
	var calls, results []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%d\"}"}}`, i, i))
		results = append(results, fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, i, literalOf(prose(i, size))))
	}
	messages := []string{`{"role":"system","content":"be brief"}`, user("read these files"),
		`{"role":"assistant","content":"I read them","tool_calls":[` + strings.Join(calls, ",") + `]}`}
	messages = append(messages, results...)
	for i := range turns {
		messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":"step %d"}`, i), user(fmt.Sprintf("go on with %d", i)))
	}
	return inFormat(f, messages)
}

// inFormat returns messages of Chat Completions in another format.
func inFormat(f session.Format, messages []string) (list []string) {
	if f == session.OpenAIChat {
		return messages
	}
	var stored []wire.Stored
	for i, body := range messages {
		stored = append(stored, wire.Stored{Format: session.OpenAIChat, Body: []byte(body), Seq: int64(i + 1)})
	}
	for _, m := range wiretest.Translate(f, stored) {
		list = append(list, string(m.Body))
	}
	return list
}

// prose returns a text of about size tokens in lines, which differs by its number.
func prose(number, size int) string {
	var b strings.Builder
	for line, made := 0, 0; made < size; line += 50 {
		from := b.Len()
		for n := range 50 {
			fmt.Fprintf(&b, "%d.%d the quick brown fox jumps over the lazy dog\n", number, line+n)
		}
		made += tokens.Estimate([]byte(b.String()[from:]))
	}
	return b.String()
}

func literalOf(text string) string {
	literal, _ := json.Marshal(text)
	return string(literal)
}

// checkFits holds a view to what fit=window promises: the estimate of what is served is within room, it is valid for
// its provider, its figures are true, and each cut part comes back whole by its ref.
func (w *world) checkFits(path string, f session.Format, query string, room int64) fitted {
	w.Helper()
	got := w.must(http.StatusOK, "GET", path+"/context?fit=window&"+query, "")
	v := decoded[fitted](got)
	served := int64(0)
	bodies := v.bodies()
	if len(v.System) > 0 {
		bodies = append(bodies, []byte(`{"role":"system","content":`+string(v.System)+`}`))
	}
	for _, body := range bodies {
		facts, err := wire.Inspect(f, body)
		if err != nil {
			w.Fatalf("%s: %v: %s", query, err, body)
		}
		served += int64(facts.Tokens)
	}
	if served > room || v.Tokens > room || v.Over {
		w.Errorf("%s?%s: %d tokens served, %d said, over %t; there is room for %d", path, query, served, v.Tokens, v.Over, room)
	}
	for _, broken := range wiretest.Validate(f, v.bodies(), wire.Options{}) {
		w.Errorf("%s?%s: message %d breaks %s: %s", path, query, broken.Message, broken.Rule, broken.Detail)
	}
	for _, c := range v.Cut {
		if !strings.Contains(got.Body.String(), c.Ref) || c.TokensAfter >= c.TokensBefore {
			w.Errorf("%s?%s: %+v", path, query, c)
		}
	}
	return v
}

// wholeOf returns what a ref brings back.
func (w *world) wholeOf(path, ref string) string {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), "GET", path+"/results/"+ref+"?raw=true", nil)
	r.Header.Set("Authorization", "Bearer "+w.key)
	recorder := httptest.NewRecorder()
	w.server.ServeHTTP(recorder, r)
	if recorder.Code != http.StatusOK {
		w.Fatalf("%s of %s: %d %s", ref, path, recorder.Code, recorder.Body)
	}
	return recorder.Body.String()
}

// picture is a part of a message of Chat Completions: an image whose size is not known, which costs more than 700 tokens.
const picture = `{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}`

func TestImagesAreNotCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"window_tokens":2000}`)
	images := `{"role":"user","content":[{"type":"text","text":"compare"}` + strings.Repeat(","+picture, 6) + `]}`
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user("hi"), images))
	p := decoded[problem](w.must(http.StatusConflict, "GET", path+"/context?fit=window&wait=0", ""))
	if p.Code != "window_exceeded" || *p.Minimum <= 2000 || !strings.Contains(p.Detail, "seqs 2") {
		t.Errorf("%+v", p)
	}
	p = decoded[problem](w.must(http.StatusUnprocessableEntity, "GET", path+"/context?fit=window&wait=0&max_tokens=1000", ""))
	if p.Code != "view_cannot_fit" || *p.Minimum <= 2000 {
		t.Errorf("%+v", p)
	}
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", `{"role":"assistant","content":"they differ"}`, user("thanks")))
	v := w.checkFits(path, session.OpenAIChat, "wait=0", 2000)
	if v.Omitted == nil || len(v.Messages) == 0 {
		t.Errorf("images of an older message: %+v", v)
	}
}

func TestAFittedViewKeepsTheNewestUnitsAndTheUsersWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, own := range session.Formats() {
		path := "/v1/sessions/" + string(own)
		w.must(http.StatusCreated, "PUT", path, `{"window_tokens":4000}`)
		messages := []string{`{"role":"system","content":"be brief"}`, user("the first question"), `{"role":"assistant","content":` + literalOf(prose(1, 900)) + `}`,
			user("the newest question")}
		for i := range 12 {
			messages = append(messages, turn("openai-chat", i, 1, 1800)[1:3]...)
		}
		w.must(http.StatusCreated, "POST", path+"/messages", batch(string(own), inFormat(own, messages)...))
		for query, room := range map[string]int64{"wait=0": 4000, "wait=0&max_tokens=2500": 2500, "wait=0&max_tokens=100000": 4000} {
			v := w.checkFits(path, own, query, room)
			text := string(v.System)
			for _, m := range v.Messages {
				text += string(m)
			}
			if v.Omitted == nil || len(v.Omitted.Refs) == 0 || !strings.Contains(text, "the newest question") || !strings.Contains(text, "be brief") ||
				strings.Contains(text, "the first question") || !strings.Contains(text, "call_11_0") || v.Tokens < room*7/10 {
				t.Errorf("%s?%s: %d tokens, omitted %+v, cut %+v\n%.300s", path, query, v.Tokens, v.Omitted, v.Cut, text)
			}
			for _, ref := range v.Omitted.Refs {
				w.wholeOf(path, ref)
			}
		}
		bounded := w.must(http.StatusOK, "GET", path+"/context?max_tokens=2500", "").Header().Get("Etag")
		w.must(http.StatusOK, "GET", path+"/context?max_tokens=2500&fit=window&wait=0", "", "If-None-Match", bounded)
	}
}

func TestAFittedViewHasItsOwnETagAndCoding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"window_tokens":4000}`)
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", parallelReads(session.OpenAIChat, 3, 3000, 1)...))
	plain := w.must(http.StatusOK, "GET", path+"/context", "").Header().Get("Etag")
	const fit = "/context?fit=window&wait=0"
	got := w.must(http.StatusOK, "GET", path+fit, "", "If-None-Match", plain)
	again := w.must(http.StatusOK, "GET", path+fit, "")
	packed := w.must(http.StatusOK, "GET", path+fit, "", "Accept-Encoding", "zstd")
	if again.Body.String() != got.Body.String() || unzstd(t, packed.Body.Bytes()) != got.Body.String() {
		t.Error("the same view has other bytes")
	}
	w.must(http.StatusNotModified, "GET", path+fit, "", "If-None-Match", got.Header().Get("Etag"))
	w.must(http.StatusOK, "GET", path+"/context", "", "If-None-Match", got.Header().Get("Etag"))
	w.must(http.StatusOK, "PATCH", path, `{"overhead_tokens":500}`)
	smaller := decoded[fitted](w.must(http.StatusOK, "GET", path+fit, "", "If-None-Match", got.Header().Get("Etag")))
	if smaller.Tokens > 3500 {
		t.Errorf("the overhead has %d tokens of room left", 4000-smaller.Tokens)
	}
	w.must(http.StatusOK, "PATCH", path, `{"window_tokens":100000}`)
	whole := w.must(http.StatusOK, "GET", path+fit, "", "If-None-Match", got.Header().Get("Etag"))
	if v := decoded[fitted](whole); v.Cut != nil || v.Omitted != nil {
		t.Errorf("a view that fits is cut: %+v", v)
	}
}

func TestWhatFitDoesNotTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, "")
	for query, field := range map[string]string{
		"fit=window&view=full": "fit", "fit=all": "fit", "fit=": "fit", "wait=1": "wait", "fit=window&wait=61": "wait", "fit=window&wait=x": "wait",
	} {
		p := decoded[problem](w.must(http.StatusUnprocessableEntity, "GET", path+"/context?"+query, ""))
		if len(p.Errors) != 1 || p.Errors[0].Pointer != field {
			t.Errorf("%s: %+v", query, p.Errors)
		}
	}
}

// TestAReadWaitsForTheCompaction has workers: the read that comes right after the append waits for what the append
// asked for, and whatever that leaves fits.
func TestAReadWaitsForTheCompaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for i, own := range session.Formats() {
		for _, size := range []struct{ window, result int }{{32000, 8000}, {128000, 16000}}[i%2 : i%2+1] {
			path := fmt.Sprintf("/v1/sessions/%s-%d", own, size.window)
			w.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"window_tokens":%d,"overhead_tokens":500}`, size.window))
			w.must(http.StatusCreated, "POST", path+"/messages", batch(string(own), parallelReads(own, 10, size.result, 0)...))
			v := w.checkFits(path, own, "wait=60", int64(size.window)-500)
			runs := decoded[struct{ Data []struct{ State string } }](w.must(http.StatusOK, "GET", path+"/runs", ""))
			if len(runs.Data) == 0 || runs.Data[len(runs.Data)-1].State == "queued" || runs.Data[len(runs.Data)-1].State == "running" {
				t.Errorf("%s: the read did not wait for the run: %+v", path, runs.Data)
			}
			for _, c := range v.Cut {
				w.wholeOf(path, c.Ref)
			}
			w.must(http.StatusCreated, "POST", path+"/messages", batch(string(own), inFormat(own, []string{`{"role":"assistant","content":"I see"}`, user("go on")})...))
			for _, f := range session.Formats() {
				w.checkFits(path, f, "wait=60&format="+string(f), int64(size.window)-500)
			}
		}
	}
}

func TestAReadGetsWhatTheCompactionMakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"window_tokens":8000}`)
	for n := range 12 {
		w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", turn("openai-chat", n, 2, 2500)...))
	}
	before := w.checkFits(path, session.OpenAIChat, "wait=0", 8000)
	got := make(chan fitted, 1)
	go func() {
		defer close(got)
		got <- w.checkFits(path, session.OpenAIChat, "wait=60", 8000)
	}()
	w.work() // only now
	if after := <-got; before.Checkpoint != 0 || after.Checkpoint != 1 {
		t.Errorf("checkpoint %d while no worker is there, and %d for a reader who waits", before.Checkpoint, after.Checkpoint)
	}
}

func TestAReadDoesNotWaitForNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"window_tokens":5000}`)
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", parallelReads(session.OpenAIChat, 4, 3000, 0)...))
	w.checkFits(path, session.OpenAIChat, "wait=1", 5000) // there is no worker
}

// TestPartsOfACheckpointAreCut has a checkpoint that is larger than the window: its messages have their own refs where
// it is known which they are.
func TestPartsOfACheckpointAreCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"Read","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"c","content":` + literalOf(prose(1, 9000)) + `}`
	bodies := []string{user("a"), call, result}
	at := len(bodies[0]) + 1
	unit := `[{"offset":0,"first_seq":1,"messages":1,"tokens":4},{"offset":%d,"first_seq":2,"messages":%d,"tokens":%d}]`
	size := tokens.Estimate([]byte(prose(1, 9000))) + 20
	for id, test := range map[string]struct {
		messages []string // of the log, the same number of them in the checkpoint's second unit or not
		ref      string
	}{
		"one-by-one": {bodies, "r3.0-"}, "in-a-range": {append(slices.Clone(bodies), user("b")), "m2-4"},
	} {
		path := "/v1/sessions/" + id
		w.must(http.StatusCreated, "PUT", path, `{"window_tokens":5000}`)
		w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", test.messages...))
		through := int64(len(test.messages))
		w.commit(id, 0, through, strings.Join(bodies, ","), fmt.Sprintf(unit, at, through-1, size))
		w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user("c")))
		v := w.checkFits(path, session.OpenAIChat, "wait=0", 5000)
		if len(v.Cut) != 1 || !strings.HasPrefix(v.Cut[0].Ref, test.ref) || len(v.Messages) != 4 {
			t.Fatalf("%s: %d messages, %+v, omitted %+v", id, len(v.Messages), v.Cut, v.Omitted)
		}
		if whole := w.wholeOf(path, v.Cut[0].Ref); !strings.Contains(whole, prose(1, 9000)) && !strings.Contains(whole, result) {
			t.Errorf("%s: %s brings back %.200s", id, v.Cut[0].Ref, whole)
		}
	}
}
