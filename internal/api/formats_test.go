package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
	"github.com/varve-dev/varve/internal/zframe"
)

// renderedView is a view with what is said about it.
type renderedView struct {
	view
	Degraded bool
	Repairs  []wire.Repair

	ToolNames map[string]string `json:"tool_names"`
}

func (v renderedView) kinds() (kinds []string) {
	for _, r := range v.Repairs {
		kinds = append(kinds, fmt.Sprint(r.Kind, " ", r.Seq))
	}
	return kinds
}

// read reads a view, and wants it to be one that its provider takes.
func (w *world) read(path string, f session.Format, query string) renderedView {
	w.Helper()
	v := decoded[renderedView](w.must(http.StatusOK, "GET", path+"/context?"+query, ""))
	if v.Format == nil || *v.Format != f {
		w.Errorf("the view is of format %v, want %s", v.Format, f)
	}
	for _, violation := range wiretest.Validate(f, v.bodies(), wire.Options{}) {
		w.Errorf("%s as %s: message %d breaks %s: %s\n%s", path, f, violation.Message, violation.Rule, violation.Detail, v.Messages)
	}
	return v
}

func strs(bodies [][]byte) (list []string) {
	for _, body := range bodies {
		list = append(list, string(body))
	}
	return list
}

// last returns a message of the user.
func last(f session.Format) string { return string(wire.UserMessage(f, []byte(`"go on"`))) }

func TestAnAppendInAnotherFormatIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, "")
	call := ` {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":{"a" : 1}}]} `
	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"seen"},{"type":"text","text":"and?"}]}`
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user("a")))
	w.must(http.StatusCreated, "POST", path+"/messages", batch("anthropic", call, result))
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-responses", `{"type":"message","role":"user","content":"b"}`))
	var log struct {
		Data []struct {
			Format  string
			Message json.RawMessage
		}
	}
	w.must(http.StatusOK, "GET", path+"/messages", "").into(&log)
	if log.Data[1].Format != "anthropic" || string(log.Data[1].Message) != strings.TrimSpace(call) || log.Data[3].Format != "openai-responses" {
		t.Errorf("the log is %+v", log.Data)
	}
	v := w.read(path, session.OpenAIChat, "")
	want := []string{
		user("a"),
		`{"role":"assistant","content":null,"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"look","arguments":"{\"a\" : 1}"}}]}`,
		`{"role":"tool","tool_call_id":"toolu_1","content":"seen"}`,
		`{"role":"user","content":"and?"}`,
		`{"role":"user","content":"b"}`,
	}
	if diff := cmp.Diff(want, strs(v.bodies())); diff != "" || len(v.Repairs) > 0 {
		t.Errorf("(-want +got):\n%s repairs %v", diff, v.Repairs)
	}
	for _, f := range session.Formats() {
		w.read(path, f, "format="+string(f))
	}
}

func TestWhatAProviderWouldRefuseIsRepairedAndListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"format":"anthropic"}`)
	w.must(http.StatusCreated, "POST", path+"/messages", batch("anthropic",
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
		`{"role":"user","content":"never mind"}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"orphan"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":""},{"type":"tool_use","id":"b.c","name":"f","input":{}},{"type":"tool_use","id":"open","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b.c","content":"x"}]}`))
	v := w.read(path, session.Anthropic, "")
	want := []string{"empty_text 4", "orphan_result 3", "result_synthesized 1", "call_renamed 4", "call_renamed 5", "first_user 0"}
	if diff := cmp.Diff(want, v.kinds()); diff != "" {
		t.Errorf("repairs (-want +got):\n%s", diff)
	}
	if dropped := w.read(path, session.Anthropic, "pending=drop"); strings.Contains(fmt.Sprintf("%s", dropped.Messages), `"open"`) {
		t.Errorf("a dropped call is in %s", dropped.Messages)
	}
	if made := w.read(path, session.Anthropic, "pending=synthesize"); !strings.Contains(fmt.Sprintf("%s", made.Messages), "not there yet") {
		t.Errorf("no result says that it is not there yet: %s", made.Messages)
	}
	full := decoded[renderedView](w.must(http.StatusOK, "GET", path+"/context?view=full", ""))
	if len(full.Messages) != 5 || full.Repairs != nil {
		t.Errorf("the raw log has %d messages and repairs %v", len(full.Messages), full.Repairs)
	}
	w.must(http.StatusUnprocessableEntity, "GET", path+"/context?pending=maybe", "")
}

func TestAViewInAnotherFormatHasAnETagOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, "")
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user("a")))
	tags := map[string]string{}
	for _, query := range []string{"", "format=anthropic", "format=gemini", "pending=drop", "model=m", "view=full", "view=full&format=gemini"} {
		tag := w.must(http.StatusOK, "GET", path+"/context?"+query, "").Header().Get("ETag")
		if other, taken := tags[tag]; taken {
			t.Errorf("%q has the ETag of %q", query, other)
		}
		tags[tag] = query
		w.must(http.StatusNotModified, "GET", path+"/context?"+query, "", "If-None-Match", tag)
	}
}

func TestABrokenCheckpointIsNotServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var path string
	w.whileWorking(func() { path = w.compacted("openai-chat") })
	newest := decoded[struct{ Data []session.CheckpointRecord }](w.must(http.StatusOK, "GET", path+"/checkpoints", "")).Data[0]
	w.exec(`CREATE TABLE whole AS SELECT n, body, body_digest FROM checkpoints`)
	// What no digest covers may be readable, and no JSON.
	w.exec(fmt.Sprintf(`UPDATE checkpoints SET body_digest = NULL, body = '\x%x' WHERE n = %d`, zframe.Compress(make([]byte, newest.BodyBytes)), newest.N))
	v := w.read(path, session.OpenAIChat, "pending=drop")
	if !v.Degraded || v.Checkpoint >= newest.N {
		t.Errorf("degraded %v, checkpoint %d; the newest is %d", v.Degraded, v.Checkpoint, newest.N)
	}
	w.exec(`UPDATE checkpoints c SET body = o.body, body_digest = o.body_digest FROM whole o WHERE o.n = c.n`)
	good := w.read(path, session.OpenAIChat, "format=openai-chat&pending=drop")
	if good.Degraded || good.Checkpoint != newest.N || len(v.Messages) < len(good.Messages) {
		t.Errorf("mended: degraded %v, checkpoint %d with %d messages; degraded it had %d", good.Degraded, good.Checkpoint, len(good.Messages), len(v.Messages))
	}
}

// TestAMixedSessionIsCompacted appends turn after turn in one format after another.
func TestAMixedSessionIsCompacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for _, own := range session.Formats() {
		path := "/v1/sessions/" + string(own)
		w.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"format":%q,"window_tokens":10000000}`, own))
		for n, f := range append(session.Formats(), session.Formats()...) {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			said := strs(compacttest.Session(rng, f, compacttest.Options{Messages: 12, ResultTokens: 300}))
			w.must(http.StatusCreated, "POST", path+"/messages", batch(string(f), append(said, last(f))...))
		}
		whole := w.read(path, own, "")
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
		run := decoded[session.Run](w.must(http.StatusOK, "POST", path+"/compact?wait=60", ""))
		if run.State != session.RunDone && run.State != session.RunUnchanged { // the new window may have had it compacted already
			t.Fatalf("%s: the compaction is %s: %v", own, run.State, run.Error)
		}
		for _, f := range session.Formats() {
			v := w.read(path, f, "format="+string(f))
			if v.Checkpoint == 0 || v.Degraded || v.Tokens >= whole.Tokens {
				t.Errorf("%s as %s: checkpoint %d, degraded %v, %d of %d tokens", own, f, v.Checkpoint, v.Degraded, v.Tokens, whole.Tokens)
			}
		}
	}
}

func TestTheWholeLogInAnotherFormatIsTheSameAfterACompaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	path := w.compacted("openai-chat")
	whole := w.must(http.StatusOK, "GET", path+"/context?view=full&format=gemini", "")
	w.must(http.StatusNotModified, "GET", path+"/context?view=full&format=gemini", "", "If-None-Match", whole.Header().Get("ETag"))
}
