package summary

import (
	_ "embed"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// InstructionLike flags a text that reads as if it gave its reader instructions, UnsupportedClaims one of a system's
// style that states what its request does not have.
const (
	InstructionLike   = "instruction_like"
	UnsupportedClaims = "unsupported_claims"
)

//go:embed orders.txt
var ordersText string

// orders are patterns of instructions to a reader, in the languages of known attacks on summaries. They are matched
// against lower case and one by one, which is several times as fast as one pattern of them all.
var orders = func() (compiled []*regexp.Regexp) {
	for line := range strings.Lines(ordersText) {
		compiled = append(compiled, regexp.MustCompile(`(?m)`+strings.TrimSuffix(line, "\n")))
	}
	return compiled
}()

// ordering reports whether a text gives its reader instructions.
func ordering(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(orders, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

// encoded matches text that may be base64 of a sentence.
var (
	encoded  = regexp.MustCompile(`[A-Za-z0-9+/_-]{24,}`)
	standard = strings.NewReplacer("-", "+", "_", "/")
)

// Flags returns the flags of an answer that looks suspicious, nil for none. A flag does not reject the answer: a user's
// own demands read like instructions, too.
func Flags(a Answer) []string {
	text := a.Retain + "\n" + a.Summary
	if strings.ContainsFunc(text, invisible) && Harmless(text) != escaped(text) || ordering(text) || smuggles(text) {
		return []string{InstructionLike}
	}
	return nil
}

// smuggles reports whether a run of base64 in the text is a sentence that reads like an instruction.
func smuggles(text string) bool {
	for _, run := range encoded.FindAllString(text, -1) {
		run = standard.Replace(run)
		decoded, err := base64.RawStdEncoding.DecodeString(run[:len(run)/4*4])
		if err == nil && utf8.Valid(decoded) && ordering(string(decoded)) {
			return true
		}
	}
	return false
}
