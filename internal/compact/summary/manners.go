package summary

import (
	_ "embed"
	"regexp"
	"strings"
)

var (
	//go:embed refusals.txt
	refusalsText string
	//go:embed markers.txt
	markersText string
)

// patterns returns the pattern of what matches one of the lines of a text.
func patterns(before, lines, after string) *regexp.Regexp {
	return regexp.MustCompile(before + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "|") + after)
}

// refusals are how a model begins that does not want to answer, in lower case.
var refusals = patterns(`^(?:`, refusalsText, `)`)

// refuses reports whether an answer begins as a refusal does. What the agent could not do is no refusal.
func refuses(a Answer) bool {
	return refusals.MatchString(strings.ToLower(strings.TrimLeft(a.Summary, "#*->• \t\n")))
}

// markers are what could pass for the end of a summary, for another message, or for what stands around a summary: tags
// and tokens of chat templates, brackets of other widths among them; the headings of the sections beside it; lines like
// those in place of a summary or a result; and lines of a transcript.
var markers = patterns(`(?im)`, markersText, "")

// marked reports whether a text has such a marker.
func marked(text string) bool { return markers.MatchString(text) }

// echoes reports whether a text repeats the transcript's fence or a whole line of the prompt, or copies the messages.
func echoes(text string, r Request) bool {
	const distinctive = 24 // bytes of a line that is not repeated by chance
	if strings.Contains(text, strings.TrimSpace(fence)) {
		return true
	}
	for line := range strings.Lines(Prompt(r.only())) {
		if line = strings.TrimSpace(line); len(line) >= distinctive && strings.Contains(text, line) {
			return true
		}
	}
	return copies(text, r)
}

// How much of an answer may be a copy: as many lines one after the other as the source has them, and that long a line.
const (
	mostCopied  = 16
	longestLine = 2000
)

// copies reports whether more than half of a text is a stretch of a message.
func copies(text string, r Request) bool {
	lines := linesOf(text)
	wanted := map[uint64]bool{}
	for i, line := range lines {
		if i > 0 {
			wanted[mix(hashOf(lines[i-1]), hashOf(line))] = false
		}
		if len(line) > longestLine {
			wanted[hashOf(line)] = false
		}
	}
	if len(lines) < mostCopied && len(text) < longestLine {
		return false
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			mark(wanted, linesOf(p.Text))
		}
	}
	return longestCopy(lines, wanted) > len(text)/2
}

// mark marks the lines and pairs of lines that are wanted.
func mark(wanted map[uint64]bool, lines []string) {
	before := uint64(0)
	for _, line := range lines {
		h := hashOf(line)
		for _, found := range []uint64{h, mix(before, h)} {
			if _, ok := wanted[found]; ok {
				wanted[found] = true
			}
		}
		before = h
	}
}

// longestCopy returns the bytes of the longest stretch of lines that was found, 0 if it is short.
func longestCopy(lines []string, found map[uint64]bool) (longest int) {
	size, count := 0, 0
	for i, line := range lines {
		if len(line) > longestLine && found[hashOf(line)] {
			longest = max(longest, len(line))
		}
		if i == 0 || !found[mix(hashOf(lines[i-1]), hashOf(line))] {
			size, count = 0, 0
			continue
		}
		size += len(line) + 1
		if count++; count >= mostCopied {
			longest = max(longest, size)
		}
	}
	return longest
}

// linesOf returns the lines of a text that are not empty, trimmed.
func linesOf(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
