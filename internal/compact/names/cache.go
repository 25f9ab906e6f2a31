package names

import "encoding/binary"

// Cache remembers what was found for the names of words, of which a text repeats most. The zero Cache is empty.
type Cache[T any] struct{ entries [1 << cacheBits]entry[T] }

const (
	cacheBits    = 10
	longestWord  = 31 // bytes of one that is remembered
	shortestWord = 4
)

type entry[T any] struct {
	word  [longestWord]byte
	size  uint8
	from  uint8 // where in the word its name begins
	named bool  // it has one
	found T
}

// Each calls use for the names in a text, with what find returns for them and where they begin, until use returns
// false. What find returns must depend on the name alone: it is not asked again for a word that is remembered.
func (c *Cache[T]) Each(text []byte, escaped bool, find func(Name) T, use func(found T, at int) (more bool)) {
	s := scanner{text: text, escaped: escaped}
	for s.next() {
		e := c.entryOf(&s)
		if e == nil {
			name, ok := s.name()
			if ok && !isRandom(name.Text) && !use(find(name), cap(text)-cap(name.Text)) {
				return
			}
			continue
		}
		if word := text[s.start:s.end]; string(e.word[:e.size]) != string(word) {
			e.size = uint8(copy(e.word[:], word))
			name, ok := s.name()
			if e.named = ok && !isRandom(name.Text); e.named {
				e.from = uint8(cap(word) - cap(name.Text))
				e.found = find(name)
			}
		}
		if e.named && !use(e.found, s.start+int(e.from)) {
			return
		}
	}
}

// entryOf returns the place of the current word: nil for one that is too short or too long, and for a number, whose
// name may have the word before it.
func (c *Cache[T]) entryOf(s *scanner) *entry[T] {
	size := s.end - s.start
	if size < shortestWord || size > longestWord || s.has&letter == 0 {
		return nil
	}
	word := s.text[s.start:s.end]
	first, last := binary.LittleEndian.Uint32(word), binary.LittleEndian.Uint32(word[size-shortestWord:])
	hash := (uint64(first)<<32 | uint64(last)) * 0x9E3779B97F4A7C15
	return &c.entries[hash>>(64-cacheBits)]
}
