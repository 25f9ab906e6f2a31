package api_test

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/importer"
)

// corpus returns the folder of recorded conversations, "" if this machine has no such folder.
func corpus() string {
	folder := os.Getenv("VARVE_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(folder); err != nil {
		return ""
	}
	return folder
}

// longSessions returns the three largest recordings of Claude Code.
func longSessions(t *testing.T) []string {
	t.Helper()
	if corpus() == "" {
		return nil
	}
	all, err := filepath.Glob(filepath.Join(corpus(), "claude-code", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, file := range all {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		sizes[file] = info.Size()
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(sizes[b], sizes[a]) })
	return all[:min(3, len(all))]
}

func TestARunOfARecordedSessionDoesWhatItsPreviewSaid(t *testing.T) {
	t.Parallel()
	files := longSessions(t)
	if len(files) == 0 {
		t.Skip("there are no recorded conversations on this machine")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":400000}`)
			w.load("s", file)
			w.work()
			w.previewAndCompact(`{"trigger":0.3,"target":0.15}`)
			w.previewAndCompact(`{"profile":"llm-proxy","trigger":0.3,"target":0.05}`)
			w.previewAndCompact("")
		})
	}
}

// load appends the first conversation of a file to a session.
func (w *world) load(id, file string) {
	w.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	read, err := importer.Read(context.Background(), id, data, importer.Auto)
	if err != nil {
		w.Fatal(err)
	}
	conversation := read.Conversations[0]
	for rest := conversation.Messages; len(rest) > 0; {
		n := min(len(rest), 100)
		var body bytes.Buffer
		body.WriteString(`{"format":"` + string(conversation.Format) + `","messages":[`)
		for i, m := range rest[:n] {
			if i > 0 {
				body.WriteByte(',')
			}
			body.Write(m.Body)
		}
		body.WriteString(`]}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", body.String())
		rest = rest[n:]
	}
}
