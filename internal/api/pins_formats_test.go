package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// pinnable are messages with every kind of part that has a text.
var pinnable = []wire.Stored{
	{Format: session.OpenAIChat, Seq: 1, Body: []byte(user("Look.\\n\\tDo \\\"not\\\" push 推 <b>"))},
	{Format: session.OpenAIChat, Seq: 2, Body: []byte(`{"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"Read","arguments":"{\"path\": \"x/y.go\"}"}},{"id":"b","type":"function","function":{"name":"Read","arguments":"{\"path\":\"z\"}"}}]}`)},
	{Format: session.OpenAIChat, Seq: 3, Body: []byte(`{"role":"tool","tool_call_id":"a","content":"port 5433\n\n{\"a\": 1}"}`)},
	{Format: session.OpenAIChat, Seq: 4, Body: []byte(`{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`)},
	{Format: session.OpenAIChat, Seq: 5, Body: []byte(`{"role":"assistant","content":"The port is 5433."}`)},
}

// TestWhateverIsPinnedHasAView pins each part and each message of logs of every format, in sessions of every format, and
// wants a valid view that has all of it.
func TestWhateverIsPinnedHasAView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, of := range session.Formats() {
		log, err := wire.Translate(t.Context(), of, pinnable)
		if err != nil {
			t.Fatal(err)
		}
		bodies := make([][]byte, len(log))
		for i := range log {
			bodies[i] = log[i].Body
		}
		for _, in := range session.Formats() {
			if testing.Short() && in != of && in != session.Anthropic {
				continue
			}
			name := fmt.Sprintf("%s-in-%s", of, in)
			path := "/v1/sessions/" + name
			w.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"format":%q,"window_tokens":4000}`, in))
			w.must(http.StatusCreated, "POST", path+"/messages", fmt.Sprintf(`{"format":%q,"messages":[%s]}`, of, bytes.Join(bodies, []byte(","))))
			w.pinAll(path, len(bodies))
			tail := ""
			for i := range 4 {
				tail += fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"t%d","type":"function","function":{"name":"Read","arguments":"{}"}}]},`, i) +
					fmt.Sprintf(`{"role":"tool","tool_call_id":"t%d","content":"%d%s"},`, i, i, strings.Repeat("and more ", 800)) + user("go on") + ","
			}
			w.must(http.StatusCreated, "POST", path+"/messages", `{"format":"openai-chat","messages":[`+tail+user("last")+`]}`)
			for _, policy := range []string{`{}`, `{"summarise":{"enabled":false}}`, `{"summarise":{"enabled":false},"truncate":{"enabled":false}}`} {
				got := w.ask("POST", path+"/preview", `{"policy":`+policy+`}`)
				if got.Code != http.StatusOK || !decoded[protocol.Preview](got).WouldChange {
					t.Errorf("%s, %s: %.400s", name, policy, got.Body)
				}
			}
		}
	}
}

// pinAll pins each message of a session, and each of its parts that has a text.
func (w *world) pinAll(path string, messages int) {
	w.Helper()
	pinned := 0
	for n := range messages {
		w.must(http.StatusOK, "PUT", fmt.Sprintf("%s/pins/m%d", path, n+1), "")
		for part := range 12 {
			if got := w.ask("PUT", fmt.Sprintf("%s/pins/m%d.%d", path, n+1, part), ""); got.Code == http.StatusOK {
				pinned++
			}
		}
	}
	if pinned < 7 {
		w.Errorf("%s: only %d parts can be pinned", path, pinned)
	}
}
