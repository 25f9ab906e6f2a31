package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

// array returns the body of a PUT of messages.
func array(messages ...string) string { return `{"messages":[` + strings.Join(messages, ",") + `]}` }

// ui returns a UIMessage.
func ui(id, role string, parts ...string) string {
	return `{"id":"` + id + `","role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
}

func text(s string) string { return `{"type":"text","text":"` + s + `"}` }

// put makes an array all that a session's views have.
func (w *world) put(path string, messages ...string) session.Replaced {
	w.Helper()
	return decoded[session.Replaced](w.must(http.StatusOK, "PUT", path+"/messages", array(messages...)))
}

// shows requires that a session's view has these messages.
func (w *world) shows(path string, f session.Format, messages ...string) {
	w.Helper()
	if diff := cmp.Diff(messages, strs(w.read(path, f, "").bodies())); diff != "" {
		w.Errorf("the view is not what was sent (-):\n%s", diff)
	}
}

// log returns all messages of a session.
func (w *world) log(path string) []protocol.Message {
	w.Helper()
	return decoded[protocol.MessagePage](w.must(http.StatusOK, "GET", path+"/messages?limit=1000", "")).Data
}

// TestWhatSDKsChangeIsChanged sends arrays as the AI SDK's useChat and its like save them again, when a message has
// changed under its id.
func TestWhatSDKsChangeIsChanged(t *testing.T) {
	t.Parallel()
	question := ui("u1", "user", text("what is the weather?"))
	tool := func(state, more string) string {
		return `{"type":"tool-weather","toolCallId":"c1","state":"` + state + `","input":{"city":"Rome"}` + more + `}`
	}
	const result = `,"output":{"degrees":31}`
	for name, test := range map[string]struct{ before, after []string }{
		"an answer is regenerated under another id": {
			[]string{question, ui("a1", "assistant", text("rain"))},
			[]string{question, ui("a2", "assistant", text("sun"))},
		},
		"an answer is regenerated under its id": {
			[]string{question, ui("a1", "assistant", text("rain"))},
			[]string{question, ui("a1", "assistant", text("sun"))},
		},
		"a question is edited, and what came after it is gone": {
			[]string{question, ui("a1", "assistant", text("rain")), ui("u2", "user", text("and tomorrow?")), ui("a2", "assistant", text("sun"))},
			[]string{ui("u1", "user", text("what time is it?")), ui("a3", "assistant", text("noon"))},
		},
		"a tool call is approved": {
			[]string{question, ui("a1", "assistant", tool("approval-requested", `,"approval":{"id":"p1"}`))},
			[]string{question, ui("a1", "assistant", tool("output-available", `,"approval":{"id":"p1","approved":true}`+result), text("31"))},
		},
		"a tool's result comes from the client": {
			[]string{question, ui("a1", "assistant", tool("input-available", ""))},
			[]string{question, ui("a1", "assistant", tool("output-available", result))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			const path = "/v1/sessions/s"
			w.must(http.StatusCreated, "PUT", path, `{"format":"ai-sdk"}`)
			if done := w.put(path, test.before...); done.Appended != int64(len(test.before)) || done.Superseded != 0 || *done.FirstSeq != 1 {
				t.Errorf("the first array: %+v", done)
			}
			w.put(path, test.after...)
			w.shows(path, session.AISDK, test.after...)
			last := w.log(path)[len(w.log(path))-1].Seq
			if again := w.put(path, test.after...); again.Superseded+again.Appended != 0 || again.LastSeq != last || again.FirstSeq != nil {
				t.Errorf("the same array again: %+v", again)
			}
			live := 0
			for _, m := range w.log(path) {
				if m.RemovedAt == nil {
					live++
				}
				if (m.RemovedAt == nil) != (m.SupersededBy == nil) {
					t.Errorf("message %d: removed at %v, superseded by %v", m.Seq, m.RemovedAt, m.SupersededBy)
				}
			}
			if live != len(test.after) {
				t.Errorf("%d messages are not superseded, want %d", live, len(test.after))
			}
		})
	}
}

func TestAMessageThatIsPatchedKeepsWhatIsBehindIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"format":"ai-sdk"}`)
	question, next := ui("u1", "user", text("why?")), ui("u2", "user", text("go on"))
	w.put(path, question, ui("a/1", "assistant", text("so")), next)
	changed := ui("a/1", "assistant", text("because"))
	for n, want := range []int64{2, 0} {
		done := decoded[session.Replaced](w.must(http.StatusOK, "PATCH", path+"/messages/"+url.PathEscape("a/1"), `{"message":`+changed+`}`))
		if done.Superseded != want || done.Appended != want {
			t.Errorf("attempt %d: %+v", n, done)
		}
	}
	w.shows(path, session.AISDK, question, changed, next)
	for _, test := range []struct {
		id, body string
		status   int
		code     string
	}{
		{"none", `{"message":` + ui("none", "user", text("x")) + `}`, http.StatusNotFound, "not_found"},
		{"u1", `{"message":` + ui("u9", "user", text("x")) + `}`, http.StatusUnprocessableEntity, "invalid_request"},
		{"u1", `{"message":1}`, http.StatusUnprocessableEntity, "invalid_message"},
		{"u1", `{}`, http.StatusUnprocessableEntity, "invalid_request"},
		{"u1", `{"format":"anthropic","message":` + question + `}`, http.StatusUnprocessableEntity, "invalid_request"},
		{"u1", `{"expected_seq":1,"message":` + ui("u1", "user", text("x")) + `}`, http.StatusPreconditionFailed, "stale_expected_seq"},
	} {
		got := w.must(test.status, "PATCH", path+"/messages/"+test.id, test.body)
		if p := decoded[problem](got); p.Code != test.code {
			t.Errorf("%s: %+v", test.body, p)
		}
	}
	w.shows(path, session.AISDK, question, changed, next)
}

func TestArraysThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"format":"openai-chat"}`)
	w.put(path, user("a"))
	many := strings.Repeat(user("x")+",", session.MaxWholeMessages) + user("x")
	for name, test := range map[string]struct {
		body, pointer string
		status        int
	}{
		"no messages":         {`{"messages":[]}`, "/messages", http.StatusUnprocessableEntity},
		"too many messages":   {array(many), "/messages", http.StatusRequestEntityTooLarge},
		"an id twice":         {`{"messages":[` + user("a") + `,` + user("b") + `],"client_ids":["x","x"]}`, "/client_ids/1", http.StatusUnprocessableEntity},
		"another format":      {batch("anthropic", user("a")), "/format", http.StatusUnprocessableEntity},
		"an invalid message":  {array(user("a"), `{"content":"x"}`), "/messages/1/role", http.StatusUnprocessableEntity},
		"an expected_seq":     {`{"expected_seq":0,"messages":[` + user("b") + `]}`, "", http.StatusPreconditionFailed},
		"a member of its own": {`{"message":1}`, "/message", http.StatusBadRequest},
	} {
		p := decoded[struct{ Errors []session.Problem }](w.must(test.status, "PUT", path+"/messages", test.body))
		if test.pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != test.pointer) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	w.must(http.StatusNotFound, "PUT", "/v1/sessions/none/messages", array(user("a")))
	w.must(http.StatusCreated, "PUT", "/v1/sessions/ui", `{"format":"ai-sdk"}`)
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/ui/messages", array(ui("a", "user", text("x")), ui("a", "user", text("y"))))
	w.shows(path, session.OpenAIChat, user("a"))
	w.put(path, user("a")) // the expected_seq of a request that changes nothing does not matter
	w.must(http.StatusOK, "PUT", path+"/messages", `{"expected_seq":0,"messages":[`+user("a")+`]}`)
}

func TestAnArrayIsComparedByWhatItSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"format":"openai-chat"}`)
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", `{"role":"system","content":"be brief"}`, user("a"), user("b")))
	reordered := `{ "content":"\u0061", "role":"user" }`
	if done := w.put(path, reordered, user("c")); done.Superseded != 1 || done.Appended != 1 {
		t.Errorf("members in another order, and no system message: %+v", done)
	}
	w.shows(path, session.OpenAIChat, `{"role":"system","content":"be brief"}`, user("a"), user("c"))
	if done := w.put(path, `{"role":"system","content":"be long"}`, user("a")); done.Superseded != 3 || done.Appended != 2 {
		t.Errorf("another system message: %+v", done)
	}
	w.shows(path, session.OpenAIChat, `{"role":"system","content":"be long"}`, user("a"))
}

// TestANewSystemMessageIsTheHead: the one before it is superseded, and stands before it in the log.
func TestANewSystemMessageIsTheHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"format":"anthropic"}`)
	for day := range 3 {
		w.put(path, fmt.Sprintf(`{"role":"system","content":"it is day %d"}`, day), user("a"), fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, day))
		v := w.read(path, session.Anthropic, "")
		if len(v.bodies()) != 2 || !strings.Contains(string(v.System), fmt.Sprint("it is day ", day)) {
			t.Errorf("day %d: system %s, messages %s", day, v.System, v.Messages)
		}
	}
}

func TestAReplacementWithAKeyIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"format":"ai-sdk"}`)
	w.put(path, ui("u", "user", text("a")), ui("x", "user", text("a")))
	const patched = `{"message":{"id":"x","role":"user","parts":[{"type":"text","text":"b"}]}}`
	first := w.must(http.StatusOK, "PATCH", path+"/messages/x", patched, "Idempotency-Key", "k1").Body.String()
	whole := w.must(http.StatusOK, "PUT", path+"/messages", array(ui("u", "user", text("c"))), "Idempotency-Key", "k2").Body.String()
	for _, again := range []answer{
		w.must(http.StatusOK, "PATCH", path+"/messages/x", patched, "Idempotency-Key", "k1"), // x is in no view any more
		w.must(http.StatusOK, "PUT", path+"/messages", array(ui("u", "user", text("c"))), "Idempotency-Key", "k2"),
	} {
		if body := again.Body.String(); again.Header().Get("Idempotent-Replayed") != "true" || body != first && body != whole {
			t.Errorf("%v %s", again.Header(), body)
		}
	}
	w.must(http.StatusUnprocessableEntity, "PUT", path+"/messages", array(ui("u", "user", text("d"))), "Idempotency-Key", "k2")
	w.shows(path, session.AISDK, ui("u", "user", text("c")))
}

