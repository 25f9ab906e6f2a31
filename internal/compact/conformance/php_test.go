package conformance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/varve-dev/varve/internal/rawjson"
)

// phpDepth is how deep PHP's json_encode goes by itself.
const phpDepth = 512

// phpValue returns the size of a JSON value as tool-compaction measures it, a scalar as a string and all else as JSON, and what
// PHP writes of it as JSON. ok is false for what PHP cannot hold or cannot write.
func phpValue(value []byte) (size int, encoded []byte, ok bool) {
	e := phpEncoder{data: value}
	if !e.encode(0, 0) {
		return 0, nil, false
	}
	switch value[0] {
	case '"':
		text, _ := rawjson.Unquote(nil, value)
		size = len(text)
	case '{', '[':
		size = len(e.out)
	case 't':
		size = len("1")
	case 'f', 'n':
		size = 0 // false and null are the empty string
	default:
		size = len(phpNumberText(string(value)))
	}
	return size, e.out, true
}

// phpEncoder writes JSON as PHP's json_encode does what its json_decode has read.
type phpEncoder struct{ data, out []byte }

func (e *phpEncoder) encode(i, depth int) bool {
	switch e.data[i] {
	case '"':
		return e.text(e.data[i:rawjson.Skip(e.data, i)])
	case '[':
		return e.list(i, depth+1)
	case '{':
		return e.object(i, depth+1)
	case 't', 'f', 'n':
		e.out = append(e.out, e.data[i:rawjson.Skip(e.data, i)]...)
		return true
	}
	return e.number(string(e.data[i:rawjson.Skip(e.data, i)]))
}

func (e *phpEncoder) list(start, depth int) bool {
	e.out = append(e.out, '[')
	first := true
	for element := range rawjson.Elements(e.data, start) {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		if !e.encode(element.Start, depth) {
			return false
		}
	}
	e.out = append(e.out, ']')
	return depth <= phpDepth
}

// object writes the last value of each key at the place of its first. If the keys are 0, 1, 2 and so on, PHP has a list,
// and also if there are none.
func (e *phpEncoder) object(start, depth int) bool {
	keys, values := e.members(start)
	isList := true
	for i, key := range keys {
		isList = isList && string(key) == `"`+strconv.Itoa(i)+`"`
	}
	opening, closing := byte('{'), byte('}')
	if isList {
		opening, closing = '[', ']'
	}
	e.out = append(e.out, opening)
	for i, key := range keys {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if !isList {
			if !e.text(key) {
				return false
			}
			e.out = append(e.out, ':')
		}
		if !e.encode(values[i], depth) {
			return false
		}
	}
	e.out = append(e.out, closing)
	return depth <= phpDepth
}

// members returns the keys, as literals, and the starts of their values.
func (e *phpEncoder) members(start int) (keys [][]byte, values []int) {
	known := map[string]int{}
	for key, value := range rawjson.Members(e.data, start) {
		literal := rawjson.AppendCanonical(nil, key.Of(e.data))
		if i, again := known[string(literal)]; again {
			values[i] = value.Start
			continue
		}
		known[string(literal)] = len(keys)
		keys, values = append(keys, literal), append(values, value.Start)
	}
	return keys, values
}

// text writes a string in ASCII. It reports false for half a character, which is not a string for PHP.
func (e *phpEncoder) text(literal []byte) bool {
	text, ok := rawjson.Unquote(nil, literal)
	if !ok {
		return false
	}
	e.out = append(slices.Grow(e.out, len(text)+2), '"')
	for _, r := range string(text) {
		e.out = appendPHPRune(e.out, r)
	}
	e.out = append(e.out, '"')
	return true
}

func appendPHPRune(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\' || r == '/':
		return append(dst, '\\', byte(r))
	case r >= ' ' && r < 0x80:
		return append(dst, byte(r))
	case r >= 0x10000:
		high, low := utf16.EncodeRune(r)
		return appendUnicodeEscape(appendUnicodeEscape(dst, high), low)
	}
	if i := strings.IndexRune("\b\f\n\r\t", r); i >= 0 {
		return append(dst, '\\', "bfnrt"[i])
	}
	return appendUnicodeEscape(dst, r)
}

func appendUnicodeEscape(dst []byte, unit rune) []byte {
	digits := strconv.FormatInt(int64(unit)|0x10000, 16)
	return append(append(dst, `\u`...), digits[1:]...)
}

