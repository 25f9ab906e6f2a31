package compacttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/varve-dev/varve/internal/session"
)

func TestRecordedReadsWhatTheImporterReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"index.json":       `{}`,
		"chats/a.json":     `[{"role":"user","content":"Hello."},{"role":"assistant","content":"Hi."}]`,
		"other/notes.json": `{"notes":[1,2,3]}`,
		"chats/README.md":  `[]`,
		"flat.jsonl":       `{"role":"user","content":"Flat."}` + "\n",
		"cut.json":         `{"messages":[`,
		"odd.jsonl":        "\x00\n1\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	read, unread, err := Recorded(link)
	if err != nil {
		t.Fatal(err)
	}
	want := []Conversation{{Set: "chats", ID: "a", Format: session.OpenAIChat, Messages: [][]byte{
		[]byte(`{"role":"user","content":"Hello."}`), []byte(`{"role":"assistant","content":"Hi."}`),
	}}, {Set: "flat.jsonl", ID: "flat", Format: session.OpenAIChat, Messages: [][]byte{[]byte(`{"role":"user","content":"Flat."}`)}}}
	if diff := cmp.Diff(want, read, cmpopts.IgnoreFields(Conversation{}, "Tokens")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"cut.json", "index.json", "odd.jsonl", filepath.Join("other", "notes.json")}, unread); diff != "" {
		t.Error(diff)
	}
	if len(read) == 2 && (len(read[0].Tokens) != 2 || read[0].Total() != read[0].Tokens[0]+read[0].Tokens[1]) {
		t.Errorf("tokens %v, %d in all", read[0].Tokens, read[0].Total())
	}
}

func TestAFolderThatIsNotThereHasNoConversations(t *testing.T) {
	t.Parallel()
	read, unread, err := Recorded(filepath.Join(t.TempDir(), "none"))
	if err != nil || len(read)+len(unread) > 0 {
		t.Errorf("read %d, unread %d, %v", len(read), len(unread), err)
	}
}
