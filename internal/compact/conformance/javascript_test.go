package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// appendJavaScript appends one JSON value as JavaScript's JSON.stringify(JSON.parse(value)) writes it: keys that are
// array indices first and ascending, the others in the order of their first occurrence, the last value of equal keys,
// and no escape that need not be.
func appendJavaScript(dst []byte, value json.RawMessage) []byte {
	switch value = bytes.TrimSpace(value); value[0] {
	case '{':
		return appendJavaScriptObject(dst, value)
	case '[':
		var elements []json.RawMessage
		mustDecode(value, &elements)
		dst = append(dst, '[')
		for i, element := range elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJavaScript(dst, element)
		}
		return append(dst, ']')
	case '"':
		return appendJavaScriptString(dst, javaScriptUnits(value))
	case 't', 'f', 'n':
		return append(dst, value...)
	}
	return appendJavaScriptNumber(dst, value)
}

type javaScriptMember struct {
	key   string // its literal, with the fewest escapes
	index int    // as an array index, or of no member
	value json.RawMessage
}

func appendJavaScriptObject(dst []byte, object json.RawMessage) []byte {
	members := javaScriptMembers(object)
	slices.SortStableFunc(members, func(a, b javaScriptMember) int { return cmp.Compare(a.index, b.index) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, m.key...), ':')
		dst = appendJavaScript(dst, m.value)
	}
	return append(dst, '}')
}

func javaScriptMembers(object json.RawMessage) []javaScriptMember {
	decoder := json.NewDecoder(bytes.NewReader(object))
	_, err := decoder.Token()
	var members []javaScriptMember
	for err == nil && decoder.More() {
		var key, value json.RawMessage
		start := decoder.InputOffset()
		if _, err = decoder.Token(); err == nil {
			key = object[start:decoder.InputOffset()]
			err = decoder.Decode(&value)
		}
		key = key[bytes.IndexByte(key, '"'):]
		m := javaScriptMember{string(appendJavaScriptString(nil, javaScriptUnits(key))), arrayIndex(key), value}
		if at := slices.IndexFunc(members, func(other javaScriptMember) bool { return other.key == m.key }); at >= 0 {
			members[at].value = value
		} else {
			members = append(members, m)
		}
	}
	if err != nil {
		panic(err)
	}
	return members
}

// arrayIndex returns the number that a key literal is in its plain decimal form, below 2³²−1; other keys come after all of these.
func arrayIndex(literal []byte) int {
	digits := string(literal[1 : len(literal)-1])
	index, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || index == math.MaxUint32 || strconv.FormatUint(index, 10) != digits {
		return math.MaxInt
	}
	return int(index)
}

// javaScriptUnits returns a string literal as JavaScript holds it: halves of characters, too.
func javaScriptUnits(literal []byte) []uint16 {
	var units []uint16
	for rest := literal[1 : len(literal)-1]; len(rest) > 0; {
		if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			unit, err := strconv.ParseUint(string(rest[2:6]), 16, 16)
			if err != nil {
				panic(err)
			}
			units, rest = append(units, uint16(unit)), rest[6:]
			continue
		}
		if rest[0] == '\\' {
			short := bytes.IndexByte([]byte(`"\/bfnrt`), rest[1])
			units, rest = append(units, uint16("\"\\/\b\f\n\r\t"[short])), rest[2:]
			continue
		}
		r, size := utf8.DecodeRune(rest)
		units, rest = utf16.AppendRune(units, r), rest[size:]
	}
	return units
}

func appendJavaScriptString(dst []byte, units []uint16) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(units); i++ {
		unit := units[i]
		switch short := bytes.IndexByte([]byte("\"\\\b\f\n\r\t"), byte(unit)); {
		case unit < utf8.RuneSelf && short >= 0:
			dst = append(dst, '\\', `"\bfnrt`[short])
		case unit < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, unit)
		case !utf16.IsSurrogate(rune(unit)):
			dst = utf8.AppendRune(dst, rune(unit))
		case i+1 < len(units) && utf16.DecodeRune(rune(unit), rune(units[i+1])) != utf8.RuneError:
			dst = utf8.AppendRune(dst, utf16.DecodeRune(rune(unit), rune(units[i+1])))
			i++
		default:
			dst = fmt.Appendf(dst, `\u%04x`, unit)
		}
	}
	return append(dst, '"')
}

// appendJavaScriptNumber writes the shortest digits that read back as the same number; encoding/json does so, too, but
// for −0 and what is too large.
func appendJavaScriptNumber(dst []byte, literal json.RawMessage) []byte {
	number, err := strconv.ParseFloat(string(literal), 64)
	switch {
	case err != nil:
		return append(dst, "null"...)
	case number == 0:
		return append(dst, '0')
	}
	shortest, err := json.Marshal(number)
	if err != nil {
		panic(err)
	}
	return append(dst, shortest...)
}

func mustDecode(raw json.RawMessage, value any) {
	if err := decodeJSON(raw, value); err != nil {
		panic(err)
	}
}
