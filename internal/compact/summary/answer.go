package summary

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/tokens"
)

// The reasons why an answer cannot be used.
var (
	ErrEmpty  = errors.New("the answer has neither a summary nor retained facts")
	ErrLong   = errors.New("the summary is too long")
	ErrEcho   = errors.New("the answer repeats the request")
	ErrMarkup = errors.New("the answer has tags that could end the section around it")
)

// Accept returns a model's answer to a request: parsed, checked, masked, merged with the facts retained before, and
// with its flags. Its error is one of ErrEmpty, ErrLong, ErrEcho, ErrMarkup.
func Accept(text string, r Request) (Answer, error) {
	a, _ := Parse(text, r.Retain)
	if err := Check(a, r); err != nil {
		return Answer{}, err
	}
	if echoes(a.Retain+"\n"+a.Summary, r) {
		return Answer{}, ErrEcho
	}
	a = Answer{Retain: clean(a.Retain), Summary: clean(a.Summary), Flags: Flags(a)}
	if r.Retain {
		a = Merge(Answer{Retain: r.Retained}, a, r.MaxTokens)
	}
	return a, nil
}

// Check returns why an answer of any writer cannot replace the messages of its request: ErrEmpty, ErrLong or ErrMarkup;
// nil if it can.
func Check(a Answer, r Request) error {
	text := a.Retain + "\n" + a.Summary
	if strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || invisible(r) }) == "" {
		return ErrEmpty
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("it is not UTF-8: %w", ErrMarkup)
	}
	if n := cost(text); r.MaxTokens > 0 && n > r.MaxTokens {
		return fmt.Errorf("%d tokens where %d are allowed: %w", n, r.MaxTokens, ErrLong)
	} else if whole := weight(r); n >= whole && !r.MayGrow {
		return fmt.Errorf("%d tokens would replace %d: %w", n, whole, ErrLong)
	}
	if tags.MatchString(text) {
		return ErrMarkup
	}
	return nil
}

// cost returns the estimated tokens of a text.
func cost(text string) int { return tokens.Estimate([]byte(text)) }

// weight returns the tokens of the messages of a request and of the summary before them.
func weight(r Request) int {
	n := cost(r.Previous) + cost(r.Retained)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += cost(p.Text)
		}
	}
	return n
}

// echoes reports whether a text repeats the transcript's fence or a whole line of the prompt.
func echoes(text string, r Request) bool {
	if strings.Contains(text, strings.TrimSpace(fence)) {
		return true
	}
	if r.Style.sendsConversation() {
		return false // a summary may quote it
	}
	const distinctive = 24 // bytes of a line that is not repeated by chance
	for line := range strings.Lines(Prompt(r)) {
		if line = strings.TrimSpace(line); len(line) >= distinctive && strings.Contains(text, line) {
			return true
		}
	}
	return false
}

// The sections and the tags of an answer, in any case. Go folds ſ to s, which [sS] prevents.
var (
	retainSection  = regexp.MustCompile(`(?s)<(?i:retain)>(.*?)</(?i:retain)>`)
	summarySection = regexp.MustCompile(`(?s)<[sS](?i:ummary)>(.*?)</[sS](?i:ummary)>`)
	summaryOpening = regexp.MustCompile(`<[sS](?i:ummary)>`)
	summaryClosing = regexp.MustCompile(`</[sS](?i:ummary)>`)
)

// Parse reads a model's answer: the contents of the first retain and summary tags, in any case, trimmed. Without a
// summary in tags, the summary is all text outside retain tags. It reports false if nothing is left to use.
func Parse(text string, retain bool) (Answer, bool) {
	var a Answer
	if retain {
		a.Retain = inside(text, retainSection)
	}
	if a.Summary = inside(text, summarySection); a.Summary == "" {
		text = retainSection.ReplaceAllString(text, "")
		text = summaryOpening.ReplaceAllString(text, "")
		a.Summary = trim(summaryClosing.ReplaceAllString(text, ""))
	}
	return a, a.Retain != "" || a.Summary != ""
}

// inside returns the content of the first section.
func inside(text string, section *regexp.Regexp) string {
	if found := section.FindStringSubmatch(text); found != nil {
		return trim(found[1])
	}
	return ""
}

// Merge returns the next answer with the retained facts of the previous one: the entries of both in order, each once,
// without the oldest ones if they and the summary exceed maxTokens (0: no limit). The summary is that of next, which
// was written knowing the previous one; if it is empty, the previous one is kept.
func Merge(previous, next Answer, maxTokens int) Answer {
	merged := Answer{Summary: cmp.Or(next.Summary, previous.Summary)}
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
	numbered := dotted && number != "" && strings.Trim(number, "0123456789") == ""
	return numbered || mark == "-" || mark == "*" || mark == "•"
}
