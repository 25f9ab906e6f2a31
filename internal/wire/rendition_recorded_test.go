package wire_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/wire"
)

// TestOtherRenditionsOfRecordedConversationsHaveAnotherVersion does what TestOtherRenditionsHaveAnotherVersion does with
// the recorded conversations, where the folder has the files whose renditions were written down.
func TestOtherRenditionsOfRecordedConversationsHaveAnotherVersion(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("renders all recorded conversations")
	}
	const file = "testdata/recorded_renditions.txt"
	dir := wire.RecordedDir()
	read, _, err := compacttest.Recorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(read) == 0 {
		t.Log("no recorded conversations: set VARVE_DATA to a folder of them")
		return
	}
	files := digestOfFiles(t, dir)
	if want, _ := os.ReadFile(file); !*wire.Update && !strings.Contains(string(want), files) {
		t.Logf("the files below %s are not those whose renditions were written down", dir)
		return
	}
	messages, renditions := sha256.New(), sha256.New()
	for i := range read {
		view := make([]wire.Stored, len(read[i].Messages))
		for j, body := range read[i].Messages {
			view[j] = wire.Stored{Format: read[i].Format, Body: body, Seq: int64(j + 1)}
			fmt.Fprintf(messages, "%s %s\n", read[i].Format, body)
		}
		wire.AddRenditions(renditions, view)
	}
	wire.CheckDigest(t, file, files+" "+hex.EncodeToString(messages.Sum(nil)), renditions)
}

// digestOfFiles returns a digest of the contents of all files below a folder, in the order of their names.
func digestOfFiles(t *testing.T, dir string) string {
	t.Helper()
	digest := sha256.New()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		fmt.Fprintf(digest, "%s %d\n%s", path, len(data), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(digest.Sum(nil))
}
