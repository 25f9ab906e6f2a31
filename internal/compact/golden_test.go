package compact

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// TestGoldenSessions compacts the sessions of testdata: session.json and messages.jsonl give view.jsonl and plan.json.
// Whoever changes them changes the bytes of stored checkpoints and raises EngineVersion.
func TestGoldenSessions(t *testing.T) {
	t.Parallel()
	sessions, err := filepath.Glob("testdata/*/session.json")
	if err != nil || len(sessions) == 0 {
		t.Fatalf("no sessions in testdata: %v", err)
	}
	for _, path := range sessions {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			in := goldenInput(t, dir)
			plan, made := compacted(t, in)
			var view bytes.Buffer
			array := append(append([]byte{'['}, made.Body...), ']')
			for message := range rawjson.Elements(array, 0) {
				view.Write(message.Of(array))
				view.WriteByte('\n')
			}
			document, err := json.MarshalIndent(plan, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join(dir, "view.jsonl"), view.Bytes())
			golden(t, filepath.Join(dir, "plan.json"), append(document, '\n'))
		})
	}
}

func goldenInput(t *testing.T, dir string) Input {
	t.Helper()
	var about struct {
		Format       session.Format  `json:"format"`
		WindowTokens int             `json:"window_tokens"`
		Policy       json.RawMessage `json:"policy"`
	}
	if err := json.Unmarshal(contents(t, filepath.Join(dir, "session.json")), &about); err != nil {
		t.Fatal(err)
	}
	policy, err := policy.Parse(about.Policy)
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Format: about.Format, Policy: policy, WindowTokens: about.WindowTokens}
	for body := range bytes.Lines(contents(t, filepath.Join(dir, "messages.jsonl"))) {
		body = bytes.TrimSuffix(body, []byte("\n"))
		found, err := wire.Inspect(about.Format, body)
		if err != nil {
			t.Fatal(err)
		}
		in.Tail = append(in.Tail, Entry{Seq: int64(len(in.Tail) + 1), Tokens: found.Tokens, Body: body})
	}
	return in
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(contents(t, path)), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", path, diff)
	}
}
