package summary

import (
	"cmp"
	"slices"
	"strings"
)

// Merge returns the next answer with the retained facts of the previous one: the entries of both in order, each once,
// without the oldest ones if they and the summary exceed maxTokens (0: no limit). The summary is that of next, which
// was written knowing the previous one; if it is empty, the previous one is kept.
func Merge(previous, next Answer, maxTokens int) Answer {
	merged := Answer{Summary: cmp.Or(next.Summary, previous.Summary), Writer: next.Writer, Claims: next.Claims}
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

// newest returns the newest entries that cost up to room together, with one token more for the line end of each.
func newest(entries []string, room int) []string {
	n := len(entries)
	for n > 0 && room > cost(entries[n-1]) {
		n--
		room -= cost(entries[n]) + 1
	}
	return entries[n:]
}

// Carry joins entries of retained facts, each trimmed, without empty ones and exact repetitions.
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

// Entries returns the entries of retained facts. An entry begins with a list mark or after an empty line and has all
// lines up to the next one.
func Entries(retain string) []string {
	var entries []string
	fresh := true
	for line := range strings.Lines(retain) {
		blank := trim(line) == ""
		switch {
		case blank:
		case fresh || listed(line):
			entries = append(entries, line)
		default:
			entries[len(entries)-1] += line
		}
		fresh = blank
	}
	return entries
}

// listed reports whether a line begins with a mark of a list: "- ", "* ", "• " or "12. ".
func listed(line string) bool {
	mark, _, found := strings.Cut(line, " ")
	if !found {
		return false
	}
	number, dotted := strings.CutSuffix(mark, ".")
	numbered := dotted && number != "" && strings.Trim(number, "0123456789") == ""
	return numbered || mark == "-" || mark == "*" || mark == "•"
}
