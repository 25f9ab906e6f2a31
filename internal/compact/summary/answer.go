package summary

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/tokens"
)

// The reasons why an answer cannot be used. Their texts are what the model is told when it is asked again.
var (
	ErrEmpty    = errors.New("it has neither a summary nor retained facts")
	ErrEncoding = errors.New("it is not UTF-8")
	ErrSchema   = errors.New("it must have the tags that were asked for, each once and closed, and nothing else")
	ErrRefusal  = errors.New("it refuses to write a summary")
	ErrLong     = errors.New("it is too long")
	ErrMarkup   = errors.New("it has tags, role markers or marker lines, which a summary may not have")
	ErrEcho     = errors.New("it repeats the instructions or copies the transcript")
	ErrLanguage = errors.New("it is in a script that the conversation does not use")
	ErrClaims   = errors.New("it states numbers, paths, ids or code that the transcript does not have")
)

// Accept returns a model's answer to a request: read, checked, without the sentences that state what the request does
// not have, masked, merged with the facts retained before, and with its flags. Its error is one of those above.
func Accept(text string, r Request) (Answer, error) {
	if !utf8.ValidString(text) {
		return Answer{}, ErrEncoding
	}
	if trim(text) == "" {
		return Answer{}, ErrEmpty
	}
	a, err := read(text, r)
	if err != nil {
		return Answer{}, err
	}
	if r.Style != Sections {
		return taken(a, r)
	}
	if err := acceptable(a, r); err != nil {
		return Answer{}, err
	}
	flags := Flags(a)
	if a, err = checkClaims(a, r); err != nil {
		return Answer{Claims: a.Claims}, err
	}
	a.Retain, a.Summary = clean(a.Retain), clean(a.Summary)
	a.Flags = flags
	if r.Retain {
		a = Merge(Answer{Retain: r.Retained}, a, r.MaxTokens)
	}
	return a, nil
}

// taken returns an answer in the style of another system as that system takes it: whatever it says, in what language,
// and how long it is. Claims without a source are counted and flagged, and not cut.
func taken(a Answer, r Request) (Answer, error) {
	checked, _ := checkClaims(a, r)
	a.Claims, a.Claims.Cut = checked.Claims, 0
	if a.Flags = Flags(a); a.Claims.Unsupported > 0 {
		a.Flags = append(a.Flags, UnsupportedClaims)
	}
	a.Retain, a.Summary = clean(a.Retain), clean(a.Summary)
	if err := Check(a, r); err != nil {
		return Answer{}, err
	}
	if r.Retain {
		a = Merge(Answer{Retain: r.Retained}, a, 0)
	}
	return a, nil
}

// acceptable returns why an answer of a model cannot be used whatever it states; nil if it can.
func acceptable(a Answer, r Request) error {
	text := a.Retain + "\n" + a.Summary
	if err := Check(a, r); err != nil {
		return err
	}
	switch {
	case refuses(a):
		return ErrRefusal
	case marked(text):
		return ErrMarkup
	case echoes(text, r):
		return ErrEcho
	case foreign(text, r):
		return ErrLanguage
	}
	return nil
}

// Check returns why an answer of any writer cannot replace the messages of its request: ErrEmpty, ErrEncoding, ErrLong
// or ErrMarkup; nil if it can. In the style of another system, which names no limit to the model, it has none.
func Check(a Answer, r Request) error {
	text := a.Retain + "\n" + a.Summary
	if strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || invisible(r) }) == "" {
		return ErrEmpty
	}
	if !utf8.ValidString(text) {
		return ErrEncoding
	}
	if n := cost(text); r.MaxTokens > 0 && n > r.MaxTokens && r.Style == Sections {
		return fmt.Errorf("%w: %d tokens where %d are allowed", ErrLong, n, r.MaxTokens)
	} else if whole := weight(r, n+1); n >= whole && !r.MayGrow {
		return fmt.Errorf("%w: %d tokens would replace %d", ErrLong, n, whole)
	}
	if tags.MatchString(text) {
		return ErrMarkup
	}
	return nil
}

// cost returns the estimated tokens of a text.
func cost(text string) int { return tokens.Estimate([]byte(text)) }

// weight returns the tokens of the messages of a request and of the summary before them. It counts to enough.
func weight(r Request, enough int) int {
	n := cost(r.Previous) + cost(r.Retained)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if n >= enough {
				return n
			}
			n += cost(p.Text)
		}
	}
	return n
}
