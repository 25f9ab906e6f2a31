package compact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

var aRef = session.NewResultRef(9_000_000_000, 12, [32]byte{0xab, 0xcd})

// TestALineIsShort: no line is longer, as JSON, than the least that head and tail may keep, so that it is a step down from
// them, whatever names and previews there are.
func TestALineIsShort(t *testing.T) {
	t.Parallel()
	pieces := map[string]string{
		"plain": "abcdefghi ", "wide": "漢字かな", "characters of four bytes": "😀", "quoted": `"\`, "control characters": "\x01\x02", "not UTF-8": "\xff\xfe",
	}
	for _, profile := range Profiles() {
		p := mustProfile(profile)
		w, err := wordsOf(&p.Wording)
		if err != nil {
			t.Fatal(err)
		}
		for name, piece := range pieces {
			long := strings.Repeat(piece, 200)
			for _, do := range []Do{Stub, Stale, Placeholder, Clear} {
				t.Run(fmt.Sprintf("%s of %s, %s", do, name, profile), func(t *testing.T) {
					t.Parallel()
					v := values{do: do, ref: aRef, tool: long, resource: long, preview: previewOf([]byte(long)), seq: 9_000_000_000}
					line := w.appendLine([]byte("before"), v)[len("before"):]
					if n := rawjson.QuotedLen(line); n > 2*policyMinimum {
						t.Errorf("%d bytes: %s", n, line)
					}
					if strings.Contains(p.Wording.Placeholder, "{ref}") && do == Placeholder && !strings.Contains(string(line), aRef.String()) {
						t.Errorf("the ref is gone: %s", line)
					}
				})
			}
		}
	}
}
