package wire

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Base64 is written in two alphabets, with padding or without, and in lines. Only Google reads all of that.

// standardBase64 returns base64 as every provider reads it: in the standard alphabet, padded, without line breaks or
// blanks around it. Google's clients write the alphabet for URLs, too, and may leave the padding out.
func standardBase64(data []byte) []byte {
	const blanks = " \t\r\n"
	whole := bytes.TrimLeft(data, blanks)
	bare := bytes.TrimRight(whole, "="+blanks)
	has := func(c byte) bool { return bytes.IndexByte(bare, c) >= 0 }
	isPadded := len(data)%4 == 0 && strings.HasPrefix("==", string(whole[len(bare):]))
	if isPadded && len(whole) == len(data) && !slices.ContainsFunc([]byte("-_"+blanks), has) {
		return data
	}
	out := bytes.Join(bytes.Fields(standardAlphabet(bare)), nil)
	for len(out)%4 > 0 && len(out)%4 != 1 {
		out = append(out, '=')
	}
	return out
}

// standardAlphabet returns base64 without the characters that stand for + and / in URLs.
func standardAlphabet(data []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
}

// encoded returns the base64, which may be written with escapes.
func (m *medium) encoded(body []byte) []byte {
	data := m.data.Of(body)
	if bytes.IndexByte(data, '\\') < 0 {
		return data
	}
	text, _ := rawjson.Unquote(nil, slices.Concat([]byte{'"'}, data, []byte{'"'}))
	return text
}

// base64 returns the base64 as every server reads it.
func (m *medium) base64(body []byte) []byte { return standardBase64(m.encoded(body)) }

// isMisspelt reports whether only Google reads the base64 as it is written. That of Gemini's messages needs no edit:
// what is read of them has the standard spelling.
func (m *medium) isMisspelt(f session.Format, body []byte) bool {
	if f == session.Gemini || m.data == (Span{}) {
		return false
	}
	encoded := m.encoded(body)
	standard := standardBase64(encoded)
	_, ok := firstBytes(bytes.TrimRight(standard, "="))
	return ok && !bytes.Equal(standard, encoded)
}

// firstBytes decodes the first bytes of base64, of either alphabet, whose padding is cut off. It reports false if these
// or the last ones are none.
func firstBytes(encoded []byte) ([]byte, bool) {
	const size = 64 // of base64
	first := standardAlphabet(encoded[:min(len(encoded), size)])
	last := standardAlphabet(encoded[max(0, len(encoded)-size):])
	head := make([]byte, base64.RawStdEncoding.DecodedLen(size))
	n, err := base64.RawStdEncoding.Decode(head, first)
	ok := err == nil && !bytes.ContainsFunc(last, func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		return !(letter || '0' <= c && c <= '9' || strings.ContainsRune("+/\n\r", c))
	})
	return head[:n], ok
}
