package readback_test

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/readback"
)

func grep(t *testing.T, text string, want readback.GrepWanted, bytes int64) *protocol.Matches {
	t.Helper()
	got, err := readback.GrepContent(t.Context(), persist.ContentOf([]byte(text)), want, bytes)
	if err != nil {
		t.Fatalf("%+v: %v", want, err)
	}
	return got
}

func TestMatchesHaveTheLinesAroundThemOnce(t *testing.T) {
	t.Parallel()
	text := "one\ntwo x\nthree\nfour\nfive x\nsix\nseven\neight\nnine\nten X\n"
	got := grep(t, text, readback.GrepWanted{Pattern: "x", Before: 1, After: 2}, 0)
	want := []protocol.MatchGroup{{
		Ref: "r1.0-0000", Line: 1, Matches: []protocol.Match{{Line: 2, CharOffset: 4}, {Line: 5, CharOffset: 5}, {Line: 6, CharOffset: 2}},
		Content: "     1-one\n     2:two x\n     3-three\n     4-four\n     5:five x\n     6:six\n     7-seven\n     8-eight\n",
	}}
	if diff := cmp.Diff(want, got.Groups); diff != "" {
		t.Error(diff)
	}
	got = grep(t, text, readback.GrepWanted{Pattern: "X", IgnoreCase: true, After: 1}, 0)
	if got.Matches != 4 || len(got.Groups) != 3 || got.Truncated || got.Groups[2].Content != "    10:ten X\n" {
		t.Errorf("%+v", got)
	}
	if got = grep(t, text, readback.GrepWanted{Pattern: "absent"}, 0); got.Matches != 0 || got.Note == "" || got.Groups == nil || got.ScannedBytes != int64(len(text)) {
		t.Errorf("%+v", got)
	}
}

func TestALongLineIsShownAroundItsMatch(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("é", 100_000) + "needle" + strings.Repeat("ü", 100_000) + "\nnext"
	got := grep(t, text, readback.GrepWanted{Pattern: "needle", After: 1}, 0)
	if got.Matches != 1 || got.Groups[0].Matches[0] != (protocol.Match{Line: 1, CharOffset: 100_000}) {
		t.Fatalf("%+v", got)
	}
	content := got.Groups[0].Content
	if !strings.Contains(content, "…é") || !strings.Contains(content, "éneedleü") || !strings.HasSuffix(content, "ü…\n     2-next\n") || !utf8.ValidString(content) || len(content) > 500 {
		t.Errorf("%q", content)
	}
}

func TestAGrepSaysWhyItStopped(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a needle\n", 100)
	if got := grep(t, text, readback.GrepWanted{Pattern: "needle", MaxMatches: 100}, 0); got.Truncated || got.NextCursor != nil || got.Matches != 100 {
		t.Errorf("all matches: %+v", got)
	}
	if got := grep(t, text, readback.GrepWanted{Pattern: "needle", MaxMatches: 99}, 0); got.StoppedBy != "max_matches" || got.NextCursor == nil || got.Matches != 99 {
		t.Errorf("one match too many: %+v", got)
	}
	if got := grep(t, text, readback.GrepWanted{Pattern: "needle", MaxMatches: 99, MaxBytes: 100}, 0); got.StoppedBy != "max_bytes" || len(got.Groups[0].Content) > 100 {
		t.Errorf("bytes: %+v", got)
	}
	if got := grep(t, text, readback.GrepWanted{Pattern: "n..dle", Regex: true}, 100); got.StoppedBy != "budget" || got.ScannedBytes > 100 || got.Matches != 11 {
		t.Errorf("budget: %+v", got)
	}
}

// TestAGrepFindsWhatANaiveScanFinds greps random texts for random patterns, and continues until the end.
func TestAGrepFindsWhatANaiveScanFinds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	patterns := []string{"ö", "ord 7", "7", "é€", "😀 aé", "end", "absent", "W", "d 12", "€😀 aé€😀 a"}
	for range 200 {
		text := randomText(r)
		want := readback.GrepWanted{
			Pattern: patterns[r.IntN(len(patterns))], Regex: r.IntN(3) == 0, IgnoreCase: r.IntN(3) == 0, MaxMatches: 1 + r.IntN(500), MaxBytes: 4000 + r.IntN(50_000),
		}
		checkGrep(t, text, want, int64(1+r.IntN(200_000)))
	}
}

// checkGrep greps a text to its end and compares.
func checkGrep(t *testing.T, text []byte, want readback.GrepWanted, budget int64) {
	t.Helper()
	of := persist.ContentOf(text)
	var found []protocol.Match
	for calls := 0; ; calls++ {
		got, err := readback.GrepContent(t.Context(), of, want, budget)
		if err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		for _, g := range got.Groups {
			found = append(found, g.Matches...)
		}
		if got.NextCursor == nil {
			break
		}
		if *got.NextCursor == want.Cursor || calls > 100_000 {
			t.Fatalf("no progress after %d calls: %+v", calls, got)
		}
		want.Cursor = *got.NextCursor
	}
	if diff := cmp.Diff(naive(text, want), found); diff != "" {
		t.Fatalf("%+v in %d bytes: %s", want, len(text), diff)
	}
}

