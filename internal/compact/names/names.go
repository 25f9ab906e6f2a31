// Package names finds identifying names in text: paths, symbols, ids, and settings with their values. These are what an
// agent must still know of a text that it cannot see any more, to ask for the right thing again. It is pure.
//
// Start at Scan, which yields every name of a text. Cache asks once for words that repeat; masks.go finds the words.
package names

import (
	"bytes"
	"iter"
	"math/bits"
	"slices"
)

// Kind is what a name names.
type Kind uint8

// The kinds of names.
const (
	Path    Kind = iota // the last two elements of a path, or a file's name
	Symbol              // an identifier of a program
	ID                  // a hash, a ticket, a number that is an id
	Setting             // a key and its value
	Number              // digits alone
)

// Name is a name as it stands in its text.
type Name struct {
	Text []byte
	Kind Kind
}

// The lengths of a name in bytes.
const (
	minLength = 4
	maxLength = 96
)

// Scan yields the names in a text, in order and with repetitions, but for what looks like a key or encoded data. Of
// a string literal of JSON, which is escaped, it reads every escape as a separator.
func Scan(text []byte, escaped bool) iter.Seq[Name] {
	return func(yield func(Name) bool) {
		s := scanner{text: text, escaped: escaped}
		for s.next() {
			if name, ok := s.name(); ok && !isRandom(name.Text) && !yield(name) {
				return
			}
		}
	}
}

// scanner finds the words of a text that may be names: a word is a longest run of bytes that may be part of a name.
// Most words are ordinary ones, of which it looks at none: it reads a text in blocks, whose masks have a bit for every
// byte.
type scanner struct {
	text       []byte
	escaped    bool
	start, end int   // of the current word
	last       int   // end of the word before
	before     int   // its start
	has        class // digits and joints, if the current word has some, and letters

	base, size int // of the block
	masks
	telling uint64 // digits, joints, and capitals after small letters, of words that are still to come
	single  bool   // the block is one word
	passed  span   // the last word before the block
}

// class is what bytes are in a name. A byte has one, a word those of its bytes.
type class uint8

const (
	lower class = 1 << iota
	upper
	digit
	joint // between others: . / _ - : @ #

	separator class = 0
	letter          = lower | upper
)

var classes = func() (table [256]class) {
	for c := range table {
		switch {
		case 'a' <= c && c <= 'z':
			table[c] = lower
		case 'A' <= c && c <= 'Z':
			table[c] = upper
		case '0' <= c && c <= '9':
			table[c] = digit
		case bytes.IndexByte([]byte("./_-:@#"), byte(c)) >= 0:
			table[c] = joint
		}
	}
	return table
}()

// next moves to the next word that may be a name and reports whether there is one.
func (s *scanner) next() bool {
	for s.telling == 0 {
		s.pass()
		if s.base >= len(s.text) {
			return false
		}
		s.read()
	}
	if s.before, s.last = s.passed.start, s.passed.end; s.single {
		s.telling = 0
		s.start, s.end = s.base, s.base+s.size
		s.has = kindsIn(s.text[s.start:s.end])
		return true
	}
	word := runAt(s.words, bits.TrailingZeros64(s.telling))
	s.telling &^= below(word.end)
	if earlier := s.words & below(word.start); earlier != 0 {
		before := runAt(earlier, bits.Len64(earlier)-1)
		s.before, s.last = s.base+before.start, s.base+before.end
	}
	s.start, s.end = s.base+word.start, s.base+word.end
	own := below(word.end) &^ below(word.start)
	s.has = 0
	if s.digits&own != 0 {
		s.has |= digit
	}
	if s.joints&own != 0 {
		s.has |= joint
	}
	if s.words&own&^(s.digits|s.joints) != 0 {
		s.has |= letter
	}
	return true
}

