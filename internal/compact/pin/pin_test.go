package pin_test

import (
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/compact/pin"
)

func TestFind(t *testing.T) {
	t.Parallel()
	f := pin.New([]string{`(?i)^rule \d+:`, `INC-[0-9]{4}`})
	for text, want := range map[string][]string{
		"":                                      nil,
		"nothing to keep":                       nil,
		"a [[pin]] never push \n[[/pin]] b":     {"never push"},
		"[[pin]]one[[/pin]][[pin]]two[[/pin]]":  {"one", "two"},
		"[[pin]]one[[/pin]] [[pin]]one[[/pin]]": {"one"},
		"[[pin]] no end":                        nil,
		"[[pin]]  [[/pin]]":                     nil,
		"x\nRule 1: no force push\r\ny":         {"Rule 1: no force push"},
		"see INC-0042, and INC-0043\nand INC-1": {"see INC-0042, and INC-0043"},
		"规则 [[pin]]不要推送到主分支。[[/pin]]":           {"不要推送到主分支。"},
	} {
		if found := f.Find(text, true, true); !slices.Equal(found, want) {
			t.Errorf("%q pins %q, want %q", text, found, want)
		}
	}
}

func TestFindOnlyWhatCounts(t *testing.T) {
	t.Parallel()
	const text = "[[pin]]one[[/pin]]\nRule 1"
	f := pin.New([]string{"Rule"})
	if found := f.Find(text, false, true); !slices.Equal(found, []string{"Rule 1"}) {
		t.Errorf("without markers %q", found)
	}
	if found := f.Find(text, true, false); !slices.Equal(found, []string{"one"}) {
		t.Errorf("without patterns %q", found)
	}
}
