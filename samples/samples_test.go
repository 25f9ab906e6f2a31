package samples_test

import (
	"context"
	"io/fs"
	"regexp"
	"testing"

	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
	"github.com/varve-dev/varve/samples"
)

// machine is what a path of the machine that recorded would look like.
var machine = regexp.MustCompile(`/(root|Users|home/[a-z]+|tmp/varve-samples-[0-9]+|tmp/go-build[0-9]+)/`)

func TestSamplesAreLongValidConversations(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(samples.Files, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 {
		t.Errorf("samples are %v, want three", names)
	}
	formats := map[session.Format]int{}
	for _, name := range names {
		data, err := samples.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := importer.Read(context.Background(), name, data, importer.Auto)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Conversations) != 1 || len(f.Report.Rejected) > 0 || len(f.Report.Notes) > 0 {
			t.Errorf("%s: %d conversations, report %+v", name, len(f.Conversations), f.Report)
		}
		formats[f.Conversations[0].Format]++
		check(t, name, f.Conversations[0])
		if found := machine.Find(data); found != nil {
			t.Errorf("%s names a directory of the machine that recorded it: %s", name, found)
		}
	}
	if formats[session.OpenAIChat] == 0 || formats[session.Anthropic] == 0 {
		t.Errorf("formats %v: each should be there", formats)
	}
}

// check inspects a conversation's messages as an append does, and holds them to their provider's rules.
func check(t *testing.T, name string, c importer.Conversation) {
	t.Helper()
	tokens, results := 0, 0
	var bodies [][]byte
	for i, m := range c.Messages {
		found, err := wire.Inspect(c.Format, m.Body)
		if err != nil {
			t.Fatalf("%s, message %d: %v", name, i+1, err)
		}
		tokens += found.Tokens
		for _, p := range found.Parts {
			if p.Kind == wire.Result {
				results++
			}
		}
		bodies = append(bodies, m.Body)
	}
	if tokens <= 120_000 || results < 60 {
		t.Errorf("%s has %d tokens and %d results, too few for a long session", name, tokens, results)
	}
	for _, v := range wiretest.Validate(c.Format, bodies, wire.Options{}) {
		t.Errorf("%s: %+v", name, v)
	}
}
