package tokens

import (
	_ "embed"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A weight is what a byte adds to the estimate when it comes after another, in thousandths of a token. The tokens of a
// text depend on where words, numbers and runs begin, and two neighbouring bytes show that: a small letter after a
// small letter is nearly free, a digit after a capital (base64, hashes) is not. In UTF-8 the first two bytes of a
// character also identify its script. One look-up a byte is as fast as counting bytes would be.
//
// The numbers were fitted to the o200k vocabulary; see docs/tokens.md.
var weights = buildWeights()

var (
	//go:embed weights_ascii.txt
	asciiText string
	//go:embed weights_scripts.txt
	scriptsText string
)

// start is the byte before the first one of a text. UTF-8 never contains it.
const start = 0xFF

// pair returns the index of a byte and the one before it.
func pair(before, b byte) uint16 { return uint16(before) | uint16(b)<<8 }

// class sorts the bytes of ASCII by what tokenizers do with them, in the order of weights_ascii.txt.
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
	operator // all bytes of ASCII that no other class has
	beyond   // any byte that is not ASCII
)

var punctuation = map[class]string{
	blank: " ", newline: "\n\r", tab: "\t", underscore: "_", mark: ".,:;!?", quote: "\"'`",
	opening: "([{<", closing: ")]}>", slash: `/\`,
}

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
	for c, members := range punctuation {
		if strings.IndexByte(members, b) >= 0 {
			return c
		}
	}
	if b < ' ' || b == 0x7F {
		return control
	}
	return operator
}

// What the first byte of a character beyond ASCII weighs beside the character itself, by what is before it.
const (
	afterLetter = 78   // in a word: é in café
	afterOther  = 1312 // after a digit, a mark, a line's end
)

func buildWeights() [1 << 16]uint16 {
	t := tables{ascii: numbers(asciiText), scripts: numbers(scriptsText)}
	for b := range t.classes {
		t.classes[b] = classOf(byte(b))
	}
	var table [1 << 16]uint16
	for b := range 256 {
		lightest := ^uint16(0)
		for before := range start {
			weight := t.weight(byte(before), byte(b))
			table[pair(byte(before), byte(b))] = weight
			lightest = min(lightest, weight)
		}
		// Cutting off a beginning must not raise the estimate: nothing weighs more at the start of a text.
		table[pair(start, byte(b))] = lightest
	}
	return table
}

// tables are what weights are built from.
type tables struct {
	classes [256]class // of each byte
	ascii   [][]int    // by the class before: the weight of the same byte once more or -1, then a weight for each class
	scripts [][]int    // the first code point and the weight, in ascending order
}

// numbers returns the numbers in each line of a table; the words beside them and lines that begin with # are comments.
func numbers(table string) (rows [][]int) {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var row []int
		for field := range strings.FieldsSeq(line) {
			if n, err := strconv.ParseInt(field, 0, 32); err == nil {
				row = append(row, int(n))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (t *tables) weight(before, b byte) uint16 {
	row, c := t.ascii[t.classes[before]], t.classes[b]
	switch {
	case c != beyond && before == b && row[0] >= 0:
		return uint16(row[0])
	case c != beyond:
		return uint16(row[1+c])
	case utf8.RuneStart(b):
		return leadWeight(t.classes[before])
	case before >= 0xC2 && utf8.RuneStart(before):
		return t.scriptWeight(blockOf(before, b))
	}
	return 0
}

func leadWeight(before class) uint16 {
	switch before {
	case lower, upper:
		return afterLetter
	case blank, beyond:
		return 0
	}
	return afterOther
}

// blockOf returns the first code point of the characters that begin with these two bytes.
func blockOf(lead, next byte) int {
	low := int(next & 0x3F)
	switch {
	case lead < 0xE0:
		return int(lead&0x1F)<<6 | low
	case lead < 0xF0:
		return int(lead&0x0F)<<12 | low<<6
	}
	return int(lead&0x07)<<18 | low<<12
}

func (t *tables) scriptWeight(r int) (weight uint16) {
	for _, script := range t.scripts {
		if script[0] > r {
			break
		}
		weight = uint16(script[1])
	}
	return weight
}