// pass moves behind the block.
func (s *scanner) pass() {
	if s.single {
		s.passed = span{s.base, s.base + s.size}
	} else if s.words != 0 {
		last := runAt(s.words, bits.Len64(s.words)-1)
		s.passed = span{s.base + last.start, s.base + last.end}
	}
	s.base += s.size
}

// read reads the next block, which ends neither in a word nor in an escape.
func (s *scanner) read() {
	block := s.text[s.base:min(len(s.text), s.base+blockSize)]
	s.size, s.masks = len(block), masksOf(block)
	if s.escaped && s.escapes != 0 {
		s.skipEscapes()
	}
	end := bits.Len64(^s.words & below(s.size)) // of the last separator
	s.single = false
	switch {
	case s.base+s.size == len(s.text):
	case end > 0:
		s.size = end
	default:
		s.lengthen()
	}
	s.keep(below(min(s.size, blockSize)))
	s.telling = s.digits | s.joints | s.capitals&(s.small()<<1)
	if s.single && s.telling == 0 && mayName(s.text[s.base:s.base+s.size]) {
		s.telling = 1
	}
}

// lengthen makes a block that is nothing but the beginning of a word as long as the word.
func (s *scanner) lengthen() {
	s.single = true
	for s.base+s.size < len(s.text) && classes[s.text[s.base+s.size]] != separator {
		s.size++
	}
}

// mayName reports whether a word is no ordinary one.
func mayName(word []byte) bool { return kindsIn(word)&(digit|joint) != 0 || hasHump(word) }

// kindsIn returns whether a word has digits, joints and letters.
func kindsIn(word []byte) (has class) {
	for _, c := range word {
		if has |= classes[c]; has&letter != 0 {
			has |= letter
		}
	}
	return has
}

// skipEscapes makes separators of what the backslashes of the block escape. It ends the block before an escape that
// continues behind it.
func (s *scanner) skipEscapes() {
	for left := s.escapes; left != 0; {
		at := bits.TrailingZeros64(left)
		end := at + escapeWidth(s.text[s.base+at:])
		if end > s.size && s.base+s.size < len(s.text) {
			s.size = at
			return
		}
		escape := below(end) &^ below(at)
		s.keep(^escape)
		left &^= escape
	}
}

// escapeWidth returns how many bytes the escape has that a text begins with.
func escapeWidth(text []byte) int {
	if len(text) > 1 && text[1] == 'u' {
		return 6
	}
	return 2
}

// name returns the current word as a name, if it is one.
func (s *scanner) name() (Name, bool) {
	word := s.text[s.start:s.end]
	if len(word) < minLength && (s.has&letter != 0 || len(word) < 2) { // a number may have a key before it
		return Name{}, false
	}
	if s.has&joint != 0 {
		if word = trimmed(word); s.has&digit != 0 {
			word = trimmed(withoutPosition(word))
		}
	}
	if len(word) > maxLength {
		return longPath(word)
	}
	f := featuresOf(word)
	if f.letters == 0 {
		return s.number(word, f)
	}
	if len(word) < minLength {
		return Name{}, false
	}
	if f.slashes > 0 {
		return pathOf(word, f)
	}
	kind, ok := f.kind(word)
	return Name{word, kind}, ok
}

// isRandom reports whether a name has a long part of upper and lower letters and digits, as keys and base64 have.
func isRandom(name []byte) bool {
	const long, many = 20, 3
	if len(name) < long {
		return false
	}
	var seen struct{ all, upper, lower, digit int }
	for _, c := range name {
		switch classes[c] {
		case upper:
			seen.upper++
		case lower:
			seen.lower++
		case digit:
			seen.digit++
		default:
			seen = struct{ all, upper, lower, digit int }{}
			continue
		}
		if seen.all++; seen.all >= long && min(seen.upper, seen.lower, seen.digit) >= many {
			return true
		}
	}
	return false
}

