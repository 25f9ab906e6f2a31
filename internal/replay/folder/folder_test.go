package folder_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/replay/folder"
)

func TestReadFindsConversationsAndTheirTimes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/one.json":  `[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]`,
		"index.json":  `{"files":["a/one.json"]}`,
		"a/notes.txt": `no conversation`,
		"b/two.jsonl": `{"type":"user","uuid":"1","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"x"}}` +
			"\n" + `{"type":"assistant","uuid":"2","timestamp":"2026-01-02T03:05:05.500Z",` +
			`"message":{"id":"m","role":"assistant","content":[{"type":"text","text":"y"}]}}`,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	read, unread, err := folder.Read(context.Background(), link)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"index.json"}, unread); diff != "" {
		t.Error(diff)
	}
	if len(read) != 2 || read[0].Name != "a/one" || read[1].Name != "b/two" {
		t.Fatalf("the sessions are %v", read)
	}
	asked := filepath.Join(dir, folder.Questions)
	for document, fits := range map[string]bool{
		`[{"session":"a/one","question":"What does it say?","answer":"hi"}]`: true,
		`[{"session":"a/on","question":"What does it say?","answer":"hi"}]`:  false,
	} {
		if err := os.WriteFile(asked, []byte(document), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, unread, err := folder.Read(context.Background(), dir); (err == nil) != fits || fits && len(unread) != 1 {
			t.Errorf("with %s: %v, unread are %v", document, err, unread)
		}
	}
	if !read[0].Messages[1].At.IsZero() || read[0].Messages[1].Seq != 2 || read[0].Messages[0].Tokens < 1 {
		t.Errorf("the messages without times are %+v", read[0].Messages)
	}
	at := time.Date(2026, 1, 2, 3, 5, 5, 5e8, time.UTC)
	if got := read[1].Messages[1].At; !got.Equal(at) {
		t.Errorf("the second message is of %v, not of %v", got, at)
	}
}
