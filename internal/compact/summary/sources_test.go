package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// cutFrom returns the figures of the check of a sentence about a request, beside sentences that state nothing.
func cutFrom(t *testing.T, r summary.Request, sentence string) int {
	t.Helper()
	r.MayGrow = true
	a, err := summary.Accept(tagged("- All is well\n- It goes on\n- Nothing failed\n- "+sentence), r)
	if err != nil {
		t.Fatalf("%q: %v", sentence, err)
	}
	return a.Claims.Cut
}

// TestWhatStandsAroundTheMessagesIsASource has claims of each text that a model sees.
func TestWhatStandsAroundTheMessagesIsASource(t *testing.T) {
	t.Parallel()
	r := summary.Request{
		First: 3, Last: 3, Messages: []summary.Message{said("user", "go on")},
		Lead: []summary.Message{said("system", "The quota is 4711.")}, Tail: []summary.Message{said("user", "Use port 5433.")},
		Earlier: []string{"The build was 90125."}, Directives: []string{"Count up to 6502."}, Prompt: "At most 8080 words.",
	}
	for _, claim := range []string{"quota 4711", "port 5433", "build 90125", "up to 6502", "8080 words"} {
		if cutFrom(t, r, claim) != 0 {
			t.Errorf("%q is cut", claim)
		}
	}
	if cutFrom(t, r, "port 5434") != 1 {
		t.Error("what stands nowhere is not cut")
	}
}

// TestASourceWithEscapesIsReadWithoutThem has names that a JSON string spells with escapes, and one that only looks so.
func TestASourceWithEscapesIsReadWithoutThem(t *testing.T) {
	t.Parallel()
	escaped := `{"text":"first\nledger_key\tuser_name \u00e9tat_civil \ud83d\ude00tenant_no","dir":"C:\\new_dir"}`
	r := summary.Request{First: 1, Last: 1, Messages: []summary.Message{{Seq: 1, Role: "assistant", Parts: []summary.Part{
		{Kind: summary.Call, Tool: "write", Text: escaped},
	}}}}
	for _, name := range []string{"ledger_key", "user_name", "état_civil", "tenant_no", "new_dir"} {
		if cutFrom(t, r, name) != 0 {
			t.Errorf("%q is cut", name)
		}
	}
	if cutFrom(t, r, "edger_key") != 1 {
		t.Error("a part of a name is not cut")
	}
}

// parts returns the names of n directories from one number on.
func parts(from, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("dir", from+i)
	}
	return strings.Join(names, "/")
}

// TestALongPathIsComparedAsAWhole has paths of more pieces than are compared at once.
func TestALongPathIsComparedAsAWhole(t *testing.T) {
	t.Parallel()
	r := summary.Request{First: 1, Last: 1, Messages: []summary.Message{
		said("tool", "See "+parts(100, 40)+" first. Then "+parts(200, 16)+" and "+parts(300, 16)+" and "+parts(400, 20)),
	}}
	for path, cut := range map[string]int{
		parts(100, 16):                         0,
		parts(100, 17):                         0,
		parts(100, 40):                         0,
		parts(103, 30):                         0,
		parts(200, 16) + "/" + parts(300, 16):  1, // both are there, but not one after the other
		parts(200, 8) + "/" + parts(408, 8):    1,
		parts(100, 39) + "/dir1":               1,
		"dir1/" + parts(101, 39):               1,
		parts(100, 20) + "/" + parts(121, 19):  1,
		parts(400, 12) + "/x/" + parts(413, 7): 1,
	} {
		if got := cutFrom(t, r, path); got != cut {
			t.Errorf("%s: %d cut, want %d", path, got, cut)
		}
	}
}
