package samples_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The conversations in *.json are recorded: what the assistant says and does is written down in stories/*.yaml; what
// its tools answer is what the commands really printed on a copy of this repository, shown as /repo. story_test.go has
// the form of a story and plays it, tools_test.go runs the tools, workspace_test.go copies the repository,
// encode_test.go writes the two provider formats.

var update = flag.Bool("update", false, "record the sample conversations anew")

// minTokens is what a sample must have to be called long.
const minTokens = 120_000

// TestRecord checks that each sample holds the script of its story. With -update it records the sample anew, always in
// the same directory, so that the go command finds compiled packages again.
func TestRecord(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("stories/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("stories are %v, want three: %v", files, err)
	}
	copied := filepath.Join(t.TempDir(), "repo")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			s, err := readStory(file)
			if err != nil {
				t.Fatal(err)
			}
			sample := name + "." + s.Format + ".json"
			if *update {
				record(t, s, copied, sample)
			}
			checkScript(t, s, sample)
		})
	}
}

// record plays a story on a fresh copy of the repository and writes the sample.
func record(t *testing.T, s story, copied, sample string) {
	t.Helper()
	work, err := newWorkspace(t.Context(), "..", copied)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{ctx: t.Context(), work: work, seen: map[string]int{}}
	if err := p.play(s); err != nil {
		t.Fatal(err)
	}
	if p.tokens() < minTokens {
		t.Fatalf("the conversation has %d tokens, a long one needs %d", p.tokens(), minTokens)
	}
	data, err := encoders[s.Format](s.System, p.turns)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d turns, about %d tokens, %d bytes", sample, len(p.turns), p.tokens(), len(data))
	if err := os.WriteFile(sample, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkScript reports the first text or call of a story that its sample lacks, or has in another order.
func checkScript(t *testing.T, s story, sample string) {
	t.Helper()
	data, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	script, err := scriptOf(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, scripted := range script {
		_, rest, found := bytes.Cut(data, scripted)
		if !found {
			t.Fatalf("%s does not have %s where its story has it; record it anew: make samples", sample, scripted)
		}
		data = rest
	}
}

// scriptOf returns what a story scripts, in its order and as the samples write it: the texts, and the calls with their
// arguments. What the assistant asks until a conversation is long enough depends on the recording, but for the first
// question.
func scriptOf(s story) ([][]byte, error) {
	script := []any{s.System}
	for _, step := range s.Steps {
		if said := step.User + step.Says; said != "" {
			script = append(script, said)
		}
		if len(step.Questions) > 0 {
			script = append(script, step.Questions[0].Says)
		}
		for _, c := range step.Calls {
			name, arguments, err := encodeCall(c)
			if err != nil {
				return nil, err
			}
			script = append(script, name)
			if s.Format == "anthropic" {
				script = append(script, json.RawMessage(arguments))
			} else {
				script = append(script, string(arguments))
			}
		}
	}
	texts := make([][]byte, len(script))
	for i, value := range script {
		var err error
		if texts[i], err = encode(value); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
