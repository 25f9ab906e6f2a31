package compact

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// beside is what programs keep beside the content of a message and of its parts: outputs as long as the results.
var beside = strings.Repeat("raw output that nobody counted ", 40)

// TestWhatAViewSendsIsWhatItSays compares the tokens of all texts that a view sends, wherever they stand, with what it
// counts: for conversations that programs recorded and for ones made here, each message of which has long
// texts beside its content. The views are of the log and of checkpoints, under every profile.
func TestWhatAViewSendsIsWhatItSays(t *testing.T) {
	t.Parallel()
	read := recorded(t)
	for _, f := range session.Formats() {
		bodies := compacttest.Session(rand.New(rand.NewPCG(15, 6)), f, compacttest.Options{Messages: 40, ResultTokens: 300})
		read = append(read, compacttest.Conversation{ID: "made of " + string(f), Format: f, Messages: bodies, Tokens: inspected(t, f, bodies)})
	}
	for _, c := range read {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			log := make([]wire.Stored, len(c.Messages))
			for i, body := range c.Messages {
				log[i] = wire.Stored{Format: c.Format, Body: withBeside(t, c.Format, body), Seq: int64(i + 1)}
			}
			sendsWhatItSays(t, c.Format, log)
			for _, profile := range policy.Profiles() {
				if made := compactedLog(t, &c, log, profile); made != nil {
					sendsWhatItSays(t, c.Format, made)
				}
			}
		})
	}
}

func inspected(t *testing.T, f session.Format, bodies [][]byte) (list []int) {
	t.Helper()
	for _, body := range bodies {
		m, err := wire.Inspect(f, body)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m.Tokens)
	}
	return list
}

// withBeside returns a message with a member that its provider does not know, and each of its parts with one. An item
// that is no message is counted as a whole, if nobody knows its type.
func withBeside(t *testing.T, f session.Format, body []byte) []byte {
	t.Helper()
	found, err := wire.Inspect(f, body)
	if err != nil {
		t.Fatal(err)
	}
	if f == session.OpenAIResponses && len(found.Parts) == 1 && found.Parts[0].Kind == wire.Opaque {
		return body
	}
	var message map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&message); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"content", "parts", "tool_calls"} {
		list, _ := message[name].([]any)
		for _, each := range list {
			part, ok := each.(map[string]any)
			if kind, _ := part["type"].(string); ok && !(f == session.AISDK && opaqueUI[kind]) {
				part["extra"] = beside
			}
		}
	}
	message["extra"] = map[string]any{"raw_output": beside}
	made, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// opaqueUI are parts of a UIMessage that are counted as a whole.
var opaqueUI = map[string]bool{"step-start": true, "source-url": true, "source-document": true}

// compactedLog returns the view after a compaction of a log for half of its tokens, nil if nothing was to be done.
func compactedLog(t *testing.T, c *compacttest.Conversation, log []wire.Stored, profile string) (view []wire.Stored) {
	t.Helper()
	chosen, err := policy.Profile(profile)
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Format: c.Format, Policy: chosen, WindowTokens: 1 + c.Total()/2}
	for i, m := range log {
		in.Tail = append(in.Tail, Divide(c.Format, Entry{Seq: m.Seq, Tokens: c.Tokens[i], Body: m.Body})...)
	}
	_, made, err := Run(context.Background(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if made.Through == 0 {
		return nil
	}
	array := append(append([]byte{'['}, made.Body...), ']')
	for element := range rawjson.Elements(array, 0) {
		view = append(view, wire.Stored{Format: c.Format, Body: element.Of(array)})
	}
	return append(view, log[made.Through:]...)
}

func sendsWhatItSays(t *testing.T, f session.Format, view []wire.Stored) {
	t.Helper()
	said, sent := 0, 0
	for _, m := range view {
		found, err := wire.Inspect(f, m.Body)
		if err != nil {
			t.Fatal(err)
		}
		said += found.Tokens
	}
	for _, body := range wiretest.Render(f, view, wire.Options{}).Bodies {
		if bytes.Contains(body, []byte(beside[:len("raw output that")])) {
			t.Errorf("%.200s has what stood beside the content", body)
		}
		sent += sentTexts(t, body)
	}
	const names = 40 // of members, types and ids, in a message
	if limit := said*5/4 + names*len(view); sent > limit {
		t.Errorf("%d tokens are sent, the view says %d", sent, said)
	}
}

// sentTexts returns the tokens of the texts in a message. What has no words is an image, a signature, or encrypted.
func sentTexts(t *testing.T, body []byte) int {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	return tokensIn(value)
}

func tokensIn(value any) (found int) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			found += tokensIn(member)
		}
	case []any:
		for _, element := range v {
			found += tokensIn(element)
		}
	case string:
		if len(v) < 200 || strings.ContainsAny(v, " \n") {
			found = tokens.Estimate([]byte(v))
		}
	}
	return found
}
