package memory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/tokens"
)

// Index returns the names that are most likely to be needed, in no more than room tokens, without those that are shown.
// Each line begins with the ref of the messages that had its names last.
func (c *Choice) Index(room int) string {
	chosen := c.best(room)
	for len(chosen) > 0 {
		text := lines(chosen)
		over := tokens.Estimate([]byte(text)) - room
		if over <= 0 {
			return text
		}
		chosen = chosen[:len(chosen)-min(len(chosen), over/8+1)]
	}
	return ""
}

// ranked is a name with what it is worth for its length.
type ranked struct {
	*known
	worth float64
}

// costPower is how much the length of a name counts against it.
const costPower = 0.7

// costOf returns by what the worth of a name of some bytes is divided.
func costOf(size int) float64 {
	if size < len(costs) {
		return costs[size]
	}
	return math.Pow(float64(size), costPower)
}

var costs = func() (list [128]float64) {
	for size := range list {
		list[size] = math.Pow(float64(size), costPower)
	}
	return list
}()

// best returns the names that are worth most and fit into about room tokens, the best first.
func (c *Choice) best(room int) []ranked {
	var best []ranked
	for _, k := range c.inRank() {
		if k.shown == c.number {
			continue
		}
		if room -= tokens.Estimate(bytesOf(k.name)) + 1; room < 0 {
			break
		}
		best = append(best, k)
	}
	return best
}

// inRank returns all names, those that are worth most first. It sorts them once.
func (m *Memory) inRank() []ranked {
	r := m.reading()
	if r.ranked == nil {
		r.ranked = make([]ranked, 0, len(m.known))
		for _, k := range m.known {
			r.ranked = append(r.ranked, ranked{k, k.now / costOf(len(k.name))})
		}
		slices.SortFunc(r.ranked, byWorth)
	}
	return r.ranked
}

func byWorth(a, b ranked) int {
	return cmp.Or(cmp.Compare(b.worth, a.worth), strings.Compare(a.name, b.name))
}

// namesOfLine is how many names a line of the index has at least.
const namesOfLine = 12

// lines writes names in the order of their messages, those of one message on one line.
func lines(chosen []ranked) string {
	chosen = slices.Clone(chosen)
	slices.SortFunc(chosen, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), strings.Compare(a.name, b.name))
	})
	var text strings.Builder
	text.Grow(sizeOf(chosen))
	for len(chosen) > 0 {
		n := min(namesOfLine, len(chosen))
		for n < len(chosen) && chosen[n].seq == chosen[n-1].seq {
			n++
		}
		if first, last := chosen[0].seq, chosen[n-1].seq; first == last {
			fmt.Fprintf(&text, "m%d:", first)
		} else {
			fmt.Fprintf(&text, "m%d-%d:", first, last)
		}
		for _, k := range chosen[:n] {
			text.WriteByte(' ')
			text.WriteString(unquoted(k.name))
		}
		text.WriteByte('\n')
		chosen = chosen[n:]
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// sizeOf returns about how many bytes names have in the index.
func sizeOf(chosen []ranked) (size int) {
	const ref = len("m12345-12346:\n") / namesOfLine
	for _, k := range chosen {
		size += ref + len(" ") + len(k.name)
	}
	return size
}

// unquoted returns a name without the quotes around the key of a setting.
func unquoted(name string) string {
	if strings.IndexByte(name, '"') < 0 {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, `\"`, ""), `"`, "")
}

// Prune forgets all but the number of names that are worth most.
func (m *Memory) Prune(limit int) {
	if len(m.known) <= limit {
		return
	}
	all := make([]ranked, 0, len(m.known))
	for _, k := range m.known {
		all = append(all, ranked{k, k.at(m.clock)})
	}
	slices.SortFunc(all, byWorth)
	m.unread()
	m.noted = nil
	for _, k := range all[limit:] {
		delete(m.known, k.name)
	}
}
