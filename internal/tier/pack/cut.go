package pack

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Stored are the bodies of a session that holes may name, by the SHA-256 of their content.
type Stored map[[sha256.Size]byte]uuid.UUID

// Cut returns a message as a record, in which a hole stands for each string whose text is the content of a stored body,
// and for each array or object whose bytes are. A string that no Style makes byte for byte again stays where it is, as
// does everything in a message that is not JSON. sizes are those of the stored contents; smaller values are not looked
// at. The record has neither seq nor shape.
func Cut(body []byte, stored Stored, sizes Sizes) Record {
	whole := Record{Rest: body}
	if len(stored) == 0 || len(body) < sizes.smallest || rawjson.Check(body, rawjson.Limits{}) != nil {
		return whole
	}
	c := cutter{body: body, stored: stored, sizes: sizes}
	c.scan()
	if len(c.cuts) == 0 {
		return whole
	}
	var r Record
	end := 0
	for _, found := range c.cuts {
		r.Rest = append(r.Rest, body[end:found.span.Start]...)
		found.hole.At = len(r.Rest)
		r.Holes = append(r.Holes, found.hole)
		end = found.span.End
	}
	r.Rest = append(r.Rest, body[end:]...)
	sum := sha256.Sum256(body)
	r.Digest = sum[:]
	return r
}

// Sizes are the sizes of stored contents.
type Sizes struct {
	known    map[int]bool
	smallest int
}

// NewSizes returns a set of sizes.
func NewSizes(sizes ...int) Sizes {
	s := Sizes{known: map[int]bool{}}
	for i, n := range sizes {
		s.known[n] = true
		if i == 0 || n < s.smallest {
			s.smallest = n
		}
	}
	return s
}

// cutter looks for stored contents in a message.
type cutter struct {
	body   []byte
	stored Stored
	sizes  Sizes
	cuts   []cut // by place; none is inside another
}

type cut struct {
	span rawjson.Span
	hole Hole
}

// scan visits all strings, arrays and objects of the message in one pass. An array or object is seen after what is in
// it, and takes its place.
func (c *cutter) scan() {
	var open []int
	for i := 0; i < len(c.body); i++ {
		switch c.body[i] {
		case '"':
			end := rawjson.Skip(c.body, i)
			c.literal(rawjson.Span{Start: i, End: end})
			i = end - 1
		case '[', '{':
			open = append(open, i)
		case ']', '}':
			c.value(rawjson.Span{Start: open[len(open)-1], End: i + 1})
			open = open[:len(open)-1]
		}
	}
}

// literal cuts a string whose text is stored and that can be made again. A string that UTF-8 cannot express is stored
// as the literal itself.
func (c *cutter) literal(at rawjson.Span) {
	if at.End-at.Start < c.sizes.smallest {
		return
	}
	literal := at.Of(c.body)
	text, ok := rawjson.Unquote(make([]byte, 0, len(literal)), literal)
	if !ok {
		c.value(at)
		return
	}
	if !c.sizes.known[len(text)] {
		return
	}
	body, ok := c.stored[sha256.Sum256(text)]
	style := styleOf(literal)
	if ok && bytes.Equal(style.quote(make([]byte, 0, len(literal)), text), literal) {
		c.cuts = append(c.cuts, cut{at, Hole{Body: body, Style: style}})
	}
}

// value cuts a value whose bytes are stored.
func (c *cutter) value(at rawjson.Span) {
	if !c.sizes.known[at.End-at.Start] {
		return
	}
	body, ok := c.stored[sha256.Sum256(at.Of(c.body))]
	if !ok {
		return
	}
	for len(c.cuts) > 0 && c.cuts[len(c.cuts)-1].span.Start > at.Start {
		c.cuts = c.cuts[:len(c.cuts)-1]
	}
	c.cuts = append(c.cuts, cut{at, Hole{Body: body, Style: raw | kinds[c.body[at.Start]]}})
}

// kinds are the values that raw holes are made of by their first byte. A string has none of them.
var kinds = map[byte]Style{'[': array, '{': object}

var (
	errStyle  = errors.New("a hole has a style that this version does not know")
	errPlaces = errors.New("the holes do not fit into the message")
	errDigest = errors.New("the message is not the one that came in")
)

// Fill returns the message, byte for byte as it was before Cut. content returns the content of a stored body. The bytes
// are those that came in, or there is an error.
func (r *Record) Fill(content func(body uuid.UUID) ([]byte, error)) ([]byte, error) {
	if len(r.Holes) == 0 {
		return r.Rest, nil
	}
	var filled []byte
	end := 0
	for _, h := range r.Holes {
		if h.At < end || h.At > len(r.Rest) {
			return nil, errPlaces
		}
		text, err := content(h.Body)
		if err != nil {
			return nil, err
		}
		filled = slices.Grow(filled, len(text)+len(text)/8+len(r.Rest)-end)
		filled = append(filled, r.Rest[end:h.At]...)
		end = h.At
		switch {
		case h.Style&^anyStyle != 0:
			return nil, errStyle
		case h.Style&raw != 0:
			filled = append(filled, text...)
		default:
			filled = h.Style.quote(filled, text)
		}
	}
	filled = append(filled, r.Rest[end:]...)
	if sum := sha256.Sum256(filled); !bytes.Equal(sum[:], r.Digest) {
		return nil, errDigest
	}
	return filled, nil
}

// Outline returns the message with an empty string, array or object in each hole, as its kind is. It has the calls and
// the answers of the message.
func (r *Record) Outline() []byte {
	var out []byte
	end := 0
	for _, h := range r.Holes {
		at := min(max(h.At, end), len(r.Rest))
		out = append(out, r.Rest[end:at]...)
		end = at
		switch {
		case h.Style&array != 0:
			out = append(out, "[]"...)
		case h.Style&object != 0:
			out = append(out, "{}"...)
		default:
			out = append(out, `""`...)
		}
	}
	return append(out, r.Rest[end:]...)
}
