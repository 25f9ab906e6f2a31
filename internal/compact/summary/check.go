package summary

import (
	"errors"
	"fmt"
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
	} else if whole := weight(r); n >= whole {
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
