package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestTheQuickstartsAgentReadsBackWhatWasTrimmed runs samples/agent/agent.mjs against varve up and a model that reads a
// file until a compaction has trimmed it, and then asks for the trimmed text by its reference.
func TestTheQuickstartsAgentReadsBackWhatWasTrimmed(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skipf("the quickstart's agent is not run: %v", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "large.txt")
	text := strings.Repeat("a line of a file that an agent reads\n", 1500)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(&readingModel{file: file})
	defer model.Close()
	u, _ := shareUp(t)
	agent := exec.CommandContext(t.Context(), node, filepath.Join("..", "..", "samples", "agent", "agent.mjs"), "Read the file.")
	agent.Env = append(os.Environ(), "VARVE_URL="+u.url, "VARVE_KEY="+u.key, "OPENAI_BASE_URL="+model.URL+"/v1", "OPENAI_API_KEY=none")
	var stderr bytes.Buffer
	agent.Stderr = &stderr
	out, err := agent.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	if want := fmt.Sprintf("%d characters\n", len(text)); string(out) != want {
		t.Errorf("the agent read back %q, not %q", out, want)
	}
}

// TestTheQuickstartShowsTheSamplesLoop holds docs/quickstart.md to the program.
func TestTheQuickstartShowsTheSamplesLoop(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(filepath.Join("..", "..", "samples", "agent", "agent.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "quickstart.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, loop, _ := strings.Cut(string(program), "// quickstart: begin\n")
	loop, _, _ = strings.Cut(loop, "// quickstart: end")
	if loop == "" || !strings.Contains(string(page), "```js\n"+loop+"```") {
		t.Error("docs/quickstart.md does not show the loop of samples/agent/agent.mjs")
	}
	if lines := strings.Count(loop, "\n"); lines > 20 {
		t.Errorf("the loop has %d lines; the page promises 20", lines)
	}
}

// readingModel answers as Chat Completions does: it reads its file until it sees a reference, reads that back as each
// answer says, and reports how long the text was.
type readingModel struct {
	file string
	read int // bytes of the result so far
}

var more = regexp.MustCompile(`\[There is more: read_result (\{.*\})\]$`)

var referenced = regexp.MustCompile(`(?:read_result|Its largest results:) (r\d+\.\d+-[0-9a-f]{4})`)

func (m *readingModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct {
			Role       string `json:"role"`
			ToolCallID string `json:"tool_call_id"`
			Content    string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) > 200 {
		http.Error(w, fmt.Sprintf("%d messages, %v", len(request.Messages), err), http.StatusBadRequest)
		return
	}
	last := request.Messages[len(request.Messages)-1]
	message := map[string]any{"role": "assistant", "content": nil}
	ref := ""
	for _, previous := range request.Messages {
		if found := referenced.FindStringSubmatch(previous.Content); found != nil {
			ref = found[1]
		}
	}
	switch {
	case strings.HasPrefix(last.ToolCallID, "back"):
		_, content, _ := session.ParsePassage([]byte(last.Content))
		m.read += len(content)
		message["content"] = fmt.Sprintf("%d characters", m.read)
		if next := more.FindStringSubmatch(last.Content); next != nil {
			var with map[string]any
			if err := json.Unmarshal([]byte(next[1]), &with); err != nil {
				panic(http.ErrAbortHandler)
			}
			message["tool_calls"] = []any{callOf(last.ToolCallID+"+", "read_result", with)}
		}
	case ref != "":
		message["tool_calls"] = []any{callOf("back", "read_result", map[string]any{"ref": ref})}
	default:
		id := fmt.Sprintf("call_%d", len(request.Messages))
		message["tool_calls"] = []any{callOf(id, "read_file", map[string]any{"path": m.file})}
	}
	answer := map[string]any{
		"choices": []any{map[string]any{"message": message}},
		"usage":   map[string]int{"prompt_tokens": int(r.ContentLength) / 4},
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func callOf(id, name string, arguments map[string]any) map[string]any {
	encoded, _ := json.Marshal(arguments)
	return map[string]any{"id": id, "type": "function", "function": map[string]string{"name": name, "arguments": string(encoded)}}
}
