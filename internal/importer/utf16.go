package importer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// inUTF8 returns a file without its byte order mark, in UTF-8 if the mark is that of UTF-16. A surrogate that stands
// alone, which UTF-8 cannot say, becomes its escape in JSON.
func inUTF8(data []byte) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	data = data[2:]
	out := make([]byte, 0, len(data))
	for ; len(data) >= 2; data = data[2:] {
		r := rune(order.Uint16(data))
		if !utf16.IsSurrogate(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		pair := rune(utf8.RuneError)
		if len(data) >= 4 {
			pair = utf16.DecodeRune(r, rune(order.Uint16(data[2:])))
		}
		if pair == utf8.RuneError {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = utf8.AppendRune(out, pair)
		data = data[2:]
	}
	return out
}
