// Package pin finds what a text pins: what stands between markers, and lines in which a pattern matches. It is pure.
//
// Start at Finder.Find; TextOf (text.go) reads what a caller pins. Package compact carries what is found through all
// compactions, see pins.go there.
package pin

import (
	"regexp"
	"strings"
)

// The markers around a pinned text.
const (
	Open  = "[[pin]]"
	Close = "[[/pin]]"
)

// Finder finds pinned texts.
type Finder struct{ patterns []*regexp.Regexp }

// New returns a finder of what stands between markers and of lines that match a pattern of RE2. A pattern that does not
// compile finds nothing: a policy with one is refused.
func New(patterns []string) *Finder {
	f := &Finder{}
	for _, p := range patterns {
		if compiled, err := regexp.Compile(p); err == nil {
			f.patterns = append(f.patterns, compiled)
		}
	}
	return f
}

// Matches reports whether there is a pattern, for which a caller has to decode texts.
func (f *Finder) Matches() bool { return len(f.patterns) > 0 }

// Find returns the texts that a text pins, each once: those between markers, if these count, and then the lines in
// which a pattern matches, if those are looked for.
func (f *Finder) Find(text string, markers, patterns bool) []string {
	var found []string
	seen := map[string]bool{"": true}
	add := func(pinned string) {
		if !seen[pinned] {
			seen[pinned] = true
			found = append(found, pinned)
		}
	}
	if markers {
		for _, pinned := range between(text) {
			add(pinned)
		}
	}
	if !patterns || !f.Matches() {
		return found
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for _, p := range f.patterns {
			if p.MatchString(line) {
				add(line)
				break
			}
		}
	}
	return found
}

// between returns what stands between pairs of markers, without white space at its ends. A marker without its end pins
// nothing.
func between(text string) (found []string) {
	for {
		_, rest, opened := strings.Cut(text, Open)
		pinned, after, closed := strings.Cut(rest, Close)
		if !opened || !closed {
			return found
		}
		if pinned = strings.TrimSpace(pinned); pinned != "" {
			found = append(found, pinned)
		}
		text = after
	}
}
