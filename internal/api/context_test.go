package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// view is a view as callers decode it.
type view struct {
	Session    string
	Format     *session.Format
	Checkpoint int
	Through    int64 `json:"through_seq"`
	LastSeq    int64 `json:"last_seq"`
	Tokens     int64
	Omitted    *struct {
		Units, Messages int
		Tokens          int64
		Refs            []string
	}
	System   json.RawMessage
	Messages []json.RawMessage
}

func (v view) bodies() (list [][]byte) {
	for _, m := range v.Messages {
		list = append(list, m)
	}
	return list
}

// work starts a worker on the world's database.
func (w *world) work() {
	w.Helper()
	w.workLogging(nil)
}

func (w *world) workLogging(log *slog.Logger) {
	w.Helper()
	client, err := jobs.NewClient(w.admin.Pool(), jobs.Config{Store: w.admin, Log: log, Rest: 1, Features: features.All()})
	if err != nil {
		w.Fatal(err)
	}
	if err := client.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { <-client.Stopped() })
}

// turn returns the messages of a question with n rounds of a call and its result, each of about size characters.
func turn(format string, n, rounds, size int) (messages []string) {
	messages = append(messages, user(fmt.Sprintf("question %d", n)))
	for i := range rounds {
		id := fmt.Sprintf("call_%d_%d", n, i)
		text, _ := json.Marshal(strings.Repeat(fmt.Sprintf("line %d of the file\n", n), size/20))
		if format == "anthropic" {
			messages = append(messages,
				fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"I look"},{"type":"tool_use","id":%q,"name":"Read","input":{"path":"f%d"}}]}`, id, 10*n+i),
				fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, id, text))
			continue
		}
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":"I look","tool_calls":[{"id":%q,"type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%d\"}"}}]}`, id, 10*n+i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, text))
	}
	return append(messages, fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, n))
}

// TestBoundedViews compacts real sessions and asks for views of every size: each is valid, whole in its units, no larger
// than asked for, and says what it leaves out.
func TestBoundedViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for _, format := range []string{"openai-chat", "anthropic"} {
		path := "/v1/sessions/" + format
		w.must(http.StatusCreated, "PUT", path, `{"window_tokens":10000000}`)
		w.must(http.StatusCreated, "POST", path+"/messages", batch(format, `{"role":"system","content":"be brief"}`))
		for n := range 6 {
			w.must(http.StatusCreated, "POST", path+"/messages", batch(format, turn(format, n, 3, 6000)...))
		}
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
		w.must(http.StatusOK, "POST", path+"/compact?wait=60", "")
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":10000000}`) // nothing compacts any more
		for n := range 3 {
			w.must(http.StatusCreated, "POST", path+"/messages", batch(format, turn(format, 6+n, 2, 600)...))
		}
		checkBounds(w, path, session.Format(format))
	}
}

func checkBounds(w *world, path string, format session.Format) {
	w.Helper()
	whole := decoded[view](w.must(http.StatusOK, "GET", path+"/context", ""))
	if whole.Checkpoint == 0 || whole.Omitted != nil {
		w.Errorf("%s was not compacted: checkpoint %d", path, whole.Checkpoint)
	}
	tooSmall := decoded[problem](w.must(http.StatusUnprocessableEntity, "GET", path+"/context?max_tokens=1", ""))
	lowest := *tooSmall.Minimum
	w.must(http.StatusUnprocessableEntity, "GET", fmt.Sprintf("%s/context?max_tokens=%d", path, lowest-1), "")
	if lowest >= whole.Tokens {
		w.Errorf("%s: the smallest view has %d of %d tokens", path, lowest, whole.Tokens)
	}
	sizes := map[int]bool{}
	for limit := lowest; limit < whole.Tokens; limit += max(1, (whole.Tokens-lowest)/40) {
		v := decoded[view](w.must(http.StatusOK, "GET", fmt.Sprintf("%s/context?max_tokens=%d", path, limit), ""))
		if violations := wiretest.Validate(format, v.bodies(), wire.Options{}); len(violations) > 0 {
			w.Errorf("%s with %d tokens: %v", path, limit, violations)
		}
		if v.Tokens > limit || v.Omitted == nil || v.Tokens+v.Omitted.Tokens != whole.Tokens || len(v.Messages)+v.Omitted.Messages != len(whole.Messages) {
			w.Errorf("%s with %d tokens has %d in %d messages, without %+v; the whole has %d in %d", path, limit, v.Tokens, len(v.Messages), v.Omitted, whole.Tokens, len(whole.Messages))
		}
		if string(v.System) != string(whole.System) || !slices.EqualFunc(v.Messages[len(v.Messages)-1:], whole.Messages[len(whole.Messages)-1:], same) {
			w.Errorf("%s with %d tokens lost its system prompt or its end", path, limit)
		}
		if format == session.OpenAIChat && !same(v.Messages[0], whole.Messages[0]) {
			w.Errorf("%s with %d tokens begins with %s", path, limit, v.Messages[0])
		}
		sizes[len(v.Messages)] = true
	}
	if len(sizes) < 5 {
		w.Errorf("%s: only %d different views", path, len(sizes))
	}
	exact := decoded[view](w.must(http.StatusOK, "GET", fmt.Sprintf("%s/context?max_tokens=%d", path, whole.Tokens), ""))
	if exact.Omitted != nil || len(exact.Messages) != len(whole.Messages) {
		w.Errorf("%s: a view that fits is cut: %+v", path, exact.Omitted)
	}
}