// naive looks line by line, and in long lines piece by piece.
func naive(text []byte, want readback.GrepWanted) (found []protocol.Match) {
	pattern := want.Pattern
	if !want.Regex {
		pattern = regexp.QuoteMeta(pattern)
	}
	if want.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	expression := regexp.MustCompile(pattern)
	n := int64(0)
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSuffix(line, []byte{'\n'})
		for start, first := 0, true; first || start < len(line); first = false {
			end := min(start+readback.MaxSegment, len(line))
			for end < len(line) && !utf8.RuneStart(line[end]) {
				end--
			}
			searched := line[start:end]
			if !want.Regex {
				searched = line[start:]
			}
			if at := expression.FindIndex(searched); at != nil && start+at[0] < max(end, 1) {
				found = append(found, protocol.Match{Line: n, CharOffset: int64(utf8.RuneCount(line[:start+at[0]]))})
			}
			start = end
		}
	}
	return found
}

// TestALiteralIsFoundAcrossPiecesOfALine has it once, across the end of a piece and across the end of a chunk.
func TestALiteralIsFoundAcrossPiecesOfALine(t *testing.T) {
	t.Parallel()
	for _, at := range []int{readback.MaxSegment - 3, 2*readback.MaxSegment - 3, persist.ChunkBytes - 1} {
		text := strings.Repeat("x", at) + "needle" + strings.Repeat("y", 300_000)
		for _, ignore := range []bool{false, true} {
			got := grep(t, text, readback.GrepWanted{Pattern: "needle", IgnoreCase: ignore}, 0)
			if got.Matches != 1 || got.Groups[0].Matches[0].CharOffset != int64(at) {
				t.Errorf("at %d: %+v", at, got)
			}
		}
	}
}

// FuzzGrep looks for any pattern in any text.
func FuzzGrep(f *testing.F) {
	f.Add([]byte("a needle\nin a haystack\n"), "ne+dle", true, false, 10)
	f.Add([]byte("ÄÖÜ\näöü"), "ö", false, true, 1)
	f.Add([]byte(strings.Repeat("aa", 70_000)), "a{3}$", true, false, 70_000)
	f.Fuzz(func(t *testing.T, text []byte, pattern string, regex, ignore bool, budget int) {
		want := readback.GrepWanted{Pattern: pattern, Regex: regex, IgnoreCase: ignore, MaxMatches: readback.MaxMatches, MaxBytes: readback.MaxBytes}
		of := persist.ContentOf(text)
		began := time.Now()
		_, err := readback.GrepContent(t.Context(), of, want, 0)
		if spent := time.Since(began); spent > time.Minute { // a call has 250 ms; the rest is for a busy machine
			t.Fatalf("%q took %s", pattern, spent)
		}
		if err != nil || !utf8.Valid(text) || ignore && !regex || len(text) > 300_000 {
			return
		}
		checkGrep(t, text, want, int64(max(budget, len(text)/20+1)))
	})
}

// TestTheCostliestPatternsAreRefusedOrBounded has the patterns of a measurement of Go's regular expressions: the costliest
// needed 12 seconds for a MiB.
func TestTheCostliestPatternsAreRefusedOrBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(strings.Repeat("a", 1<<16)+"\n"+strings.Repeat("aaaa aaa\n", 5000), 20)
	for pattern, refused := range map[string]bool{
		"literal": false, "(?i)a|b|c": false, "(.*a){25}b": false, "(?:a?){100}a{100}b": true, "(?:a{0,100}){10}b": true,
		strings.Repeat("(a*)*", 30) + "b": false, strings.Repeat("a", 513): true, "(": true, `\C`: true, "a{1001}": true, "((((((a{9}){9}){9}){9}){9}){9}){9}": true,
	} {
		got, err := readback.GrepContent(t.Context(), persist.ContentOf([]byte(text)), readback.GrepWanted{Pattern: pattern, Regex: true}, 0)
		if refused != (err != nil) {
			t.Errorf("%.40s: %v, refused: %v", pattern, err, refused)
		}
		if err == nil && got.NextCursor == nil && got.ScannedBytes < int64(len(text)) {
			t.Errorf("%.40s: %d bytes of %d, and no cursor", pattern, got.ScannedBytes, len(text))
		}
		if pattern == "(.*a){25}b" && got.StoppedBy != "budget" { // a second for a MiB, and there are two
			t.Errorf("%s looked at %d bytes, and its budget did not stop it", pattern, got.ScannedBytes)
		}
	}
}
