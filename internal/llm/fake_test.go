package llm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm/fake"

	"github.com/google/uuid"
)

// dialogues are any dialogues: with calls and results in any order, names that providers refuse, and empty texts.
var dialogues = rapid.Custom(func(t *rapid.T) summary.Dialogue {
	part := rapid.Custom(func(t *rapid.T) summary.Part {
		return summary.Part{
			Kind:   summary.PartKind(rapid.IntRange(0, int(summary.Reasoning)).Draw(t, "kind")),
			CallID: rapid.SampledFrom([]string{"a", "b", "c", "", "no id"}).Draw(t, "id"),
			Tool:   rapid.SampledFrom([]string{"read", "bash", "", "no name"}).Draw(t, "tool"),
			Text:   rapid.SampledFrom([]string{"text", `{"a":1}`, `[1]`, "", " \n"}).Draw(t, "text"),
			Failed: rapid.Bool().Draw(t, "failed"),
		}
	})
	m := rapid.Custom(func(t *rapid.T) summary.Message {
		roles := []string{"user", "assistant", "model", "tool", "system", "developer", "function", ""}
		role := rapid.SampledFrom(roles).Draw(t, "role")
		return summary.Message{Role: role, Parts: rapid.SliceOfN(part, 0, 4).Draw(t, "parts")}
	})
	return summary.Dialogue{
		System:   rapid.SampledFrom([]string{"", "Summarise."}).Draw(t, "system"),
		Messages: append(rapid.SliceOfN(m, 0, 8).Draw(t, "messages"), message("user", text("Now summarise."))),
	}
})

// faking returns a fake provider, and a model of it.
func faking(t *testing.T, p Provider) (*fake.Server, *Configured) {
	t.Helper()
	server := fake.New(fake.Options{Key: "sk-1"})
	if err := server.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	p.Key = NewKey("sk-1")
	return server, at(t, server.URL()+"/v1", p)
}

// TestAKeyInAFileIsReadAgain has a file with a key that is not valid yet, then with one that is, and then none.
func TestAKeyInAFileIsReadAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	_, m := faking(t, Provider{Kind: Anthropic, Attempts: 1, KeyFile: file})
	ask := func() error {
		_, err := m.Ask(t.Context(), uuid.Nil, summary.Dialogue{Messages: []summary.Message{message("user", text("Hi."))}})
		return err
	}
	for _, c := range []struct {
		key string
		fit bool
	}{{"sk-0", false}, {"sk-1\n", true}, {"sk-0", false}, {"not\na header", true}} {
		if err := os.WriteFile(file, []byte(c.key), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ask(); c.fit != (err == nil) {
			t.Errorf("with %q in the file: %v", c.key, err)
		}
	}
	if err := errors.Join(os.Remove(file), ask()); err != nil {
		t.Errorf("without the file: %v", err)
	}
}

// TestProvidersTakeAnyDialogue asks the fake provider, which refuses what a provider would.
func TestProvidersTakeAnyDialogue(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server, m := faking(t, Provider{Kind: kind, Attempts: 1})
			rapid.Check(t, func(t *rapid.T) {
				d := dialogues.Draw(t, "dialogue")
				reply, err := m.Ask(t.Context(), uuid.Nil, d)
				if err != nil {
					calls := server.Calls()
					t.Fatalf("%v\n%+v", err, calls[len(calls)-1])
				}
				used, bound := reply.Usage, m.Bound(d)
				if used.Input > bound.Input || used.Output > bound.Output || used.Estimated {
					t.Errorf("it used %+v, more than %+v", used, bound)
				}
			})
		})
	}
}

// TestEachFaultIsWhatItIs names what the caller learns of every fault of a provider. Those that are missing here are
// faults of the text: the caller must see them.
func TestEachFaultIsWhatItIs(t *testing.T) {
	t.Parallel()
	for fault, want := range map[fake.Fault]error{
		fake.Timeout: ErrUnavailable, fake.Drip: ErrUnavailable, fake.Limited: ErrLimited, fake.LimitedDate: ErrLimited,
		fake.LimitedBare: ErrLimited, fake.Error500: ErrUnavailable, fake.Error502: ErrUnavailable,
		fake.Error503: ErrUnavailable, fake.Error529: ErrUnavailable, fake.Reset: ErrUnavailable,
		fake.ResetWithin: ErrUnavailable, fake.InvalidJSON: ErrMalformed, fake.ErrorBody: ErrMalformed,
		fake.Empty: ErrMalformed, fake.Refusal: ErrRefused, fake.Cut: ErrCut, fake.UsageMissing: nil, "": nil,
	} {
		for _, kind := range kinds {
			t.Run(string(fault)+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				p := Provider{Kind: kind, Attempts: 1}
				if fault == fake.Timeout || fault == fake.Drip {
					p.Timeout = 0.3
				}
				server, m := faking(t, p)
				server.Script(fake.Step{Fault: fault})
				reply, err := m.Ask(t.Context(), uuid.Nil, ask)
				if !errors.Is(err, want) || reply.Usage.Estimated != (fault == fake.UsageMissing) {
					t.Errorf("%+v, %v, want %v", reply, err, want)
				}
			})
		}
	}
}
