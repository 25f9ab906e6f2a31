package readback

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// The bounds of a pattern. RE2 needs time in proportion to its instructions and the text: 200 of them take up to 2 ms a
// kilobyte.
const (
	maxPattern      = 512
	maxInstructions = 200
	perInstruction  = 10 * time.Nanosecond // for each byte, at most
)

// pattern is what a grep looks for in a line.
type pattern struct {
	literal []byte // in lower case if it folds
	folds   bool   // ASCII letters of either case are the same
	regex   *regexp.Regexp
	perByte time.Duration // how long the regex needs for one, at most
	lower   []byte        // of the block that was looked at last
}

// compile returns a pattern that is a literal text, or a regular expression in the syntax of RE2.
func compile(text string, isRegex, ignoreCase bool) (*pattern, error) {
	switch {
	case text == "" || len(text) > maxPattern:
		return nil, session.Invalid("pattern", invalidRequest, "must have 1 to %d bytes, not %d", maxPattern, len(text))
	case strings.ContainsAny(text, "\n") && !isRegex:
		return nil, session.Invalid("pattern", invalidRequest, "must have no line feed: it is looked for in every line")
	case !isRegex && (!ignoreCase || isASCII(text)):
		p := &pattern{literal: []byte(text), folds: ignoreCase}
		if ignoreCase {
			p.literal = appendLower(nil, p.literal)
		}
		return p, nil
	case !isRegex:
		text = regexp.QuoteMeta(text)
	}
	if ignoreCase {
		text = "(?i)" + text
	}
	return compileRegex(text)
}

func compileRegex(text string) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, session.Invalid("pattern", invalidRequest, "is not a regular expression of RE2: %s",
			spelling.Shorten(err.Error()))
	}
	program, err := syntax.Compile(tree.Simplify())
	if err == nil && len(program.Inst) > maxInstructions {
		return nil, session.Invalid("pattern", invalidRequest, "is too costly: it has %d instructions, and may have "+
			"%d: look for a literal text, or repeat less", len(program.Inst), maxInstructions)
	}
	if err != nil {
		return nil, err
	}
	regex, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{regex: regex, perByte: time.Duration(len(program.Inst)) * perInstruction}, nil
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// appendLower appends a text with its ASCII letters in lower case.
func appendLower(dst, text []byte) []byte {
	start := len(dst)
	dst = append(dst, text...)
	for i, b := range dst[start:] {
		if 'A' <= b && b <= 'Z' {
			dst[start+i] = b | 0x20
		}
	}
	return dst
}

// look prepares for a block in which index will look.
func (p *pattern) look(block []byte) []byte {
	if p.folds {
		p.lower = appendLower(p.lower[:0], block)
		return p.lower
	}
	return block
}

// index returns the place of a literal in a block that was prepared, or -1.
func (p *pattern) index(prepared []byte) int { return bytes.Index(prepared, p.literal) }
