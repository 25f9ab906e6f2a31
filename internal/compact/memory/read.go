package memory

import (
	"math"
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
	choices   *int                // how many choices were made so far, for all that know the same names
}

// reading returns what was found in texts so far. With the first of them it sets what each name weighs now.
func (m *Memory) reading() *read {
	if m.read == nil {
		m.read = &read{choices: new(int)}
	}
	if r := m.read; r.lines == nil {
		r.lines, r.sentences = map[string][]line{}, map[string]decision{}
		for _, k := range m.known {
			k.now = k.at(m.clock)
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
	for name := range names.Scan(text, escaped) {
		if k := m.known[string(name.Text)]; k != nil {
			dst = append(dst, k)
		}
	}
	return dst
}

// Show tells the choice of names that the view has.
func (c *Choice) Show(list Names) {
	for _, k := range list {
		k.shown = c.number
	}
}

func (c *Choice) showText(text string) { c.Show(c.NamesIn(nil, []byte(text), false)) }

// line is a line of a quote that has names.
type line struct {
	text  string
	at    int // its number
	size  int // in tokens
	names Names
	over  float64 // by what its size divides its worth
	more  float64 // how much more it counts for what it says
}

// linesOf returns the lines of a text that have names which are remembered.
func (m *Memory) linesOf(text string) []line {
	all := m.reading().lines
	list, known := all[text]
	if known {
		return list
	}
	at := 0
	var found Names // of all lines
	for t := range strings.Lines(text) {
		at++
		t = clipped(t)
		b := unsafe.Slice(unsafe.StringData(t), len(t)) // which is only read
		before := len(found)
		if found = m.NamesIn(found, b, false); len(found) > before {
			l := line{text: t, at: at, size: tokens.Estimate(b) + 1, names: found[before:], more: 1}
			l.over = math.Pow(float64(l.size+3), linePower)
			if defines(t) {
				l.more = definesMore
			}
			list = append(list, l)
		}
	}
	all[text] = list
	return list
}

// worthIn returns what a line is worth for its size in a choice: what the names in it are that nothing else has.
func (l *line) worthIn(choice int) (sum float64) {
	for _, k := range l.names {
		if k.shown != choice {
			sum += k.now
		}
	}
	return float64(sum*l.more) / l.over
}
