package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// lonely is the class of vectors whose texts hold half a character, which a Go string cannot.
const lonely = "lone_surrogate"

// documented is what docs/compatibility.md lists: ids of vectors, and the classes lone_surrogate and system/op.
type documented map[string]bool

// readDocumented reads the rows of the document's tables that begin with a name in backquotes.
func readDocumented(t *testing.T) documented {
	t.Helper()
	text, err := os.ReadFile("../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := documented{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|(.*)\\|$").FindAllStringSubmatch(string(text), -1) {
		name, cells := row[1], strings.Split(row[2], "|")
		if listed[name] {
			t.Errorf("docs/compatibility.md lists %s twice", name)
		}
		for _, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("docs/compatibility.md gives no reason for %s", name)
			}
		}
		listed[name] = true
	}
	return listed
}

// class reports whether v may differ as one of a class: what Varve does not owe may be listed by operation.
func (d documented) class(v vector) bool {
	return v.Scope != "seed" && d[v.System+"/"+v.Op]
}
