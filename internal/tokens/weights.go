package tokens

import "unicode/utf8"

// A weight is what a byte adds to the estimate when it comes after another, in thousandths of a token. What a
// tokenizer makes of a text hangs on where words, numbers and runs begin, and two neighbours show that: a small
// letter after a small letter is nearly free, a digit after a capital (base64, hashes) is not. In UTF-8 the first two
// bytes of a character also tell its script. One look-up a byte is as fast as counting bytes would be.
//
// The numbers were fitted to the o200k vocabulary; see docs/tokens.md.
var weights = buildWeights()

// start stands before the first byte of a text. No UTF-8 has this byte.
const start = 0xFF

// pair returns the index of a byte and the one before it.
func pair(before, b byte) uint16 { return uint16(before) | uint16(b)<<8 }

// class sorts the bytes of ASCII by what tokenizers do with them.
type class int

const (
	control class = iota
	blank
	newline
	tab
	lower
	upper
	digit
	underscore
	mark
	quote
	opening
	closing
	slash
	operator
	classes
	beyond = classes // any byte that is not ASCII
)

func classOf(b byte) class {
	switch {
	case b >= utf8.RuneSelf:
		return beyond
	case 'a' <= b && b <= 'z':
		return lower
	case 'A' <= b && b <= 'Z':
		return upper
	case '0' <= b && b <= '9':
		return digit
	}
	switch b {
	case ' ':
		return blank
	case '\n', '\r':
		return newline
	case '\t':
		return tab
	case '_':
		return underscore
	case '.', ',', ':', ';', '!', '?':
		return mark
	case '"', '\'', '`':
		return quote
	case '(', '[', '{', '<':
		return opening
	case ')', ']', '}', '>':
		return closing
	case '/', '\\':
		return slash
	}
	if b < ' ' || b == 0x7F {
		return control
	}
	return operator
}

// ascii holds the weights of ASCII bytes: a row for the class before, a column for the class itself, in the order of
// the constants.
var ascii = [classes + 1][classes]uint16{
	control:    {373, 300, 325, 305, 300, 300, 300, 300, 302, 300, 297, 300, 300, 300},
	blank:      {305, 300, 0, 610, 273, 0, 1525, 1045, 485, 561, 0, 425, 371, 805},
	newline:    {319, 926, 0, 512, 2500, 412, 730, 274, 454, 154, 541, 0, 581, 528},
	tab:        {305, 302, 300, 300, 584, 818, 562, 653, 291, 718, 587, 392, 1077, 328},
	lower:      {300, 218, 864, 691, 128, 213, 1006, 0, 364, 472, 444, 414, 49, 531},
	upper:      {300, 0, 518, 935, 612, 401, 2500, 0, 0, 787, 1306, 366, 594, 477},
	digit:      {300, 783, 2162, 1354, 942, 1880, 254, 494, 803, 360, 611, 385, 1739, 793},
	underscore: {300, 400, 304, 300, 476, 0, 705, 300, 189, 514, 324, 504, 267, 334},
	mark:       {300, 1067, 728, 632, 932, 0, 408, 918, 204, 596, 868, 303, 0, 0},
	quote:      {300, 852, 213, 300, 512, 301, 461, 774, 138, 328, 667, 724, 303, 451},
	opening:    {300, 301, 1034, 315, 788, 72, 1890, 235, 720, 333, 233, 171, 0, 459},
	closing:    {300, 544, 265, 340, 553, 604, 643, 315, 0, 233, 0, 560, 939, 85},
	slash:      {300, 0, 528, 272, 1342, 1173, 0, 216, 104, 247, 190, 459, 346, 543},
	operator:   {300, 278, 808, 909, 638, 82, 542, 376, 629, 178, 125, 471, 73, 810},
	beyond:     {300, 547, 267, 147, 0, 226, 1367, 303, 24, 1619, 400, 679, 541, 0},
}

// again are the weights of the same byte once more: runs of blanks, dashes and brackets are few tokens. Letters and
// digits are no runs.
var again = map[class]uint16{
	control: 370, blank: 33, newline: 0, tab: 358, underscore: 195, mark: 7,
	quote: 286, opening: 0, closing: 0, slash: 71, operator: 42,
}