// trimmed returns a word without the joints around it and without the slashes that begin a comment.
func trimmed(word []byte) []byte {
	for bytes.HasPrefix(word, []byte("//")) {
		word = word[1:]
		if !bytes.HasPrefix(word, []byte("//")) {
			word = word[1:]
		}
	}
	start, end := 0, len(word)
	for start < end && classes[word[start]] == joint && word[start] != '/' && word[start] != '_' {
		start++
	}
	for end > start && classes[word[end-1]] == joint && word[end-1] != '_' {
		end--
	}
	return word[start:end]
}

// withoutPosition returns a word without the line and the column after a file's name, and without the number of a line
// before its text, as search tools print them: main.go:12:3, main.go-12-, 12:func.
func withoutPosition(word []byte) []byte {
	if !startsWithDigit(word) && !endsWithDigit(word) {
		return word
	}
	base := withoutNumber(word)
	if !isFile(base) {
		base = withoutNumber(base)
	}
	if isFile(base) {
		word = base
	}
	i := 0
	for i < len(word) && classes[word[i]] == digit {
		i++
	}
	if i > 0 && i+1 < len(word) && (word[i] == ':' || word[i] == '-') && classes[word[i+1]] != digit {
		return word[i+1:]
	}
	return word
}

// withoutNumber returns a word without a number at its end and the colon or dash before it.
func withoutNumber(word []byte) []byte {
	i := len(word)
	for i > 0 && classes[word[i-1]] == digit {
		i--
	}
	if i < 2 || i == len(word) || word[i-1] != ':' && word[i-1] != '-' {
		return word
	}
	return word[:i-1]
}

// isFile reports whether a word ends like a file's name rather than a host's, after which a number is its port.
func isFile(word []byte) bool {
	switch string(word[bytes.LastIndexByte(word, '.')+1:]) {
	case "com", "org", "net", "io", "dev", "local":
		return false
	}
	return hasExtension(word)
}

// startsWithDigit reports whether the first byte of a word is a digit.
func startsWithDigit(word []byte) bool { return len(word) > 0 && classes[word[0]] == digit }

func endsWithDigit(word []byte) bool { return len(word) > 0 && classes[word[len(word)-1]] == digit }

// features are how many bytes of each kind a word has.
type features struct {
	letters, uppers, digits, dots, slashes, dashes, underscores, colons int
}

// counted has for each byte a one in the place of every feature that it has, eight bits each: so a word, which has less
// than 256 bytes, is counted by one addition a byte.
var counted = func() (table [256]uint64) {
	for c, is := range classes {
		switch is {
		case lower:
			table[c] = 1
		case upper:
			table[c] = 1 | 1<<8
		case digit:
			table[c] = 1 << 16
		}
	}
	for i, c := range []byte("./-_:") {
		table[c] = 1 << (24 + 8*i)
	}
	return table
}()

func featuresOf(word []byte) features {
	sum := uint64(0)
	for _, c := range word {
		sum += counted[c]
	}
	return features{
		letters: int(uint8(sum)), uppers: int(uint8(sum >> 8)), digits: int(uint8(sum >> 16)),
		dots: int(uint8(sum >> 24)), slashes: int(uint8(sum >> 32)), dashes: int(uint8(sum >> 40)),
		underscores: int(uint8(sum >> 48)), colons: int(uint8(sum >> 56)),
	}
}

// isHex reports whether all letters of a word are hexadecimal digits.
func isHex(word []byte) bool {
	return !slices.ContainsFunc(word, func(c byte) bool { return classes[c]&letter != 0 && c|0x20 > 'f' })
}

// hasHump reports whether a word has an upper letter directly after a lower one.
func hasHump(word []byte) bool {
	for i := 1; i < len(word); i++ {
		if classes[word[i]] == upper && classes[word[i-1]] == lower {
			return true
		}
	}
	return false
}

