package compact

import (
	"encoding/binary"
	"errors"
)

// codec writes a state, or reads one: each method handles one kind of value in both directions, so that state.go lists
// every value once. What is read replaces the value; after the first byte that does not fit, everything reads as zero.
type codec struct {
	writing bool
	bytes   []byte            // written so far
	numbers map[string]uint64 // written names
	rest    string            // still to be read
	names   []string          // that were read
	seq     int64             // of the message before
	err     error
}

var errState = errors.New("compact: the checkpoint's state is damaged or of another version")

// maxNumber limits every number in a state, so that sums of them cannot overflow.
const maxNumber = 1 << 40

func (c *codec) fail() {
	c.rest = ""
	c.err = errState
}

func (c *codec) ints(values ...*int) {
	for _, v := range values {
		if c.writing {
			c.bytes = binary.AppendUvarint(c.bytes, uint64(*v))
		} else {
			*v = c.readInt()
		}
	}
}

func (c *codec) readInt() int {
	v, shift := uint64(0), 0
	for i := 0; i < len(c.rest) && i < 7; i++ {
		b := c.rest[i]
		v |= uint64(b&0x7F) << shift
		if shift += 7; b < 0x80 && v < maxNumber {
			c.rest = c.rest[i+1:]
			return int(v)
		}
	}
	c.fail()
	return 0
}

func (c *codec) int64s(values ...*int64) {
	for _, v := range values {
		n := int(*v)
		c.ints(&n)
		*v = int64(n)
	}
}

// count handles the number of things that follow. Each of them takes at least a byte, which bounds a damaged number.
func (c *codec) count(n int) int {
	c.ints(&n)
	if !c.writing && n > len(c.rest) {
		c.fail()
		return 0
	}
	return n
}

// sized handles the length of a list, and returns the list: when it is read, of as many zero values.
func sized[T any](c *codec, of []T) []T {
	if n := c.count(len(of)); n > len(of) {
		return make([]T, n)
	}
	return of
}

// read returns the next n bytes.
func (c *codec) read(n int) string {
	if n > len(c.rest) {
		c.fail()
		return ""
	}
	s := c.rest[:n]
	c.rest = c.rest[n:]
	return s
}

// digest handles bytes whose number is fixed.
func (c *codec) digest(b []byte) {
	if c.writing {
		c.bytes = append(c.bytes, b...)
	} else {
		copy(b, c.read(len(b)))
	}
}

func (c *codec) byte(b byte) byte {
	one := [1]byte{b}
	c.digest(one[:])
	return one[0]
}

// flags handles a byte whose lowest bits are a number and whose other bits are booleans, and returns the number.
func (c *codec) flags(number byte, bits int, set ...*bool) byte {
	for i, on := range set {
		if *on {
			number |= 1 << (bits + i)
		}
	}
	number = c.byte(number)
	for i, on := range set {
		*on = number&(1<<(bits+i)) != 0
	}
	return number & (1<<bits - 1)
}

func (c *codec) text(s *string) {
	n := len(*s)
	c.ints(&n)
	if c.writing {
		c.bytes = append(c.bytes, *s...)
	} else {
		*s = c.read(n)
	}
}

// name handles a text that is often repeated: it is written the first time, then its number is.
func (c *codec) name(s *string) {
	if c.writing {
		n, known := c.numbers[*s]
		c.bytes = binary.AppendUvarint(c.bytes, n)
		if !known {
			c.numbers[*s] = uint64(len(c.numbers) + 1)
			c.text(s)
		}
		return
	}
	n := c.readInt()
	if n == 0 {
		c.text(s)
		c.names = append(c.names, *s)
		return
	}
	if n > len(c.names) {
		c.fail()
		*s = ""
		return
	}
	*s = c.names[n-1]
}