// What the first byte of a character beyond ASCII weighs beside the character itself, by what is before it.
const (
	afterLetter = 78   // in a word: é in café
	afterOther  = 1312 // after a digit, a mark, a line's end
)

// scripts are the weights of characters beyond ASCII, each from its first code point to the next one's. Of a
// character of three or four bytes the first two tell only its block, of 64 or 4096: a script begins with one.
var scripts = []struct {
	from   rune
	weight uint16
}{
	{0x80, 392},     // Latin-1
	{0x100, 1690},   // Latin Extended and phonetics
	{0x2C0, 1463},   // modifiers and combining marks
	{0x370, 310},    // Greek
	{0x400, 195},    // Cyrillic as Russian has it
	{0x450, 1000},   // Ukrainian, Serbian and older letters
	{0x48A, 400},    // of other languages
	{0x530, 237},    // Armenian
	{0x590, 344},    // Hebrew
	{0x600, 238},    // Arabic
	{0x700, rare},   // Syriac to Samaritan
	{0x900, 256},    // Devanagari
	{0x980, 300},    // Bengali
	{0xA00, 488},    // Gurmukhi
	{0xA80, 301},    // Gujarati
	{0xB00, rare},   // Oriya
	{0xB80, 309},    // Tamil
	{0xC00, 373},    // Telugu and Kannada
	{0xD00, 299},    // Malayalam
	{0xD80, 546},    // Sinhala
	{0xE00, 411},    // Thai
	{0xE80, 1865},   // Lao
	{0xF00, 1515},   // Tibetan
	{0x1000, 514},   // Burmese
	{0x1080, 237},   // Georgian
	{0x1100, 668},   // Hangul Jamo
	{0x1200, rare},  // Ethiopic to Ogham
	{0x1780, 614},   // Khmer
	{0x1800, rare},  // Mongolian to phonetic extensions
	{0x1E00, 50},    // Latin for Vietnamese
	{0x1F00, 1500},  // Greek with breathings
	{0x2000, 800},   // dashes, quotation marks, ellipsis
	{0x2040, 200},   // arrows, mathematics, technical symbols
	{0x2500, 292},   // box drawing: it comes in runs
	{0x2580, 600},   // shapes, dingbats
	{0x2E80, 760},   // radicals
	{0x3000, 800},   // CJK punctuation
	{0x3040, 720},   // Hiragana and Katakana
	{0x3100, 760},   // Han
	{0xA000, rare},  // Yi to Meetei
	{0xAC00, 550},   // Hangul
	{0xD7C0, rare},  // private use
	{0xF900, 800},   // compatibility and full-width forms
	{0x10000, 1900}, // emoji and all rarer characters
}

// rare is the weight of a character for which vocabularies have no token: it falls into bytes.
const rare = 2000

func buildWeights() [1 << 16]uint16 {
	var table [1 << 16]uint16
	for b := range 256 {
		least := ^uint16(0)
		for before := range start {
			weight := weightOf(byte(before), byte(b))
			table[pair(byte(before), byte(b))] = weight
			least = min(least, weight)
		}
		// What a cut takes away is never less than what it adds: nothing weighs more at the start of a text.
		table[pair(start, byte(b))] = least
	}
	return table
}

func weightOf(before, b byte) uint16 {
	c := classOf(b)
	switch {
	case c != beyond:
		if weight, run := again[c]; run && before == b {
			return weight
		}
		return ascii[classOf(before)][c]
	case utf8.RuneStart(b):
		return leadWeight(before)
	case before >= 0xC2 && utf8.RuneStart(before):
		return scriptWeight(blockOf(before, b))
	}
	return 0
}

func leadWeight(before byte) uint16 {
	switch classOf(before) {
	case lower, upper:
		return afterLetter
	case blank, beyond:
		return 0
	}
	return afterOther
}

// blockOf returns the first code point of the characters that begin with these two bytes.
func blockOf(lead, next byte) rune {
	low := rune(next & 0x3F)
	switch {
	case lead < 0xE0:
		return rune(lead&0x1F)<<6 | low
	case lead < 0xF0:
		return rune(lead&0x0F)<<12 | low<<6
	}
	return rune(lead&0x07)<<18 | low<<12
}

func scriptWeight(r rune) (weight uint16) {
	for _, s := range scripts {
		if s.from > r {
			break
		}
		weight = s.weight
	}
	return weight
}
