package main

const excerptCode = `// Package excerpt shows the lines of a text around those that match, each line once.
package excerpt

// Window is a half-open range of lines, counted from 0.
type Window struct{ From, To int }

// Windows are the ranges of around lines before and after each match in a text of n lines. Matches come in order;
// ranges that touch or overlap are one.
func Windows(n, around int, matches []int) []Window {
	var windows []Window
	for _, m := range matches {
		w := Window{From: max(0, m-around), To: min(n, m+around)}
		if last := len(windows) - 1; last >= 0 && w.From < windows[last].To {
			windows[last].To = w.To
			continue
		}
		windows = append(windows, w)
	}
	return windows
}
`

const excerptTest = `package excerpt

import (
	"fmt"
	"testing"
)

// TestEveryMatchIsShownOnce tries all pairs of matches in a short text.
func TestEveryMatchIsShownOnce(t *testing.T) {
	t.Parallel()
	const n = 12
	for around := range 3 {
		for a := range n {
			for b := a; b < n; b++ {
				check(t, n, around, []int{a, b})
			}
		}
	}
}

func check(t *testing.T, n, around int, matches []int) {
	t.Helper()
	windows := Windows(n, around, matches)
	shown := make([]int, n)
	for i, w := range windows {
		if i > 0 && w.From <= windows[i-1].To {
			t.Errorf("around %d of %v: %v and %v are two, but touch", around, matches, windows[i-1], w)
		}
		for line := w.From; line < w.To; line++ {
			shown[line]++
		}
	}
	for line := range shown {
		want := 0
		for _, m := range matches {
			if line >= m-around && line <= m+around {
				want = 1
			}
		}
		if shown[line] != want {
			t.Errorf("around %d of %v: line %d is shown %d times, want %d (%s)", around, matches, line, shown[line], want, fmt.Sprint(windows))
		}
	}
}
`

const excerptOrderTest = `
func TestMatchesMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	check(t, 12, 1, []int{9, 2})
	check(t, 12, 2, []int{5, 3, 4})
}
`

