package resource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPathsOfACall(t *testing.T) {
	t.Parallel()
	patch := `*** Begin Patch\n*** Update File: src/a.go\n*** Move to: src/b.go\n@@\n-x\n+*** Add File: no.go\n*** Delete File: c.go\r\n*** End Patch`
	for _, c := range []struct {
		operation, arguments string
		want                 []string
	}{
		{"file_read", `{"file_path":" /r//a/../b.go ","limit":3}`, []string{"/r/b.go"}},
		{"file_read", `{"path":".\\src\\x.go","uri":"file:///y.go"}`, []string{"/y.go", "src/x.go"}},
		{"file_read", `{"paths":["b","a","./a"],"files":[{"path":"c"},7]}`, []string{"a", "b", "c"}},
		{"file_read", `{"path":"/","file":".","filename":"  "}`, nil},
		{"file_write", `{"notebook_path":"n.ipynb","new_source":"path"}`, []string{"n.ipynb"}},
		{"file_write", `{"edits":[{"filePath":"a"},{"filePath":"b"}]}`, []string{"a", "b"}},
		{"file_write", `{"input":"` + patch + `"}`, []string{"c.go", "src/a.go", "src/b.go"}},
		{"file_write", `{"command":["apply_patch","` + patch + `"]}`, []string{"c.go", "src/a.go", "src/b.go"}},
		{"file_write", strings.ReplaceAll(strings.ReplaceAll(patch, `\n`, "\n"), `\r`, "\r"), []string{"c.go", "src/a.go", "src/b.go"}},
		{"file_write", `{"diff":"--- a/x.go\t2026\n+++ b/x.go\n-- y\n+++ z\n--- /dev/null\n+++ b/new.go\n"}`, []string{"new.go", "x.go"}},
		{"file_write", `{"path":"doc.md","content":"*** Update File: x.go"}`, []string{"doc.md"}},
		{"command_execution", `{"command":"cat a","path":"a"}`, nil},
		{"file_read", `no object`, nil},
	} {
		if diff := cmp.Diff(c.want, Paths(c.operation, []byte(c.arguments)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Paths(%s, %s) (-want +got):\n%s", c.operation, c.arguments, diff)
		}
	}
}

func TestACallForTooManyFilesHasNoPaths(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{maxPaths: maxPaths, maxPaths + 1: 0} {
		var list strings.Builder
		for i := range n {
			fmt.Fprintf(&list, `,"d%d/x.go"`, i)
		}
		arguments := `{"paths":["d0/x.go"` + list.String() + `]}`
		if got := len(Paths("file_read", []byte(arguments))); got != want {
			t.Errorf("of %d files %d are named, want %d", n, got, want)
		}
	}
}
