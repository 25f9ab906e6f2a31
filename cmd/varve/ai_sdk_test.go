package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// unlikeOthers is a message of the kinds of parts that generated ones have not.
const unlikeOthers = `{"id":"m","metadata":{"model":"x"},"role":"assistant","parts":[{"type":"text","text":"First."},{"type":"step-start"},
{"type":"reasoning","text":"Hm.","providerMetadata":{"anthropic":{"signature":"c2ln"}}},{"type":"text","text":"I look."},
{"type":"tool-read","toolCallId":"a","state":"output-error","input":{"path":"f"},"errorText":"no such file"},
{"type":"tool-search","toolCallId":"b","state":"output-available","input":{"q":"x"},"output":{"hits":[1,2]},"providerExecuted":true},
{"type":"source-url","sourceId":"s","url":"https://a.b/c"},{"type":"step-start"},{"type":"data-progress","data":{"done":1}},
{"type":"step-start"},{"type":"step-start"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="},
{"type":"dynamic-tool","toolName":"edit","toolCallId":"c","state":"output-available","input":{},"output":"done","callProviderMetadata":{"google":{"thoughtSignature":"c2ln"}}},
{"type":"step-start"},{"type":"text","text":"Done.","state":"done"},{"type":"step-start"}]}`

// TestTheAISDKSendsTheSameForAMessageAndForItsSteps installs the AI SDK from npm and runs test/ai-sdk with it.
func TestTheAISDKSendsTheSameForAMessageAndForItsSteps(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("installs three versions of the AI SDK")
	}
	type message struct {
		Whole json.RawMessage   `json:"whole"`
		Steps []json.RawMessage `json:"steps"`
	}
	bodies := [][]byte{[]byte(unlikeOthers)}
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 9))
		bodies = append(bodies, compacttest.Session(rng, session.AISDK, compacttest.Options{Messages: 10, Steps: 12})...)
	}
	var messages []message
	for _, body := range bodies {
		m := message{Whole: body}
		for _, step := range wire.Steps(session.AISDK, body) {
			m.Steps = append(m.Steps, step)
		}
		if m.Steps != nil {
			messages = append(messages, m)
		}
	}
	if len(messages) < 10 || string(messages[0].Whole) != unlikeOthers {
		t.Fatalf("%d messages are divided, the first of them %s", len(messages), messages[0].Whole)
	}
	text, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	dir := installed(t, "test/ai-sdk")
	if err := os.WriteFile(filepath.Join(dir, "messages.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	nodeTest(t, dir)
}
