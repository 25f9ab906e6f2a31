package summary

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSentencesEndAtTheStopsOfTheirScript(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"One. Two! Three?":                                            {"One.", "Two!", "Three?"},
		"See main.go, e.g. line 3.14 of it. Done":                     {"See main.go, e.g. line 3.14 of it.", "Done"},
		"(It works.) \"Good.\" Next":                                  {"(It works.)", "\"Good.\"", "Next"},
		"端口是 5433。不要修改！为什么？好":                                         {"端口是 5433。", "不要修改！", "为什么？", "好"},
		"「必ず確認。」次へ":                                                   {"「必ず確認。」", "次へ"},
		"काम पूरा हुआ। अगला":                                          {"काम पूरा हुआ।", "अगला"},
		"# Title\n\n- one\n* two\n3. three\n| a | b |\n---\n> quoted": {"Title", "one", "two", "three", "a | b |", "quoted"},
		"before\n```go\nx := 1. Y\n```\nafter":                        {"before", "after"},
		"- [ ] a box":                                                 {"[ ] a box"},
		" \n...\n":                                                    nil,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, slices.Collect(sentences(text))); diff != "" {
				t.Errorf("sentences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClipCutsBetweenWordsAndOnlyOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"the port is 54331": "the port is…",
		"the port is":       "the port is",
		"端口是五四三三三三三三三三三三三三":     "端口是五四三三三三三三三…",
		"averyverylongwordhere": "averyverylon…",
	} {
		got := clip(text, 12)
		if got != want {
			t.Errorf("clip(%q) = %q, want %q", text, got, want)
		}
		if again := clip(got, 12); again != got {
			t.Errorf("clipped again it is %q, was %q", again, got)
		}
	}
}
