package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// run is a piece of a text without white space in it: atoms, which are words or numbers, with the signs between them,
// such as a path, a link, a date, an id or one word.
type run struct {
	text     string // that it is in
	begin    int    // of it in the text, with the signs before its first atom
	absolute bool   // those signs end with a slash
	atoms    []atom
}

// atom is a word or a number in a run. Letters count in lower case, digits of any script are 0 to 9, and underscores
// between digits count nothing.
type atom struct {
	begin, end int    // of it in the text
	hash       uint64 // of the atom alone
	sign       uint64 // of the signs between it and the atom before it
	lead       uint64 // the hash of the digits with which it begins, if it has others after them; 0 for none
	tail       uint64 // the hash of the digits with which it ends, if it has others before them; 0 for none
	digits     int    // how many characters are digits
	length     int    // in characters
	hex        bool   // all characters are hexadecimal digits
	snake      bool   // it has an underscore after another character
}

func (a *atom) number() bool { return a.digits == a.length }

// signs returns what stands before atom i of a run, 1 or later.
func (u *run) signs(i int) string { return u.text[u.atoms[i-1].end:u.atoms[i].begin] }

// word returns atom i as it is written.
func (u *run) word(i int) string { return u.text[u.atoms[i].begin:u.atoms[i].end] }

// The hashes of atoms and runs are FNV-1a.
const (
	hashBasis uint64 = 14695981039346656037
	hashPrime uint64 = 1099511628211
)

func mix(h, with uint64) uint64 { return (h ^ with) * hashPrime }

// follow extends hash h by signs and the atom after them.
func follow(h, sign, atom uint64) uint64 { return mix(mix(h, sign), atom) }

// hashOf returns the hash of an atom in lower case.
func hashOf(text string) uint64 {
	h := hashBasis
	for _, r := range text {
		h = mix(h, uint64(r))
	}
	return h
}

// longestRun is how many atoms a run has at most; a longer one is read as several.
const longestRun = 4096

// eachRun calls f for each run of a text, in their order. The run is valid until f returns. A letter of a script that
// has no spaces between words ends a run, so that a number in a sentence of theirs stands alone.
func eachRun(text string, f func(*run)) {
	s := runScanner{run: run{text: text}}
	for s.next() {
		f(&s.run)
	}
}

type runScanner struct {
	run run
	at  int
}

// next reads the next run, and reports whether there is one.
func (s *runScanner) next() bool {
	text, begin := s.run.text, s.at
	for s.at < len(text) {
		r, size := runeAt(text, s.at)
		if atomRune(r) != 0 {
			s.run.begin, s.run.absolute = begin, s.at > begin && (text[s.at-1] == '/' || text[s.at-1] == '\\')
			s.atoms()
			return true
		}
		if s.at += size; !isSign(r) {
			begin = s.at
		}
	}
	return false
}

// atoms reads the atoms of the run that begins here.
func (s *runScanner) atoms() {
	text := s.run.text
	s.run.atoms = s.run.atoms[:0]
	for sign := uint64(0); len(s.run.atoms) < longestRun; {
		s.run.atoms = append(s.run.atoms, s.atom(sign))
		end := s.at
		for end < len(text) && isSign(rune(text[end])) {
			end++
		}
		if end == s.at || end == len(text) {
			return
		}
		if r, _ := runeAt(text, end); atomRune(r) == 0 {
			return
		}
		sign, s.at = hashOfSigns(text[s.at:end]), end
	}
}

// hashOfSigns returns the hash of signs. A backslash is a slash, and several slashes are one.
func hashOfSigns(signs string) uint64 {
	h, last := hashBasis, byte(0)
	for i := range len(signs) {
		b := signs[i]
		if b == '\\' {
			b = '/'
		}
		if b != '/' || last != '/' {
			h = mix(h, uint64(b))
		}
		last = b
	}
	return h
}

// atom reads an atom.
func (s *runScanner) atom(sign uint64) atom {
	text := s.run.text
	a := atom{begin: s.at, sign: sign, hash: hashBasis, hex: true}
	tail := hashBasis
	for s.at < len(text) {
		r, size := runeAt(text, s.at)
		if r = atomRune(r); r == 0 {
			break
		}
		if r == '_' && a.number() && a.length > 0 && s.at+1 < len(text) && '0' <= text[s.at+1] && text[s.at+1] <= '9' {
			s.at++
			continue
		}
		if digit := '0' <= r && r <= '9'; digit {
			a.digits++
			tail = mix(tail, uint64(r))
		} else {
			if a.number() && a.length > 0 {
				a.lead = a.hash
			}
			tail = hashBasis
			a.hex = a.hex && 'a' <= r && r <= 'f'
			a.snake = a.snake || r == '_' && a.length > 0
		}
		a.hash = mix(a.hash, uint64(r))
		a.length++
		s.at += size
	}
	if tail != hashBasis && !a.number() {
		a.tail = tail
	}
	a.end = s.at
	return a
}

func runeAt(text string, i int) (rune, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRuneInString(text[i:])
}

// atomRune returns a character of an atom as it counts, 0 for what belongs to none.
func atomRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return atomBytes[r]
	case 0xFF01 <= r && r <= 0xFF5E: // full-width forms of ASCII
		return atomBytes[r-0xFEE0]
	case unicode.IsDigit(r):
		return '0' + digitValue(r)
	case withoutSpaces(r):
		return 0
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return unicode.ToLower(r)
	}
	return 0
}

var atomBytes = func() (all [utf8.RuneSelf]rune) {
	for i := range all {
		r := rune(i)
		switch {
		case '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || r == '_':
			all[i] = r
		case 'A' <= r && r <= 'Z':
			all[i] = r + 'a' - 'A'
		}
	}
	return all
}()

// digitValue returns the value of a decimal digit: those of a script are ten in a row.
func digitValue(r rune) (value rune) {
	for value < 9 && unicode.IsDigit(r-1) {
		r--
		value++
	}
	return value
}

// withoutSpaces reports whether a letter is of a script that has no spaces between words, or none after numbers.
func withoutSpaces(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// isSign reports whether a character can stand between the atoms of a run.
func isSign(r rune) bool {
	return r < utf8.RuneSelf && strings.IndexByte(`./\-:@#%+=&?~$`, byte(r)) >= 0
}