// findAFailingTest begins with a test that fails for two reasons, of which the first hides the second.
func findAFailingTest(s *story) error {
	for name, text := range map[string]string{"internal/excerpt/excerpt.go": excerptCode, "internal/excerpt/excerpt_test.go": excerptTest} {
		if err := s.work.write(name, text); err != nil {
			return err
		}
	}
	s.said.system = agentPrompt
	s.user("The test of internal/excerpt fails since yesterday. Please find out why, and fix the code, not the test.")
	s.mustFail("I run it first.", shell("go test ./internal/excerpt", "Run the failing test"))
	s.assistant("That is a lot of failures. I read the code and its test.", read("internal/excerpt/excerpt.go"), read("internal/excerpt/excerpt_test.go"))
	s.until(36_000,
		question{"How do others here treat ranges: half-open, or with both ends?", `half-open|[Ff]rom.*[Tt]o\b`, ".go"},
		question{"And where are lines counted, from 0 or from 1?", `[Ll]ines?\b.*(offset|from 1|\+ ?1)`, ".go"},
	)
	s.mustFail("I make it say what it computes before I guess.", edit("internal/excerpt/excerpt.go", "\t\twindows = append(windows, w)\n", "\t\tprintln(\"debug\", n, around, m, w.From, w.To)\n\t\twindows = append(windows, w)\n"),
		shell("go test ./internal/excerpt 2>&1 | grep -c debug; go test -v ./internal/excerpt 2>&1 | head -n 400; exit 1", "Run with the debug lines"))
	s.assistant("With around 0 a window is empty: From is m and To is m as well. The range is half-open, so its end has to be m+around+1.", read("internal/excerpt/excerpt.go"),
		edit("internal/excerpt/excerpt.go", "min(n, m+around)", "min(n, m+around+1)"))
	s.mustFail("Is that all?", shell("go test ./internal/excerpt 2>&1 | grep -v debug; exit 1", "Run again"))
	s.user("Fewer, but it still fails. What is left?")
	s.assistant("What is left are windows that touch. I look at how the merging elsewhere compares.", search(`<= .*\.(To|End)|>= .*\.(From|Start)`, ".go"), read("internal/excerpt/excerpt.go"))
	s.until(66_000,
		question{"Spans of bytes have the same problem: how is it solved there?", `Span|Start|End\b`, ".go"},
		question{"Who pages, and what does the end of a page look like?", `next_|has_more|[Ll]imit\b`, ".go"},
		question{"Are there properties in tests that would have found it?", `rapid\.|testing\.F\b|Fuzz`, ".go"},
	)
	s.mustPass("Two that touch must become one, so the comparison needs the equal sign; and the debug line goes.",
		edit("internal/excerpt/excerpt.go", "w.From < windows[last].To", "w.From <= windows[last].To"), edit("internal/excerpt/excerpt.go", "\t\tprintln(\"debug\", n, around, m, w.From, w.To)\n", ""),
		shell("gofmt -l internal/excerpt; go vet ./internal/excerpt && go test ./internal/excerpt", "Vet and test"))
	s.user("Good. Callers will not always have their matches in order. Can it take them in any order? Add a test for it. And please check in the same way the other code here that depends on an order of its input.")
	s.mustFail("The test first.", shell("cat >> internal/excerpt/excerpt_test.go <<'END'\n"+excerptOrderTest+"END\n", "Append a test"), shell("go test ./internal/excerpt", "See it fail"))
	s.until(97_000,
		question{"Who sorts, and who relies on it?", `slices\.Sort|sort\.|ORDER BY`, ".go"},
		question{"What do the comments say about order?", `in order|[Oo]rdered|sorted`, ".go"},
		question{"Order in the database.", `PRIMARY KEY|INDEX|ORDER BY`, ".sql"},
		question{"What is compared with its predecessor?", `\[i ?- ?1\]|last(Seq)?\b`, ".go"},
	)
	s.mustPass("I sort a copy: a function should not change what it was given.", read("internal/excerpt/excerpt.go"),
		edit("internal/excerpt/excerpt.go", "package excerpt\n", "package excerpt\n\nimport \"slices\"\n"),
		edit("internal/excerpt/excerpt.go", "for _, m := range matches {", "for _, m := range slices.Sorted(slices.Values(matches)) {"),
		edit("internal/excerpt/excerpt.go", "Matches come in order;\n", "Matches may come in any order;\n"),
		shell("gofmt -l internal/excerpt; go vet ./internal/excerpt && go test -v ./internal/excerpt", "Vet and test"))
	s.user("Then finish with a round over the fast tests of the other packages, and a short list of functions that you would test in this way: all small inputs, one property.")
	s.assistant("The tests of the pure packages.", shell("go test -v ./internal/rawjson ./internal/session ./internal/zframe 2>&1 | head -n 500", "Fast tests, all cases shown"))
	s.until(126_000,
		question{"Pure functions that take and return plain values.", `^func [a-z][A-Za-z]*\([a-z, ]+ (int|string|\[\]byte)`, ".go"},
		question{"Arithmetic with both ends.", `min\(|max\(`, ".go"},
		question{"Slices of slices.", `\[[a-zA-Z.]*:[a-zA-Z.]+\]`, ".go"},
		question{"What is tested by tables today?", `tests := |range \[\]struct|name string`, ".go"},
		question{"And in the documents: what is promised about ranges?", `range|offset|seq`, ".md"},
	)
	s.mustPass("A last look, and a last run.", read("internal/excerpt/excerpt.go"), read("internal/excerpt/excerpt_test.go"), shell("go test -count=1 ./internal/excerpt", "Test"))
	s.assistant("Done. The test failed for two reasons: the window's end left out the last line, and windows that touch were not joined. It also takes matches in any order now. I would test in the same way what cuts pages, what splices spans, and what leaves out the oldest messages to fit a bound.")
	return s.failure
}
