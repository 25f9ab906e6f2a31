package memory

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/varve-dev/varve/internal/compact/names"
	"github.com/varve-dev/varve/internal/tokens"
)

// read is what was found in texts, so that each is read once however often a summary of them is written: what names
// weigh changes only when something is noted.
type read struct {
	lines     map[string][]line   // of the text of a quote
	sentences map[string]decision // by their texts
	filter    *filter             // of the names that are known
	cache     *names.Cache[*known]
	ranked    []ranked // all names, if they were asked for
	scratch   []line   // of the text that is being read
	named     Names    // in it
	choices   *int     // how many choices were made so far, for all that know the same names
}

// reading returns what was found in texts so far. With the first of them it sets what each name weighs now.
func (m *Memory) reading() *read {
	if m.read == nil {
		m.read = &read{choices: new(int)}
	}
	if r := m.read; r.lines == nil {
		r.lines, r.sentences = map[string][]line{}, map[string]decision{}
		r.filter, r.cache = new(filter), new(names.Cache[*known])
		for _, k := range m.known {
			k.now = k.at(m.clock)
			r.filter.add(bytesOf(k.name))
		}
	}
	return m.read
}

// unread forgets what was found in texts, since names weigh something else.
func (m *Memory) unread() {
	if m.read != nil {
		m.read = &read{choices: m.read.choices}
	}
}

// Choice is what a view is to have of what is remembered, besides what it shows anyway.
type Choice struct {
	*Memory
	number int
}

// Choose begins a choice, in which nothing is shown yet.
func (m *Memory) Choose() *Choice {
	choices := m.reading().choices
	*choices++
	return &Choice{m, *choices}
}

// Names are the remembered names in a text, with repetitions.
type Names []*known

// NamesIn appends the remembered names in a text.
func (m *Memory) NamesIn(dst Names, text []byte, escaped bool) Names {
	m.eachKnown(text, escaped, func(k *known, _ int) { dst = append(dst, k) })
	return dst
}

// eachKnown calls use for each remembered name in a text, and where it begins.
func (m *Memory) eachKnown(text []byte, escaped bool, use func(k *known, at int)) {
	r := m.reading()
	find := func(name names.Name) *known {
		if !r.filter.may(name.Text) {
			return nil
		}
		return m.known[string(name.Text)]
	}
	r.cache.Each(text, escaped, find, func(k *known, at int) bool {
		if k != nil {
			use(k, at)
		}
		return true
	})
}

// filter tells of most names that they are not known, for less than the map needs.
type filter [1 << 10]uint64

func (f *filter) add(name []byte) {
	place := placeOf(name)
	f[place>>6] |= 1 << (place & 63)
}

func (f *filter) may(name []byte) bool {
	place := placeOf(name)
	return f[place>>6]>>(place&63)&1 != 0
}

// placeOf returns a hash of the ends and of the length of a name.
func placeOf(name []byte) uint16 {
	const ends = 4 // bytes
	if len(name) < ends {
		return 0
	}
	first, last := binary.LittleEndian.Uint32(name), binary.LittleEndian.Uint32(name[len(name)-ends:])
	return uint16((first*0x9E3779B1 ^ last*0x85EBCA6B + uint32(len(name))*0xC2B2AE35) >> 16)
}

// Show tells the choice of names that the view has.
func (c *Choice) Show(list Names) {
	for _, k := range list {
		k.shown = c.number
	}
}

func (c *Choice) showText(text string) {
	c.eachKnown(bytesOf(text), false, func(k *known, _ int) { k.shown = c.number })
}

// line is a line of a quote that has names.
type line struct {
	text  string
	size  int // in tokens
	names Names
	over  float64 // by what its size divides its worth
	more  float64 // how much more it counts for what it says
}

// linesOf returns the lines of a text that have names which are remembered.
func (m *Memory) linesOf(text string) []line {
	all := m.reading().lines
	if list, known := all[text]; known {
		return list
	}
	r := m.read
	r.scratch, r.named = r.scratch[:0], r.named[:0]
	short := 0 // where lines begin of which none is long
	for at := 0; at < len(text); {
		end := lineEnd(text, at)
		if end-at > longestLine {
			m.readLines(text[short:at])
			m.readLong(text[at:end])
			short = end
		}
		at = end
	}
	m.readLines(text[short:])
	list, found := slices.Clone(r.scratch), slices.Clone(r.named)
	for i := range list {
		n := len(list[i].names)
		list[i].names, found = found[:n:n], found[n:]
	}
	all[text] = list
	return list
}

// lineEnd returns the end of the line that has a byte of a text, behind its line feed.
func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// readLines adds the lines of a text, none of them long, that have names which are remembered. It looks at no other
// line: no name reaches over a line's end.
func (m *Memory) readLines(text string) {
	r, end := m.read, 0
	m.eachKnown(bytesOf(text), false, func(k *known, at int) {
		if at >= end {
			begin := strings.LastIndexByte(text[:at], '\n') + 1
			end = lineEnd(text, at)
			r.scratch = append(r.scratch, newLine(clipped(text[begin:end])))
		}
		r.named = append(r.named, k)
		last := &r.scratch[len(r.scratch)-1]
		last.names = r.named[len(r.named)-len(last.names)-1:]
	})
}

// readLong adds a long line, if what is kept of it has names which are remembered.
func (m *Memory) readLong(text string) {
	r, before := m.read, len(m.read.named)
	text = clipped(text)
	if r.named = m.NamesIn(r.named, bytesOf(text), false); len(r.named) > before {
		l := newLine(text)
		l.names = r.named[before:]
		r.scratch = append(r.scratch, l)
	}
}

// newLine returns a line without its names.
func newLine(text string) line {
	l := line{text: text, size: tokens.Estimate(bytesOf(text)) + 1, more: 1}
	l.over = overOf(l.size)
	if defines(text) {
		l.more = definesMore
	}
	return l
}

// bytesOf returns the bytes of a text, which may only be read.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// overOf returns by what the worth of a line of some tokens is divided.
func overOf(size int) float64 {
	if size < len(overs) {
		return overs[size]
	}
	return math.Pow(float64(size+3), linePower)
}

var overs = func() (list [longestLine]float64) {
	for size := range list {
		list[size] = math.Pow(float64(size+3), linePower)
	}
	return list
}()

// worthIn returns what a line is worth for its size in a choice: what the names in it are that nothing else has.
func (l *line) worthIn(choice int) (sum float64) {
	for _, k := range l.names {
		if k.shown != choice {
			sum += k.now
		}
	}
	return float64(sum*l.more) / l.over
}
