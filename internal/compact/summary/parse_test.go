package summary_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/summary"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		text   string
		retain bool
		want   summary.Answer
		ok     bool
	}{
		{"both sections", "<retain>\n a \n</retain>\n<summary> b </summary>", true, summary.Answer{Retain: "a", Summary: "b"}, true},
		{"tags in any case", "<RETAIN>a</Retain><Summary>b</SUMMARY>", true, summary.Answer{Retain: "a", Summary: "b"}, true},
		{"the first pair counts", "<summary>a</summary><summary>b</summary>", true, summary.Answer{Summary: "a"}, true},
		{"no tags at all", " plain words ", true, summary.Answer{Summary: "plain words"}, true},
		{"a summary that is not closed", "<retain>a</retain><summary>b", true, summary.Answer{Retain: "a", Summary: "b"}, true},
		{"an empty summary gives way to what stands outside", "<summary> </summary>c<retain>a</retain>", true, summary.Answer{Retain: "a", Summary: "c"}, true},
		{"retained facts nobody asked for are left out", "<retain>a</retain>rest", false, summary.Answer{Summary: "rest"}, true},
		{"only retained facts", "<retain>a</retain>", true, summary.Answer{Retain: "a"}, true},
		{"only retained facts nobody asked for", "<retain>a</retain>", false, summary.Answer{}, false},
		{"nothing", " \n\ufeff ", true, summary.Answer{}, false},
		{"a long s is no s", "<ſummary>a</ſummary>", true, summary.Answer{Summary: "<ſummary>a</ſummary>"}, true},
		{"letters that grow in lower case move no index", "ȺȺ<summary>Ⱥ</summary>", true, summary.Answer{Summary: "Ⱥ"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := summary.Parse(tt.text, tt.retain)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
				t.Errorf("Parse: %t, want %t (-want +got):\n%s", ok, tt.ok, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "<retain>a</retain><summary>b</summary>", "<summary><summary></SUMMARY>", "<retain><retain>x</retain>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, ok := summary.Parse(text, true)
		if ok != (a.Retain+a.Summary != "") {
			t.Errorf("%+v: %t", a, ok)
		}
		for _, part := range []string{a.Retain, a.Summary} {
			if len(part) > len(text) || part != strings.TrimSpace(part) {
				t.Errorf("%q is longer than the text or not trimmed", part)
			}
		}
		if !strings.Contains(text, a.Retain) {
			t.Errorf("%q is not in the text", a.Retain)
		}
		if b, _ := summary.Parse("<summary>"+a.Summary+"</summary>", true); !strings.Contains(strings.ToLower(a.Summary), "summary>") && b.Summary != a.Summary {
			t.Errorf("%q parsed again is %q", a.Summary, b.Summary)
		}
	})
}

func TestMergeKeepsRetainedFacts(t *testing.T) {
	t.Parallel()
	previous := summary.Answer{Retain: "- the port is 5433\n  on every host\n- never push", Summary: "old", Flags: []string{"a"}}
	next := summary.Answer{Retain: "- never push\n\na paragraph\nof two lines\n12. the last", Summary: "new", Flags: []string{"a", "b"}}
	want := summary.Answer{
		Retain:  "- the port is 5433\n  on every host\n- never push\na paragraph\nof two lines\n12. the last",
		Summary: "new", Flags: []string{"a", "b"},
	}
	if diff := cmp.Diff(want, summary.Merge(previous, next, 0)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if got := summary.Merge(previous, summary.Answer{Retain: "- x"}, 0); got.Summary != "old" {
		t.Errorf("summary %q, want that of before", got.Summary)
	}
}

func TestTheOldestRetainedFactsAreDroppedFirst(t *testing.T) {
	t.Parallel()
	merged := summary.Answer{}
	for _, fact := range []string{"- alpha", "- beta", "- gamma", "- delta"} {
		merged = summary.Merge(merged, summary.Answer{Retain: fact}, 9)
	}
	if !strings.HasSuffix(merged.Retain, "- delta") || strings.Contains(merged.Retain, "alpha") {
		t.Errorf("retained %q", merged.Retain)
	}
}
