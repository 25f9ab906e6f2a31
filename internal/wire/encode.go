package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// encoder collects messages.
type encoder struct {
	target session.Format
	bodies [][]byte
}

func (e *encoder) add(body []byte) { e.bodies = append(e.bodies, body) }

// own reports whether the block can be written as its Raw.
func (e *encoder) own(p *Block) bool { return p.Format == e.target && p.Raw != nil && !p.Edited }

// untouched counts the Messages that a message of the target begins with, all of them as they were decoded; 0 if
// there is none.
func untouched(target session.Format, list []Message) int {
	first := &list[0]
	if first.Format != target || first.Raw == nil {
		return 0
	}
	n := 0
	for n < len(list) && list[n].Raw != nil && list[n].Origin == first.Origin && list[n].Part == n && !list[n].Edited {
		n++
	}
	if n != first.Of {
		return 0
	}
	return n
}

// with appends a piece of JSON text, and a value.
func with[V string | []byte](dst []byte, text string, value V) []byte {
	dst = append(dst, text...)
	return append(dst, value...)
}

// wrap appends a value between two pieces of JSON text.
func wrap[V string | []byte](dst []byte, before string, value V, after string) []byte {
	dst = append(dst, before...)
	dst = append(dst, value...)
	return append(dst, after...)
}

// separate appends a comma unless the array or object, whose content begins at first, is empty.
func separate(dst []byte, first int) []byte {
	if len(dst) > first {
		return append(dst, ',')
	}
	return dst
}