func same(a, b json.RawMessage) bool { return string(a) == string(b) }

// TestAnAnswerThatComesLateIsNotSeparatedFromItsCall bounds a view whose checkpoint ends with a call that the tail answers.
func TestAnAnswerThatComesLateIsNotSeparatedFromItsCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"late","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	messages := []string{user("a"), call, user("b")}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", messages...))
	w.commit("s", 0, 3, strings.Join(messages, ","), fmt.Sprintf(`[{"offset":0,"messages":1,"tokens":1},{"offset":%d,"messages":1,"tokens":1},{"offset":%d,"messages":1,"tokens":1}]`,
		len(messages[0])+1, len(messages[0])+len(call)+2))
	w.exec(`UPDATE checkpoints SET open_calls = '{late}', body_digest = NULL`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", `{"role":"tool","tool_call_id":"late","content":"done"}`))
	p := decoded[problem](w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions/s/context?max_tokens=1", ""))
	whole := decoded[view](w.must(http.StatusOK, "GET", "/v1/sessions/s/context", ""))
	if *p.Minimum != whole.Tokens {
		t.Errorf("the least view has %d tokens, the whole %d", *p.Minimum, whole.Tokens)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("c")))
	p = decoded[problem](w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions/s/context?max_tokens=1", ""))
	cut := decoded[view](w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/sessions/s/context?max_tokens=%d", *p.Minimum), ""))
	if len(cut.Messages) != 1 || string(cut.Messages[0]) != user("c") {
		t.Errorf("the least view is %s", cut.Messages)
	}
}

func TestALateAnswerIsNoBeginningOfABoundedAnthropicView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	say := func(role, text string) string {
		return fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}]}`, role, text)
	}
	call := `{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"f","input":{}}]}`
	messages := []string{say("user", "a"), call, say("assistant", "it takes long")}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("anthropic", messages...))
	w.commit("s", 0, 3, strings.Join(messages, ","), fmt.Sprintf(`[{"offset":0,"messages":1,"tokens":9},{"offset":%d,"messages":1,"tokens":9},{"offset":%d,"messages":1,"tokens":9}]`,
		len(messages[0])+1, len(messages[0])+len(call)+2))
	w.exec(`UPDATE checkpoints SET open_calls = '{b}'`)
	answer := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"done"}]}`
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("anthropic", answer, say("assistant", "one"), say("assistant", "two")))
	p := decoded[problem](w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions/s/context?max_tokens=1", ""))
	cut := decoded[view](w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/sessions/s/context?max_tokens=%d", *p.Minimum), ""))
	if string(cut.Messages[0]) != messages[0] {
		t.Errorf("the least view begins with %s", cut.Messages[0])
	}
	for _, m := range cut.Messages {
		if string(m) == answer {
			t.Errorf("the least view holds the answer without its call: %s", cut.Messages)
		}
	}
}

func unzstd(t testing.TB, b []byte) string {
	t.Helper()
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAViewIsTheSameInEveryCoding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	path := "/v1/sessions/s/context"
	steps := []func(){
		func() {},
		func() {
			w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", unusual[:3]...))
		},
		func() { w.commit("s", 0, 3, strings.Join(unusual[:3], ","), `[]`) },
		func() {
			w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", unusual[3:]...))
		},
		func() {
			w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(strings.Repeat("0123456789abcdef", 1<<15))))
		},
	}
	for i, step := range steps {
		step()
		plain := w.must(http.StatusOK, "GET", path, "")
		packed := w.must(http.StatusOK, "GET", path, "", "Accept-Encoding", "gzip, zstd;q=0.9")
		if got := unzstd(t, packed.Body.Bytes()); got != plain.Body.String() || !json.Valid(plain.Body.Bytes()) {
			t.Errorf("step %d: zstd\n%.300s\nplain\n%.300s", i, got, plain.Body)
		}
		for name, a := range map[string]answer{"": plain, "zstd": packed} {
			h := a.Header()
			if h.Get("Content-Encoding") != name || h.Get("Content-Length") != strconv.Itoa(a.Body.Len()) || h.Get("Content-Type") != "application/json" ||
				h.Get("Vary") != "Authorization, Accept, Accept-Encoding" || h.Get("Cache-Control") != "private, no-cache" || h.Get("Etag") == "" {
				t.Errorf("step %d: headers %v of coding %q", i, h, name)
			}
		}
		if plain.Header().Get("Etag") == packed.Header().Get("Etag") {
			t.Errorf("step %d: both codings have the ETag %s", i, plain.Header().Get("Etag"))
		}
	}
}

