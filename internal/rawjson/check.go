package rawjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"
)

// Limits bounds what Check accepts. A zero field means no limit, except Depth, where it means maxDepth.
type Limits struct {
	Depth       int // arrays and objects inside one another
	Nodes       int // values: objects, arrays and scalars; keys do not count
	NumberBytes int // digits, sign, point and exponent of one number
}

// maxDepth bounds the recursion where the caller does not; encoding/json stops at the same depth.
const maxDepth = 10_000

// SyntaxError is the first place where a text is not acceptable JSON, and the reason.
type SyntaxError struct {
	Offset int    // byte offset into the text
	Detail string // what was found there and what was expected
	Limit  string // "depth", "nodes" or "number_bytes" if a limit was exceeded, "" if the text is not JSON
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Detail) }

// Check returns a *SyntaxError with the first place where data is not exactly one JSON value (RFC 8259) in valid UTF-8
// within lim. It allows white space around the value and escapes of lone surrogates.
func Check(data []byte, lim Limits) error {
	_, err := CheckHalves(data, lim)
	return err
}

// CheckHalves does what Check does, and also looks for escape sequences that may be halves of surrogate pairs.
func CheckHalves(data []byte, lim Limits) (Halves, error) {
	c := newChecker(data, lim)
	i := c.value(space(data, 0))
	if i >= 0 {
		if i = space(data, i); i < len(data) {
			c.unexpected(i, "the end of the text after the value")
		}
	}
	switch {
	case (c.err != nil || c.seen&tops != 0) && !utf8.Valid(data):
		return Halves{}, &SyntaxError{Offset: invalidUTF8(data), Detail: "the text is not valid UTF-8"}
	case c.err != nil:
		return Halves{}, c.err
	}
	return c.halves, nil
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// checker is one pass over data. Its methods take the offset where something starts and return the offset after it, or
// -1 after setting err.
type checker struct {
	data   []byte
	limits Limits
	depth  int // levels still allowed
	nodes  int // values still allowed
	halves Halves
	seen   uint64 // all bits of all strings, eight bytes side by side: a top bit is that of a byte beyond ASCII
	err    *SyntaxError
}

func newChecker(data []byte, lim Limits) *checker {
	if lim.Depth == 0 {
		lim.Depth = maxDepth
	}
	if lim.Nodes == 0 {
		lim.Nodes = math.MaxInt
	}
	if lim.NumberBytes == 0 {
		lim.NumberBytes = math.MaxInt
	}
	return &checker{data: data, limits: lim, depth: lim.Depth, nodes: lim.Nodes}
}

func (c *checker) unexpected(i int, wanted string) int {
	found := "the text ends"
	if i < len(c.data) {
		r, _ := utf8.DecodeRune(c.data[i:])
		found = fmt.Sprintf("found %q", r)
	}
	c.err = &SyntaxError{Offset: i, Detail: found + ", expected " + wanted}
	return -1
}

func (c *checker) exceeds(i int, limit, format string, args ...any) int {
	c.err = &SyntaxError{Offset: i, Detail: fmt.Sprintf(format, args...), Limit: limit}
	return -1
}

// at returns the byte at i. After the end it returns NUL, which JSON structure never contains.
func (c *checker) at(i int) byte {
	if i < len(c.data) {
		return c.data[i]
	}
	return 0
}

func (c *checker) value(i int) int {
	if c.nodes--; c.nodes < 0 {
		return c.exceeds(i, "nodes", "more than %d values", c.limits.Nodes)
	}
	switch b := c.at(i); b {
	case '"':
		return c.str(i)
	case '{':
		return c.object(i)
	case '[':
		return c.array(i)
	case 't':
		return c.word(i, "true")
	case 'f':
		return c.word(i, "false")
	case 'n':
		return c.word(i, "null")
	default:
		if b == '-' || digit(b) {
			return c.number(i)
		}
		return c.unexpected(i, "a value")
	}
}

func (c *checker) enter(i int) bool {
	if c.depth--; c.depth < 0 {
		c.exceeds(i, "depth", "nested deeper than %d levels", c.limits.Depth)
		return false
	}
	return true
}

func (c *checker) object(i int) int {
	if !c.enter(i) {
		return -1
	}
	i = space(c.data, i+1)
	for first := true; ; first = false {
		if first && c.at(i) == '}' {
			break
		}
		if c.at(i) != '"' {
			return c.unexpected(i, "a key in quotes")
		}
		if i = c.str(i); i < 0 {
			return -1
		}
		if i = space(c.data, i); c.at(i) != ':' {
			return c.unexpected(i, "':' after the key")
		}
		if i = c.value(space(c.data, i+1)); i < 0 {
			return -1
		}
		if i = space(c.data, i); c.at(i) != ',' {
			break
		}
		i = space(c.data, i+1)
	}
	if c.at(i) != '}' {
		return c.unexpected(i, "',' or '}' in an object")
	}
	c.depth++
	return i + 1
}

func (c *checker) array(i int) int {
	if !c.enter(i) {
		return -1
	}
	i = space(c.data, i+1)
	for first := true; ; first = false {
		if first && c.at(i) == ']' {
			break
		}
		if i = c.value(i); i < 0 {
			return -1
		}
		if i = space(c.data, i); c.at(i) != ',' {
			break
		}
		i = space(c.data, i+1)
	}
	if c.at(i) != ']' {
		return c.unexpected(i, "',' or ']' in an array")
	}
	c.depth++
	return i + 1
}

func (c *checker) word(i int, word string) int {
	if !bytes.HasPrefix(c.data[i:], []byte(word)) {
		return c.unexpected(i, "true, false or null")
	}
	return i + len(word)
}

func (c *checker) number(start int) int {
	i := start
	if c.at(i) == '-' {
		i++
	}
	if c.at(i) == '0' {
		i++
	} else if i = c.digits(i); i < 0 {
		return -1
	}
	if c.at(i) == '.' {
		if i = c.digits(i + 1); i < 0 {
			return -1
		}
	}
	if c.at(i)|0x20 == 'e' {
		i++
		if c.at(i) == '+' || c.at(i) == '-' {
			i++
		}
		if i = c.digits(i); i < 0 {
			return -1
		}
	}
	if i-start > c.limits.NumberBytes {
		return c.exceeds(start, "number_bytes", "a number of more than %d characters", c.limits.NumberBytes)
	}
	return i
}

func (c *checker) digits(i int) int {
	if !digit(c.at(i)) {
		return c.unexpected(i, "a digit")
	}
	for digit(c.at(i)) {
		i++
	}
	return i
}

func digit(b byte) bool { return '0' <= b && b <= '9' }

func (c *checker) str(i int) int {
	start := i
	i++
	for {
		var seen uint64
		i, seen = plain(c.data, i)
		c.seen |= seen
		switch {
		case i == len(c.data):
			return c.unexpected(i, fmt.Sprintf("the closing quote of the string that begins at byte %d", start))
		case c.data[i] == '"':
			return i + 1
		case c.data[i] != '\\':
			detail := fmt.Sprintf("control character %q in a string, write \\u%04x", c.data[i], c.data[i])
			c.err = &SyntaxError{Offset: i, Detail: detail}
			return -1
		}
		if i = c.escape(i + 1); i < 0 {
			return -1
		}
	}
}

// escape checks what follows a backslash.
func (c *checker) escape(i int) int {
	b := c.at(i)
	if unescapes[b] != 0 {
		if b == '\\' {
			c.halves.note(c.data[i+1:])
		}
		return i + 1
	}
	if b != 'u' {
		return c.unexpected(i, `one of "\/bfnrtu after a backslash`)
	}
	for k := i + 1; k <= i+4; k++ {
		if hexValue(c.at(k)) < 0 {
			return c.unexpected(k, "four hexadecimal digits after \\u")
		}
	}
	c.halves.note(c.data[i:])
	return i + 5
}

// ones and tops are the lowest and the top bits of eight bytes.
const ones, tops = 0x0101010101010101, 0x8080808080808080

// plain returns the first index at or after i that has a quote, a backslash or a control character, or len(data), and
// the bits that are set in a byte up to there. It tests eight bytes at a time: a subtraction sets the top bit of each
// byte that was smaller, and a borrow can change only bytes after the first such byte, which is the one that counts.
func plain(data []byte, i int) (end int, seen uint64) {
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		seen |= w
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & tops
		if found != 0 {
			return i + bits.TrailingZeros64(found)>>3, seen
		}
	}
	for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' {
		seen |= uint64(data[i])
		i++
	}
	return i, seen
}
