package summary

import (
	_ "embed"
	"strings"
)

//go:embed harness.txt
var harnessText string

// harness has the lists of harness.txt.
var harness = readHarness(harnessText)

type harnessLists struct {
	lines, summaries, rules, requests []string
	texts, ends, quotes, answers      [][3]string // the parts of each entry
	elements, wrappers, screens       map[string]bool
	textLetters, answerLetters        [256]bool // with which texts and answers begin
}

// readHarness reads harness.txt.
func readHarness(text string) *harnessLists {
	lists := map[string][]string{}
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if begun, ok := strings.CutPrefix(line, "= "); ok {
			name = begun
		} else if line != "" && !strings.HasPrefix(line, "// ") {
			lists[name] = append(lists[name], line)
		}
	}
	lists["texts"] = append(lists["texts"], lists["summaries"]...)
	return &harnessLists{
		lines: lists["lines"], summaries: lists["summaries"], rules: lists["rules"], texts: partsOf(lists["texts"]),
		ends: partsOf(lists["ends"]), quotes: partsOf(lists["quotes"]), answers: partsOf(lists["answers"]),
		elements: namesIn(lists["elements"]), requests: strings.Split(lists["requests"][0], "|"),
		wrappers: namesIn(lists["wrappers"]), screens: namesIn(lists["screens"]),
		textLetters: lettersOf(lists["texts"]), answerLetters: lettersOf(lists["answers"]),
	}
}

// partsOf returns the parts of each entry, "" for those that are not there.
func partsOf(entries []string) (all [][3]string) {
	for _, entry := range entries {
		var parts [3]string
		copy(parts[:], strings.SplitN(entry, "|", len(parts)))
		all = append(all, parts)
	}
	return all
}

// namesIn returns the parts of all entries as a set.
func namesIn(entries []string) map[string]bool {
	names := map[string]bool{}
	for _, entry := range entries {
		for name := range strings.SplitSeq(entry, "|") {
			names[name] = true
		}
	}
	return names
}

// lettersOf returns the bytes with which entries begin.
func lettersOf(entries []string) (letters [256]bool) {
	for _, entry := range entries {
		letters[entry[0]] = true
	}
	return letters
}
