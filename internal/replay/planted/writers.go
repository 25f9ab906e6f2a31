package planted

import (
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/tokens"
)

// Writer writes summaries.
type Writer struct {
	Name  string
	begin func([]fact) write
	pins  bool // a caller pins the facts
}

// write returns a summary for a request, "" for none.
type write func(summary.Request) string

// The names of the writers.
const (
	Pinned         = "Extract, and the facts are pinned"
	Finder         = "a model that finds every planted fact it is shown"
	AsModel        = "a model that writes what Extract would"
	Extract        = "Extract"
	HeadAndTail    = "head and tail"
	FirstSentences = "first sentences"
)

// Writers returns all writers that are compared.
func Writers() []Writer {
	return []Writer{
		{Pinned, always(extract), true}, {Finder, finder, false}, {AsModel, always(asModel), false},
		{Extract, always(extract), false}, {HeadAndTail, always(headAndTail), false},
		{FirstSentences, always(firstSentences), false},
	}
}

// always returns what begins with a writer that does not know the facts.
func always(w write) func([]fact) write { return func([]fact) write { return w } }

func cost(text string) int { return tokens.Estimate([]byte(text)) }

func (s Share) text() string {
	if s.All == 0 {
		return "-"
	}
	return strconv.FormatFloat(s.Percent(), 'f', 1, 64) + " (" + strconv.Itoa(s.All) + ")"
}

func extract(r summary.Request) string { return summary.Extract(r).Summary }

// asModel has the answer of Extract pass through all that a model's answer must pass.
func asModel(r summary.Request) string { return accepted(extract(r), r) }

// accepted returns an answer of a model if it is accepted, else the one of Extract.
func accepted(text string, r summary.Request) string {
	if text == "" {
		return ""
	}
	a, err := summary.Accept("<summary>\n"+text+"\n</summary>", r)
	if err != nil {
		return extract(r)
	}
	return a.Summary
}

// finder returns a writer that knows what was planted: it repeats each of these that it is shown, and then has what
// Extract would write with the rest of the room.
func finder(facts []fact) write {
	return func(r summary.Request) string {
		shown := wholeOf(r)
		text := "## Facts\n"
		for i := range facts {
			if line := strings.TrimSpace(facts[i].line); strings.Contains(shown, line) {
				text += "- " + line + "\n"
			}
		}
		rest := r
		rest.MaxTokens = r.MaxTokens - cost(text) - 2
		_, rest.Previous, _ = strings.Cut(r.Previous, restHeading)
		return accepted(text+restHeading+extract(rest), r)
	}
}

// restHeading stands before what is not about planted facts.
const restHeading = "## Besides\n"

// wholeOf returns the summary before and the texts of a request, without tags: an answer that has one is refused.
func wholeOf(r summary.Request) string {
	var all strings.Builder
	all.WriteString(r.Previous)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			all.WriteString("\n" + p.Text)
		}
	}
	return strings.ReplaceAll(all.String(), "<", "(")
}

// headAndTail keeps the beginning and the end of all that there is.
func headAndTail(r summary.Request) string {
	const longestToken = 8 // bytes, on average
	text := wholeOf(r)
	n := fitting(min(len(text)/2, longestToken*r.MaxTokens), func(n int) bool {
		return cost(text[:n]+text[len(text)-n:]) <= r.MaxTokens
	})
	if 2*n >= len(text)-1 {
		return text
	}
	return text[:n] + text[len(text)-n:]
}

// firstSentences keeps the first sentence of each text, the oldest and the newest ones if there are too many.
func firstSentences(r summary.Request) string {
	lines := strings.Split(r.Previous, "\n")
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Kind == summary.Text {
				lines = append(lines, firstSentence(p.Text))
			}
		}
	}
	n := fitting(len(lines)/2, func(n int) bool {
		return cost(strings.Join(lines[:n], "\n")+strings.Join(lines[len(lines)-n:], "\n")) <= r.MaxTokens
	})
	if 2*n >= len(lines)-1 {
		return strings.Join(lines, "\n")
	}
	return strings.Join(append(lines[:n:n], lines[len(lines)-n:]...), "\n")
}

// firstSentence returns the text up to the first line's end or full stop, and no more of it than a sentence has.
func firstSentence(text string) string {
	const longest = 240
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i+1]
	}
	return strings.ToValidUTF8(text[:min(len(text), longest)], "")
}

// fitting returns the largest number up to a limit that fits.
func fitting(limit int, fits func(int) bool) int {
	low, high := 0, limit
	for low < high {
		if middle := (low + high + 1) / 2; fits(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}
