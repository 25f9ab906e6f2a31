package replay

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
)

// bits is a set of small numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) set(i int32)      { b[i>>6] |= 1 << (i & 63) }
func (b bits) has(i int32) bool { return len(b) > 0 && b[i>>6]&(1<<(i&63)) != 0 }

// normalise appends a text, plain or inside JSON at any depth, in the form in which strings are looked for: without
// backslashes, and with one space for each run of white space, escaped or not.
func normalise(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c == '\\' {
			for i < len(text) && text[i] == '\\' {
				i++
			}
			if i == len(text) {
				return dst
			}
			switch c = text[i]; c {
			case 'n', 't', 'r', 'f':
				c = ' '
			case 'u':
				if r, size := rawjson.Unescape(text[i-1:]); size > 2 && r >= 0 {
					dst = utf8.AppendRune(dst, r)
					i += size - 1
					continue
				}
			}
		}
		i++
		if c > ' ' {
			dst = append(dst, c)
		} else if n := len(dst); n > 0 && dst[n-1] != ' ' {
			dst = append(dst, ' ')
		}
	}
	return dst
}

func normalised(text string) string { return string(bytes.TrimSpace(normalise(nil, []byte(text)))) }

// gram is the number of bytes by which a pattern is looked up.
const gram = 4

// pattern is a string that is looked for.
type pattern struct {
	text  string // normalised, at least gram bytes
	word  bool   // no letter, digit or underscore may continue it
	found int32  // its number
}

// matcher finds all of its patterns in a text, in one pass: each is looked up by its rarest bytes.
type matcher struct {
	patterns []pattern
	first    []int32 // by hash: where its candidates begin
	list     []candidate
}

type candidate struct {
	pattern int32
	offset  int32 // of its rare bytes
}

const hashes = 1 << 16

func hash(t []byte) uint32 {
	v := uint32(t[0]) | uint32(t[1])<<8 | uint32(t[2])<<16 | uint32(t[3])<<24
	return v * 2654435761 >> 16
}

// newMatcher returns a matcher of patterns for texts like sample.
func newMatcher(patterns []pattern, sample []byte) *matcher {
	counts := make([]int32, hashes)
	for i := 0; i+gram <= len(sample); i++ {
		counts[hash(sample[i:])]++
	}
	m := &matcher{patterns: patterns, first: make([]int32, hashes+1), list: make([]candidate, len(patterns))}
	rare := make([]int32, len(patterns))
	at := make([]uint32, len(patterns))
	for p := range patterns {
		text := []byte(patterns[p].text)
		best := hash(text)
		for i := 1; i+gram <= len(text); i++ {
			if h := hash(text[i:]); counts[h] < counts[best] {
				best, rare[p] = h, int32(i)
			}
		}
		at[p] = best
		m.first[best+1]++
	}
	for h := range hashes {
		m.first[h+1] += m.first[h]
	}
	next := slices.Clone(m.first[:hashes])
	for p := range patterns {
		m.list[next[at[p]]] = candidate{int32(p), rare[p]}
		next[at[p]]++
	}
	return m
}

// scan adds the patterns that a normalised text has.
func (m *matcher) scan(text []byte, found bits) {
	for i := 0; i+gram <= len(text); i++ {
		h := hash(text[i:])
		for _, c := range m.list[m.first[h]:m.first[h+1]] {
			p := &m.patterns[c.pattern]
			if !found.has(p.found) && p.stands(text, i-int(c.offset)) {
				found.set(p.found)
			}
		}
	}
}

// stands reports whether the pattern is at a place of a text.
func (p *pattern) stands(text []byte, start int) bool {
	end := start + len(p.text)
	if start < 0 || end > len(text) || string(text[start:end]) != p.text {
		return false
	}
	return !p.word || (start == 0 || !inWord(text[start-1]) || !inWord(text[start])) &&
		(end == len(text) || !inWord(text[end]) || !inWord(text[end-1]))
}

func inWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