func TestAcceptEncoding(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"": false, "zstd": true, "gzip, br, zstd": true, "ZSTD": true, "gzip": false, "zstd;q=0": false, "zstd;q=0.0, gzip": false, "*": true, "*;q=0": false,
		"zstd;q=0, *": false, "identity, zstd;q=0.5": false, "identity;q=0.5, zstd": true, "zstd; q=1": true, "zstd;q=x": false, "identity;q=0, *;q=0.1": true, "xzstd": false,
	} {
		if got := api.AcceptsZstd([]string{header}); got != want {
			t.Errorf("Accept-Encoding: %s: %t", header, got)
		}
	}
	if api.AcceptsZstd(nil) || !api.AcceptsZstd([]string{"gzip", "zstd"}) {
		t.Error("no header, or two")
	}
}

// TestTheETagChangesIffTheBytesDo reads a session between random changes.
func TestTheETagChangesIffTheBytesDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	random := rand.New(rand.NewPCG(1, 2))
	bodies, last, checkpoint := map[string]string{}, 0, 0
	tags := map[string]string{}
	for i := range 120 {
		switch random.IntN(4) {
		case 0:
			w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(strconv.Itoa(i))))
			last++
		case 1:
			w.must(http.StatusOK, "PATCH", "/v1/sessions/s", fmt.Sprintf(`{"model":"m%d","window_tokens":128000}`, i))
		case 2:
			if last > 0 {
				w.commit("s", checkpoint, int64(last), user("compacted "+strconv.Itoa(i)), `[]`)
				checkpoint++
			}
		}
		for _, path := range []string{"/v1/sessions/s/context", "/v1/sessions/s/context?view=full", "/v1/sessions/s/context?max_tokens=100000"} {
			got := w.must(http.StatusOK, "GET", path, "")
			tag, body := path+got.Header().Get("Etag"), got.Body.String()
			if known, ok := bodies[tag]; ok && known != body {
				t.Fatalf("%s has two bodies:\n%s\n%s", tag, known, body)
			}
			if known, ok := tags[path+body]; ok && known != tag {
				t.Fatalf("one body has the ETags %s and %s:\n%s", known, tag, body)
			}
			bodies[tag], tags[path+body] = body, tag
		}
	}
	if len(bodies) < 60 {
		t.Errorf("only %d versions", len(bodies))
	}
}

func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("a")))
	tag := func(path string, headers ...string) string {
		return w.must(http.StatusOK, "GET", path, "", headers...).Header().Get("Etag")
	}
	path := "/v1/sessions/s/context"
	old := tag(path)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("b")))
	plain, packed, full, bounded := tag(path), tag(path, "Accept-Encoding", "zstd"), tag(path+"?view=full"), tag(path+"?max_tokens=1000")
	suffixed := func(tag, suffix string) string { return strings.TrimSuffix(tag, `"`) + suffix + `"` }
	for _, test := range []struct {
		path, header, coding string
		want                 int
	}{
		{path, plain, "", 304}, {path, "W/" + plain, "", 304}, {path, "*", "", 304}, {path, `"x", ` + plain, "", 304}, {path, old + "," + plain, "", 304},
		{path, plain + ", " + old, "", 304}, {path, suffixed(plain, "-gzip"), "", 304}, {path, suffixed(plain, ";gzip"), "", 304}, {path, strings.Trim(plain, `"`), "", 304},
		{path, old, "", 200}, {path, packed, "", 200}, {path, packed, "zstd", 304}, {path, plain, "zstd", 200}, {path, full, "", 200}, {path, bounded, "", 200},
		{path + "?view=full", full, "", 304}, {path + "?view=full", plain, "", 200}, {path + "?max_tokens=1000", bounded, "", 304}, {path + "?max_tokens=999", bounded, "", 200},
		{path, `"`, "", 200}, {path, `""`, "", 200}, {path, `"a.b.c.d"`, "", 200}, {path, `"AAAAAAAAAAAAAAAAAAAAAA.0.0.1ci0.1"`, "", 200}, {path, "", "", 200},
	} {
		got := w.must(test.want, "GET", test.path, "", "If-None-Match", test.header, "Accept-Encoding", test.coding)
		if test.want == 304 && (got.Body.Len() > 0 || got.Header().Get("Etag") == "" || got.Header().Get("Vary") == "") {
			t.Errorf("304 of %s: %v %s", test.header, got.Header(), got.Body)
		}
		if test.want == 200 && test.coding == "" && !strings.Contains(got.Body.String(), user("b")) {
			t.Errorf("%s with %s: %s", test.path, test.header, got.Body)
		}
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	w.must(http.StatusNotFound, "GET", path, "", "If-None-Match", "*")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("c"), user("d")))
	w.must(http.StatusOK, "GET", path, "", "If-None-Match", plain)
}

