package summary

import (
	"slices"
	"strings"
)

// Merge carries what an earlier answer of a model retained into the next one: the entries of both in their order, each
// once, without the oldest where they and the summary have more than maxTokens (0: no bound). The summary is the next
// one's, for it was written with the earlier one at hand; if it is empty, the earlier one stays.
func Merge(previous, next Answer, maxTokens int) Answer {
	merged := Answer{Summary: or(next.Summary, previous.Summary)}
	entries := append(Entries(previous.Retain), Entries(next.Retain)...)
	if maxTokens > 0 {
		entries = newest(entries, maxTokens-cost(merged.Summary))
	}
	merged.Retain = Carry(entries, "\n")
	for _, flag := range slices.Concat(previous.Flags, next.Flags) {
		if !slices.Contains(merged.Flags, flag) {
			merged.Flags = append(merged.Flags, flag)
		}
	}
	return merged
}

// newest returns the newest entries that cost no more than room together, one token more each for its line.
func newest(entries []string, room int) []string {
	n := len(entries)
	for n > 0 && room > cost(entries[n-1]) {
		n--
		room -= cost(entries[n]) + 1
	}
	return entries[n:]
}

// Carry joins entries of retained facts, each trimmed, and without empty ones and exact repetitions.
func Carry(entries []string, separator string) string {
	seen := map[string]bool{"": true}
	var kept []string
	for _, entry := range entries {
		entry = trim(entry)
		if !seen[entry] {
			seen[entry] = true
			kept = append(kept, entry)
		}
	}
	return strings.Join(kept, separator)
}

// Entries splits retained facts: an entry begins with a list mark or after an empty line, and has all lines up to the
// next one.
func Entries(retain string) []string {
	var entries []string
	fresh := true
	for line := range strings.Lines(retain) {
		blank := trim(line) == ""
		switch {
		case blank:
		case fresh || marked(line):
			entries = append(entries, line)
		default:
			entries[len(entries)-1] += line
		}
		fresh = blank
	}
	return entries
}

// marked reports whether a line begins with a mark of a list: "- ", "* ", "• " or "12. ".
func marked(line string) bool {
	mark, _, found := strings.Cut(line, " ")
	if !found {
		return false
	}
	number, dotted := strings.CutSuffix(mark, ".")
	return mark == "-" || mark == "*" || mark == "•" || dotted && number != "" && strings.Trim(number, "0123456789") == ""
}
