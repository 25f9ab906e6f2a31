package resource

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redacted replaces a secret in llm-interactive-proxy.
const redacted = "***"

var (
	apiKey = regexp.MustCompile(`^(?:sk[-_][A-Za-z0-9][A-Za-z0-9_-]{15,}|ak-(?:ant|sk|proj)[A-Za-z0-9_-]{17,})`)
	hexKey = regexp.MustCompile(`^[0-9a-f]{32}\.[A-Za-z0-9]{16,}`)
	bearer = regexp.MustCompile(`Bearer[\s\x0b\x1c-\x1f\x{85}\p{Z}]+[a-zA-Z0-9._~+/-]+=*`)
)

// Redact returns a resource's name without the secrets that llm-interactive-proxy hides: keys that begin with sk-, sk_
// or ak-, 32 hexadecimal digits with a key after a point, and the text after Bearer. Mask hides many more.
func Redact(text string) string {
	if strings.Contains(text, "sk-") || strings.Contains(text, "sk_") || strings.Contains(text, "ak-") {
		text = replaceWords(text, apiKey)
	}
	if strings.Contains(text, ".") {
		text = replaceWords(text, hexKey)
	}
	return bearer.ReplaceAllString(text, "Bearer "+redacted)
}

// replaceWords replaces the matches of pattern between word boundaries of Unicode, which regexp does not have.
func replaceWords(text string, pattern *regexp.Regexp) string {
	var out strings.Builder
	kept := 0
	for i := 0; i < len(text); {
		n := matchWord(text, i, pattern)
		if n > 0 {
			out.WriteString(text[kept:i])
			out.WriteString(redacted)
			kept = i + n
		} else {
			_, n = utf8.DecodeRuneInString(text[i:])
		}
		i += n
	}
	return out.String() + text[kept:]
}

// matchWord returns the length of the longest match at i that begins and ends at a word boundary, or 0.
func matchWord(text string, i int, pattern *regexp.Regexp) int {
	if !boundary(text, i) {
		return 0
	}
	for n := len(pattern.FindString(text[i:])); n > 0; n-- {
		if boundary(text, i+n) && len(pattern.FindString(text[i:i+n])) == n {
			return n
		}
	}
	return 0
}

func boundary(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i:])
	return (i > 0 && word(before)) != (i < len(text) && word(after))
}

func word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
