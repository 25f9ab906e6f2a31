package terminal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/terminal"
)

func TestLinesAreCutToAWidth(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"äöü": "äöü", "äöüa": "äö…", "": ""} {
		if got := terminal.Cut(in, 3); got != want {
			t.Errorf("Cut(%q, 3) is %q, want %q", in, got, want)
		}
	}
	if diff := cmp.Diff("one two\nthree", terminal.Fold("one two  three", 8)); diff != "" {
		t.Errorf("Fold (-want +got):\n%s", diff)
	}
}

func TestNumbersHaveSeparators(t *testing.T) {
	t.Parallel()
	for in, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -999: "-999", -1000: "-1,000"} {
		if got := terminal.Thousands(in); got != want {
			t.Errorf("Thousands(%d) is %q, want %q", in, got, want)
		}
	}
	for in, want := range map[int]string{0: "0 lines", 1: "1 line", 2000: "2,000 lines"} {
		if got := terminal.Count(in, "line"); got != want {
			t.Errorf("Count(%d) is %q, want %q", in, got, want)
		}
	}
}

func TestAShellReadsArgumentsBack(t *testing.T) {
	t.Parallel()
	want := `varve import 'it'\''s here.jsonl' ''`
	if got := terminal.ShellLine("varve", "import", "it's here.jsonl", ""); got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
}
