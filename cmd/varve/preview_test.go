package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
)

const previewAnswer = `{"from":"log","through_seq":61,"tokens_before":15168,"tokens_after":7000,"would_change":true,"due":false,
	"reason":"15168 tokens are sent, the trigger is 16000: not due yet",
	"stages":[{"stage":"cap","entered":false},{"stage":"trim","entered":true,"actions":2,"tokens_saved":8168}],
	"actions":[
		{"seq":3,"part":0,"do":"bookend","tool":"Read","reason":"12000 tokens came after it: 600 characters of head and tail stay","tokens_before":1000,"tokens_after":300},
		{"seq":5,"part":1,"do":"placeholder","tool":"Bash","reason":"11000 tokens came after it","tokens_before":7500,"tokens_after":32},
		{"seq":7,"last_seq":9,"part":0,"do":"summarise","reason":"older than the kept turns\u001b[2J","tokens_before":10,"tokens_after":10}],
	"report":{"messages_total":61,"messages_compacted":2,"view_tokens_before":15168,"tokens_saved":8168,"kept_prefix":{"tokens":40,"share":0.00571},"failed_open":[],"overflow_risk":null}}`

func TestAPreviewIsAPlanThatFitsATerminal(t *testing.T) {
	t.Parallel()
	api := clienttest.Of(t, answer(previewAnswer))
	plan, err := client.PreviewSession.Call(t.Context(), api, "s")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writePlan(&out, &plan.Value, "s", 2, 80); err != nil {
		t.Fatal(err)
	}
	want := `session s: 15,168 → 7,000 tokens in the view (8,168 fewer, 54 %), from the log,
through message 61
15168 tokens are sent, the trigger is 16000: not due yet
2 of 61 messages changed; the first 40 tokens stay as they are (1 % of the view)

  STAGE  PARTS  TOKENS SAVED
   trim      2         8,168

PART  TOOL  ACTION       BEFORE → AFTER  REASON
5.1   Bash  placeholder  7,500 → 32      11000 tokens came after it
3.0   Read  bookend      1,000 → 300     12000 tokens came after it: 600 charac…
and 1 more: --all shows them
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := writePlan(&out, &plan.Value, "s", 10, 60); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if utf8.RuneCountInString(line) > 60 || strings.ContainsRune(line, '\x1b') {
			t.Errorf("line %q", line)
		}
	}
	if !strings.Contains(out.String(), "7–9 ") {
		t.Errorf("no range of messages in\n%s", &out)
	}
}

func TestAPreviewAsksForThePolicyThatItIsGiven(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"target":0.3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, command := range map[string]previewCommand{
		`/v1/sessions/s/preview {}`:                                           {},
		`/v1/sessions/s/preview {"policy":{"target":0.3},"from":"log"}`:       {Policy: command.Policy{Policy: file}, From: "log"},
		`/v1/sessions/s/preview {"policy":{"target":0.2}}`:                    {Policy: command.Policy{Policy: `{"target":0.2}`}},
		`/v1/sessions/s/preview?actions=all {"policy":{"profile":"codelia"}}`: {Policy: command.Policy{Profile: "codelia"}, All: true},
	} {
		asked := ""
		api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = r.URL.String() + " " + string(body)
			fmt.Fprint(w, previewAnswer)
		})
		command.Session = "s"
		output(t, api, config.Client{JSON: true}, &command)
		if asked != want {
			t.Errorf("asked %s, want %s", asked, want)
		}
	}
	if err := os.WriteFile(file, []byte(`{"target":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&command.Policy{Policy: file}).Document(); err == nil || !strings.Contains(err.Error(), "is not JSON") {
		t.Errorf("half a document: %v", err)
	}
}