// TestSupersededMessagesAreExportedAndImported: with their marks, so that the view is the same.
func TestSupersededMessagesAreExportedAndImported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"format":"anthropic"}`)
	send := func(n int) {
		w.must(http.StatusOK, "PUT", path+"/messages", fmt.Sprintf(`{"messages":[{"role":"system","content":"day %d"},%s,{"role":"assistant","content":"answer %d"}],"client_ids":["s","u","a%d"]}`, n, user("x"), n, n))
	}
	send(1)
	send(2)
	exported := w.must(http.StatusOK, "GET", path+"/export", "").Body.String()
	other := newWorld(t)
	if got := other.must(http.StatusCreated, "POST", "/v1/imports", exported); !strings.Contains(got.Body.String(), `"rejected":0`) {
		t.Fatal(got.Body)
	}
	if again := other.must(http.StatusOK, "GET", path+"/export", "").Body.String(); again != exported || strings.Count(exported, `"superseded_by":`) != 3 {
		t.Errorf("exported again it is\n%s\nnot\n%s", again, exported)
	}
	if a, b := w.read(path, session.Anthropic, ""), other.read(path, session.Anthropic, ""); fmt.Sprintf("%s %s", a.System, a.Messages) != fmt.Sprintf("%s %s", b.System, b.Messages) {
		t.Errorf("the view is %s %s, not %s %s", b.System, b.Messages, a.System, a.Messages)
	}
	for _, of := range []*world{w, other} {
		of.verified()
	}
}

// TestAReplacementBesideAppendsAndCompactions sends whole arrays while others append and a worker compacts. Every array
// is in the log as it was sent; a view that no compaction has touched is an array with what was appended behind it; and
// what the database counts is what its log has.
func TestAReplacementBesideAppendsAndCompactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"format":"openai-chat","window_tokens":6000}`)
	history := turn("openai-chat", 0, 3, 1500)
	w.put(path, history...)
	var group sync.WaitGroup
	group.Go(func() {
		for n := range 12 {
			w.ask("POST", path+"/messages", batch("openai-chat", turn("openai-chat", 100+n, 2, 1500)...))
		}
	})
	group.Go(func() {
		for range 6 {
			w.ask("POST", path+"/compact?wait=5", "")
		}
	})
	random := rand.New(rand.NewPCG(7, 7))
	for n := range 12 {
		kept := random.IntN(len(history) + 1)
		history = append(history[:kept:kept], turn("openai-chat", n, 1+random.IntN(3), 1500)...)
		if got := w.ask("PUT", path+"/messages", array(history...)); got.Code != http.StatusOK && got.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
	group.Wait()
	w.put(path, history...)
	var live []string
	for _, m := range w.log(path) {
		if m.RemovedAt == nil {
			live = append(live, string(m.Message))
		}
	}
	if diff := cmp.Diff(history, live); diff != "" {
		t.Errorf("the log is not what was sent:\n%s", diff)
	}
	w.must(http.StatusOK, "POST", path+"/compact?wait=20", "")
	v := w.read(path, session.OpenAIChat, "")
	var last json.RawMessage
	if bodies := v.bodies(); len(bodies) > 0 {
		last = bodies[len(bodies)-1]
	}
	if string(last) != history[len(history)-1] {
		t.Errorf("the view ends with %s, not with %s", last, history[len(history)-1])
	}
	w.verified()
}

// verified holds everything that is stored of session s to its log.
func (w *world) verified() {
	w.Helper()
	at := session.Address{Tenant: w.tenant, ID: "s"}
	found, err := w.admin.Session(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	v := verify.Verifier{Store: w.admin}
	report, err := v.Session(w.Context(), session.Key{Tenant: at.Tenant, Key: found.Key})
	if err != nil || len(report.Findings) > 0 {
		w.Errorf("%+v, %v", report.Findings, err)
	}
}