func TestAFormatThatIsSetChangesTheETag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	before := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "")
	if empty := w.must(http.StatusOK, "GET", "/v1/sessions/s/context?format=gemini", ""); !strings.Contains(empty.Body.String(), `"format":"gemini"`) {
		t.Errorf("%s", empty.Body)
	}
	w.exec(`UPDATE sessions SET format = 1`)
	after := w.must(http.StatusOK, "GET", "/v1/sessions/s/context?format=openai-chat", "", "If-None-Match", before.Header().Get("Etag"))
	if !strings.Contains(after.Body.String(), `"openai-chat"`) {
		t.Errorf("%s", after.Body)
	}
}

func TestAViewOnlyGrowsAtItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	prefix := ""
	for n := range 10 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", turn("openai-chat", n, 1, 100)...))
		if n == 4 {
			w.commit("s", 0, 10, user("compacted"), `[]`)
			prefix = ""
		}
		_, messages, _ := strings.Cut(w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String(), `"messages":[`)
		if !strings.HasPrefix(messages, prefix) {
			t.Fatalf("after turn %d the view does not begin with\n%s\nbut is\n%s", n, prefix, messages)
		}
		prefix = strings.TrimSuffix(messages, "]}")
	}
}

// TestTheETagNamesTheAuthor has a view of thoughts, which go back only to the model that had them: the same request has
// another view once the session's model is another.
func TestTheETagNamesTheAuthor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"anthropic","model":"claude-3-7-sonnet","window_tokens":100000}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("anthropic", `{"role":"user","content":"go"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":"c2ln"},{"type":"text","text":"done"}]}`, `{"role":"user","content":"on"}`))
	const path = "/v1/sessions/s/context?model=claude-3-7-sonnet"
	before := w.must(http.StatusOK, "GET", path, "")
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"model":"claude-opus-4-1","window_tokens":100000}`)
	after := w.must(http.StatusOK, "GET", path, "", "If-None-Match", before.Header().Get("Etag"))
	if after.Body.String() == before.Body.String() || after.Header().Get("Etag") == before.Header().Get("Etag") {
		t.Errorf("ETag %s of\n%s\nETag %s of\n%s", before.Header().Get("Etag"), before.Body, after.Header().Get("Etag"), after.Body)
	}
}

// TestTheETagNamesTheDialect reads a session for every server and model: answers that differ have tags that differ.
func TestTheETagNamesTheDialect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","window_tokens":100000}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", `{"role":"developer","content":"d"}`, `{"role":"user","name":"eve","content":[{"type":"text","text":"go"}]}`,
		`{"role":"assistant","content":"done","reasoning_content":"hm"}`, `{"role":"assistant","content":"more"}`))
	bodies := map[string]string{}
	for _, model := range []string{"", "deepseek-chat", "deepseek-reasoner", "groq/llama", "mistral-large", "gpt-4o", "qwen3-max"} {
		w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"model":"`+model+`","window_tokens":100000}`)
		for _, query := range []string{"", "?dialect=groq", "?dialect=deepseek", "?dialect=mistral", "?dialect=openai", "?model=groq/llama", "?model=deepseek-chat", "?model=gpt-4o&dialect=groq"} {
			answer := w.must(http.StatusOK, "GET", "/v1/sessions/s/context"+query, "")
			tag, body := answer.Header().Get("Etag"), answer.Body.String()
			if before, known := bodies[tag]; known && before != body {
				t.Errorf("session of %q, %s: the tag %s is that of two answers:\n%s\n%s", model, query, tag, before, body)
			}
			bodies[tag] = body
			again := w.must(http.StatusNotModified, "GET", "/v1/sessions/s/context"+query, "", "If-None-Match", tag)
			if again.Body.Len() > 0 {
				t.Errorf("session of %q, %s: 304 with a body", model, query)
			}
		}
	}
	w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions/s/context?dialect=gropq", "")
	w.must(http.StatusNotAcceptable, "GET", "/v1/sessions/s/context?dialect=bedrock", "")
}
