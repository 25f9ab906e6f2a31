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
	choices   *int                // how many choices of lines were made so far, for all that know the same names
}

// reading returns what was found in texts so far.
func (m *Memory) reading() *read {
	if m.read == nil {
		m.read = newRead(new(int))
	}
	return m.read
}

func newRead(choices *int) *read {
	return &read{lines: map[string][]line{}, sentences: map[string]decision{}, choices: choices}
}

// unread forgets what was found in texts, since names weigh something else.
func (m *Memory) unread() {
	if m.read != nil {
		m.read = newRead(m.read.choices)
	}
}

// line is a line of a quote that has names.
type line struct {
	text  string
	at    int // its number
	size  int // in tokens
	names []weighed
	over  float64 // by what its size divides its worth
	more  float64 // how much more it counts for what it says
}

// weighed is a name with its weight as of now.
type weighed struct {
	*known
	weight float64
}

// begin begins a choice of lines beside names that were seen, and returns its number.
func (m *Memory) begin(seen Seen) (choice int) {
	choices := m.reading().choices
	*choices++
	for name := range seen {
		if k := m.known[name]; k != nil {
			k.shown = *choices
		}
	}
	return *choices
}

// linesOf returns the lines of a text that have names which are remembered.
func (m *Memory) linesOf(text string) []line {
	all := m.reading().lines
	list, known := all[text]
	if known {
		return list
	}
	at := 0
	for t := range strings.Lines(text) {
		at++
		t = clipped(t)
		b := unsafe.Slice(unsafe.StringData(t), len(t)) // which is only read
		if found := m.weighed(b); len(found) > 0 {
			l := line{text: t, at: at, size: tokens.Estimate(b) + 1, names: found, more: 1}
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

// weighed returns the names in a line that are remembered, with repetitions.
func (m *Memory) weighed(text []byte) (found []weighed) {
	for name := range names.Scan(text, false) {
		if k := m.known[string(name.Text)]; k != nil {
			found = append(found, weighed{k, k.at(m.clock)})
		}
	}
	return found
}

// worthIn returns what a line is worth for its size in a choice: what the names in it are that nothing else has.
func (l *line) worthIn(choice int) (sum float64) {
	for i := range l.names {
		if k := &l.names[i]; k.shown != choice {
			sum += k.weight
		}
	}
	return float64(sum*l.more) / l.over
}