// kind returns what a word without a slash names; it reports false for an ordinary word.
func (f *features) kind(word []byte) (Kind, bool) {
	const shortHash = 7
	plain := f.dots == 0 && f.underscores == 0 && f.colons == 0
	switch {
	case plain && f.digits > 0 && len(word) >= shortHash && isHex(word):
		return ID, true
	case f.uppers == f.letters && f.letters <= 6 && f.dashes == 1 && f.digits > 0 && plain:
		return ID, true
	case f.dots > 0 && hasExtension(word):
		return Path, true
	case f.underscores > 0 || f.dots > 0 && f.letters > f.dots+2 || hasHump(word):
		return Symbol, f.letters > 2
	case f.digits > 0 && f.letters > 1:
		return ID, !startsWithDigit(word) || f.letters > 3
	case f.dashes > 1 && f.uppers == 0:
		return Symbol, f.letters > 4*f.dashes // not drwxr-xr-x
	case f.colons > 0 && f.letters > 4:
		return Symbol, true
	}
	return 0, false
}

// hasExtension reports whether a word ends like a file's name.
func hasExtension(word []byte) bool {
	i := bytes.LastIndexByte(word, '.')
	if i <= 0 || len(word)-i-1 > 5 || i == len(word)-1 {
		return false
	}
	for _, c := range word[i+1:] {
		if !('a' <= c && c <= 'z' || classes[c] == digit) {
			return false
		}
	}
	return classes[word[i+1]] == lower
}

// pathOf returns the last two elements of a path; it reports false for words such as "and/or".
func pathOf(word []byte, f features) (Name, bool) {
	word = bytes.TrimRight(word, "/")
	name := lastElements(word)
	sure := f.slashes > 1 || f.dots > 0 || f.underscores > 0 || f.digits > 0 || f.dashes > 0 || word[0] == '/'
	return Name{name, Path}, sure && len(name) >= minLength
}

// longPath returns the end of a path that is too long for a name; it reports false for other long words.
func longPath(word []byte) (Name, bool) {
	name := lastElements(word)
	return Name{name, Path}, len(name) <= maxLength && len(name) >= minLength && len(name) < len(word)
}

// lastElements returns the last two elements of a path.
func lastElements(word []byte) []byte {
	i := bytes.LastIndexByte(word, '/')
	if i > 0 {
		if i = bytes.LastIndexByte(word[:i], '/'); i >= 0 {
			return word[i+1:]
		}
	}
	return bytes.TrimLeft(word, "/")
}

// number returns a number together with the key before it, or a number that is long enough to name something.
func (s *scanner) number(word []byte, f features) (Name, bool) {
	const longNumber = 5
	if f.digits < 2 || f.digits > 20 {
		return Name{}, false
	}
	if f.dots == 3 && f.dashes+f.slashes == 0 { // an address
		return Name{word, ID}, true
	}
	end := s.start + bytes.Index(s.text[s.start:s.end], word) + len(word)
	if s.keyBefore() {
		return Name{s.text[s.before:end], Setting}, true
	}
	return Name{word, Number}, f.digits >= longNumber && f.dots+f.colons == 0
}

// keyBefore reports whether the current word is the value of the key before it.
func (s *scanner) keyBefore() bool {
	key := s.text[s.before:s.last]
	if len(key) < 2 || len(key) > 40 || classes[key[0]]&letter == 0 {
		return false
	}
	for _, c := range key {
		if classes[c]&letter == 0 && c != '_' && c != '-' && c != '.' && c != ':' {
			return false
		}
	}
	between := s.text[s.last:s.start]
	switch string(bytes.TrimRight(between, " ")) {
	case "=", `\"`, `"`, `\"=`, `"=`:
		return true
	case "":
		return key[len(key)-1] == ':' || isKeyword(key)
	}
	return false
}

// isKeyword reports whether a number after the word is its value without any sign between.
func isKeyword(word []byte) bool {
	switch string(bytes.ToLower(word)) {
	case "port", "pid", "id", "issue", "pr", "ticket", "code", "status", "version", "build", "job", "order", "user":
		return true
	}
	return false
}
