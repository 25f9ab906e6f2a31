package summary_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/wire"
)

// recorded returns conversations of real agents, if the folder of them exists, else the project's own samples.
func recorded(t testing.TB) map[string][]summary.Message {
	t.Helper()
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json*"))
	if err == nil && len(files) == 0 {
		files, err = filepath.Glob(filepath.Join("..", "..", "..", "samples", "*.json"))
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	conversations := map[string][]summary.Message{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read, err := importer.Read(context.Background(), filepath.Base(file), raw, importer.Auto)
		var unsupported *importer.UnsupportedError
		if errors.As(err, &unsupported) {
			continue
		}
		if err != nil {
			t.Fatal(file, err)
		}
		for _, c := range read.Conversations {
			conversations[c.ID] = decoded(t, c)
		}
	}
	return conversations
}

func decoded(t testing.TB, c importer.Conversation) []summary.Message {
	t.Helper()
	messages := make([]summary.Message, len(c.Messages))
	for i, m := range c.Messages {
		inspected, err := wire.Inspect(c.Format, m.Body)
		if err != nil {
			t.Fatal(c.ID, err)
		}
		messages[i] = summary.Message{Seq: int64(i + 1), Role: inspected.Role}
		for _, p := range inspected.Parts {
			part := summary.Part{Tool: p.Name, CallID: p.CallID, Failed: p.IsError}
			switch value := m.Body[p.Value.Start:p.Value.End]; p.Kind {
			case wire.Text:
				part.Kind, part.Text = summary.Text, unquoted(value)
			case wire.Call:
				part.Kind, part.Text = summary.Call, unquoted(value)
			case wire.Result:
				part.Kind, part.Text = summary.Result, string(wire.ResultText(c.Format, m.Body, p).Text)
			case wire.Reasoning:
				part.Kind = summary.Reasoning
			}
			messages[i].Parts = append(messages[i].Parts, part)
		}
	}
	return messages
}

// unquoted returns the text of a JSON string, and any other value unchanged.
func unquoted(value []byte) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}

func textBytes(messages []summary.Message) (n int) {
	for _, m := range messages {
		for _, p := range m.Parts {
			n += len(p.Text)
		}
	}
	return n
}

func TestExtractOfRealConversationsKeepsItsBounds(t *testing.T) {
	t.Parallel()
	for id, messages := range recorded(t) {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			a := summary.Answer{}
			for from := 0; from < len(messages); from += 40 {
				r := summary.Request{
					Messages: messages[from:min(from+40, len(messages))], Previous: a.Summary, Retained: a.Retain, MaxTokens: 1_500, Retain: true,
				}
				a = summary.Extract(r)
				const few, short = 5, 2000 // so few messages or bytes may have no shorter summary
				little := len(r.Messages) <= few || textBytes(r.Messages) <= short
				if err := summary.Check(a, r); err != nil && !(errors.Is(err, summary.ErrEmpty) && little) {
					t.Fatalf("messages from %d: %v\n%s", from, err, whole(a))
				}
			}
		})
	}
}
