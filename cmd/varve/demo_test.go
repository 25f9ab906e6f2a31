package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/samples"
)

// row is a line of the demonstration's table: session, messages, tokens before, after, saved percents.
var row = regexp.MustCompile(`(?m)^ *(\S+) +([0-9,]+) +([0-9,]+) +([0-9,]+) +([0-9]+) % +([0-9]+) +([0-9]+) +[0-9.]+ *$`)

func TestDemoSavesHalfOfItsSamplesAndVerifiesAllOfIt(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	provider := fake.New(fake.Options{Key: "sk-hush"})
	if err := provider.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	model := modelAt(provider)
	for _, with := range []struct {
		writer string
		env    []string
	}{ // the second removes what the first left
		{"without a model. ", nil},
		{"by gpt-5-mini (3 calls, ", append(model[:2:2], "OPENAI_API_KEY=sk-hush")},
	} {
		writer, env := with.writer, with.env
		command := program(t.Context(), "demo", "--data", data)
		command.Env = append(command.Environ(), env...)
		out, err := command.CombinedOutput()
		if want := "have become summaries, written " + writer; !strings.Contains(string(out), want) || strings.Contains(string(out), "hush") {
			t.Errorf("want %q:\n%s", want, out)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		rows := row.FindAllStringSubmatch(string(out), -1)
		if len(rows) != 3 {
			t.Fatalf("%d rows of long sessions, want 3:\n%s", len(rows), out)
		}
		for _, r := range rows {
			if saved, err := strconv.Atoi(r[5]); err != nil || saved < 50 {
				t.Errorf("%s saved %s %%, want 50 at least", r[1], r[5])
			}
		}
		if !strings.Contains(string(out), "All verified.") {
			t.Errorf("no word of a verification:\n%s", out)
		}
	}
}

// modelAt returns the settings of a demonstration whose summaries a provider writes, without the key.
func modelAt(provider *fake.Server) []string {
	return []string{"OPENAI_BASE_URL=" + provider.URL() + "/v1", "VARVE_LLM_ALLOW_PRIVATE=true"}
}

// TestDemoWithFilesNamesWhatItCannotRead shows a file of which a line is bad, beside one that is missing, with a model
// that refuses.
func TestDemoWithFilesNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	provider := fake.New(fake.Options{Key: "sk-hush"})
	if err := provider.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	dir := t.TempDir()
	sample, err := samples.Files.ReadFile("add-a-limit.openai-chat.json")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"long.json": string(sample),
		"lines.jsonl": `{"type":"user","uuid":"1","message":{"role":"user","content":"hi"}}
{"type":"user","uuid":"2",
{"type":"assistant","uuid":"3","message":{"role":"assistant","content":[{"type":"text","text":"hello"}]}}
`,
	}
	args := []string{"demo", "--data", filepath.Join(dir, "data")}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	command := program(t.Context(), append(args, filepath.Join(dir, "missing.json"))...)
	command.Env = append(command.Environ(), modelAt(provider)...)
	out, err := command.CombinedOutput()
	if err == nil {
		t.Error("it ends well without one of its files")
	}
	for _, want := range []string{
		"lines.jsonl: line 2: not JSON", "missing.json", "All verified.",
		"without gpt-5-mini: the model has failed: gpt-5-mini: the provider does not take the request: status 401",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

func TestDemoRemovesNothingButDemonstrations(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	precious := filepath.Join(data, "demo", "precious")
	if err := os.MkdirAll(precious, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := emptyDemo(t.Context(), filepath.Join(data, "demo")); err == nil || !strings.Contains(err.Error(), "precious") {
		t.Errorf("emptyDemo: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}
