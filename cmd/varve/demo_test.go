package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/samples"
)

// row is a line of the demonstration's table: session, messages, tokens before, after, saved percents.
var row = regexp.MustCompile(`(?m)^ *(\S+) +([0-9,]+) +([0-9,]+) +([0-9,]+) +([0-9]+) % +([0-9]+) +([0-9]+) +[0-9.]+ *$`)

// likeTheReadme requires that README.md shows a line of the table as it is, within a hundredth.
func likeTheReadme(t *testing.T, got []string) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range row.FindAllStringSubmatch(string(readme), -1) {
		if shown[1] != got[1] {
			continue
		}
		for _, column := range []int{2, 3, 4} { // messages, tokens before and after
			now, errNow := strconv.Atoi(strings.ReplaceAll(got[column], ",", ""))
			then, errThen := strconv.Atoi(strings.ReplaceAll(shown[column], ",", ""))
			if errNow != nil || errThen != nil || now*100 < then*99 || now*100 > then*101 {
				t.Errorf("README.md shows %s of %s, which is %s now", shown[column], got[1], got[column])
			}
		}
		return
	}
	t.Errorf("README.md does not show %s", got[1])
}

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
		flags  []string
	}{ // the second removes what the first left, and stays up until it is told to stop
		{"without a model. ", nil, nil},
		{"by gpt-5-mini (3 calls, ", append(model[:2:2], "OPENAI_API_KEY=sk-hush"), []string{"--console"}},
	} {
		writer, env := with.writer, with.env
		command := program(t.Context(), append([]string{"demo", "--data", data}, with.flags...)...)
		command.Env = append(command.Environ(), env...)
		out, err := outputOf(t, command)
		if want := "have become summaries, written " + writer; !strings.Contains(out, want) || strings.Contains(out, "hush") {
			t.Errorf("want %q:\n%s", want, out)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		rows := row.FindAllStringSubmatch(out, -1)
		if len(rows) != 3 {
			t.Fatalf("%d rows of long sessions, want 3:\n%s", len(rows), out)
		}
		for _, r := range rows {
			if saved, err := strconv.Atoi(r[5]); err != nil || saved < 50 {
				t.Errorf("%s saved %s %%, want 50 at least", r[1], r[5])
			}
			if with.env == nil {
				likeTheReadme(t, r)
			}
		}
		if !strings.Contains(out, "All verified.") {
			t.Errorf("no word of a verification:\n%s", out)
		}
	}
}

// outputOf runs a demonstration and returns what it prints. If that has a link to the console, it is followed, and then
// the program is told to stop.
func outputOf(t *testing.T, command *exec.Cmd) (string, error) {
	t.Helper()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	command.Stdout, command.Stderr = w, w
	err = command.Start()
	_ = w.Close() // the program has its own
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if link := regexp.MustCompile(`http://\S+/console/once/\S+`).FindString(lines.Text()); link != "" {
			if page := follow(t, link); !strings.Contains(page, "add-a-limit") {
				t.Errorf("the link to the console leads to %s", page)
			}
			if err := command.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	return text.String(), command.Wait()
}

// follow signs in by a link, and returns the list of sessions.
func follow(t *testing.T, link string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	visitor := &http.Client{Jar: jar}
	page := ""
	for _, at := range []string{link, link[:strings.Index(link, "/console")] + "/console/sessions"} {
		got, err := visitor.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		page = string(body)
	}
	return page
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