func (e *phpEncoder) number(literal string) bool {
	integer, float, isInteger := phpNumber(literal)
	if isInteger {
		e.out = strconv.AppendInt(e.out, integer, 10)
		return true
	}
	e.out = append(e.out, phpFloat(float, -1, 17, 'e')...)
	return !math.IsInf(float, 0)
}

// phpNumberText returns what a number has as a string: a float has 14 significant digits.
func phpNumberText(literal string) string {
	integer, float, isInteger := phpNumber(literal)
	if isInteger {
		return strconv.FormatInt(integer, 10)
	}
	return phpFloat(float, 14, 14, 'E')
}

// phpNumber reads a number: what looks like an integer and is too large for one is a float.
func phpNumber(literal string) (integer int64, float float64, isInteger bool) {
	integer, err := strconv.ParseInt(literal, 10, 64)
	if err == nil {
		return integer, 0, true
	}
	float, _ = strconv.ParseFloat(literal, 64) // beyond the range it is infinite
	return 0, float, false
}

// phpFloat writes a float with significant digits, -1 for as many as it takes: as a decimal while the point is at most
// width places behind the first digit, or three zeros before it, else with an exponent, as in 1.0e+21.
func phpFloat(f float64, significant, width int, e byte) string {
	mantissa, exponent, finite := strings.Cut(strconv.FormatFloat(math.Abs(f), 'e', max(significant-1, -1), 64), "e")
	if !finite {
		return mantissa
	}
	sign := ""
	if math.Signbit(f) {
		sign = "-"
	}
	digits := strings.Replace(mantissa, ".", "", 1)
	digits = digits[:1] + strings.TrimRight(digits[1:], "0")
	places, _ := strconv.Atoi(exponent) // FormatFloat wrote it
	switch point := places + 1; {
	case point > width || point < -3:
		return sign + digits[:1] + "." + cmp.Or(digits[1:], "0") + string(e) + fmt.Sprintf("%+d", places)
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		return sign + digits + strings.Repeat("0", point-len(digits))
	default:
		return sign + digits[:point] + "." + digits[point:]
	}
}

func TestPHPMeasuresAndWritesValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		json string
		size int
		want string
	}{
		{`null`, 0, `null`},
		{`true`, 1, `true`},
		{`false`, 0, `false`},
		{`12345`, 5, `12345`},
		{`-9223372036854775808`, 20, `-9223372036854775808`},
		{`3.3333333333333335`, 15, `3.3333333333333335`},
		{`1.0`, 1, `1`},
		{`-0`, 1, `0`},
		{`-0.0`, 2, `-0`},
		{`0.1`, 3, `0.1`},
		{`0.00012`, 7, `0.00012`},
		{`0.00001`, 6, `1.0e-5`},
		{`1e14`, 7, `100000000000000`},
		{`1e15`, 7, `1000000000000000`},
		{`99999999999999`, 14, `99999999999999`},
		{`1e21`, 7, `1.0e+21`},
		{`1.5e300`, 8, `1.5e+300`},
		{`12345678901234567890`, 19, `1.2345678901234567e+19`},
		{`36028797018963976.0`, 19, `36028797018963976`},
		{`"日/é\u0000\u007f\"\\\b\f\n\r\t😀"`, 19, `"\u65e5\/\u00e9\u0000` + "\x7f" + `\"\\\b\f\n\r\t\ud83d\ude00"`},
		{`{}`, 2, `[]`},
		{`[ 1 , {} ]`, 6, `[1,[]]`},
		{`{"0":"a","1":"b"}`, 9, `["a","b"]`},
		{`{"1":"a","0":"b"}`, 17, `{"1":"a","0":"b"}`},
		{`{"a":1,"b":2,"\u0061":3}`, 13, `{"a":3,"b":2}`},
		{`{"é":1.0}`, 12, `{"\u00e9":1}`},
	} {
		size, encoded, ok := phpValue([]byte(c.json))
		if size != c.size || string(encoded) != c.want || !ok {
			t.Errorf("phpValue(%s) = %d, %s, %v, want %d, %s", c.json, size, encoded, ok, c.size, c.want)
		}
	}
	for _, broken := range []string{`"\ud800"`, `["\udc00"]`, `{"\ud800":1}`, `1e400`} {
		if _, encoded, ok := phpValue([]byte(broken)); ok {
			t.Errorf("phpValue(%s) = %s, PHP cannot hold it", broken, encoded)
		}
	}
}
