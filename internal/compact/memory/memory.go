// Package memory is what a checkpoint remembers of the messages that leave the view, whatever a writer's summary says
// of them: the user's own words, sentences of the agent, lines of results, and an index of the names that the messages
// had. It is pure and grows message by message, so that a compaction reads no message that an earlier one has read.
//
// Start at Memory, and at Choice in read.go. words.go keeps the user's words within their budget, lines.go chooses
// lines, sentences.go sentences, index.go names; encode.go has the form in a checkpoint's state.
package memory

import (
	"math"
	"slices"
	"unsafe"

	"github.com/varve-dev/varve/internal/compact/names"
)

// Memory is what is remembered of the messages that were noted, in the order of the log. The zero Memory is empty.
type Memory struct {
	clock   int64 // tokens of all messages that were noted
	words   []words
	decided []words // sentences of the agent
	known   map[string]*known
	quotes  []Quote  // oldest first
	notes   int      // number of texts that were noted
	found   []*known // in the text that is being noted
	spare   []known  // for the next names
	noted   *names.Cache[*known]
	read    *read // since the last text that was noted; clones share it
}

// known is a name and how likely it is to be needed again.
type known struct {
	name   string
	kind   names.Kind
	weight float64 // as of clock
	fresh  float64 // what its newest message has added to weight
	clock  int64   // of its newest message
	seq    int64   // of its newest message
	note   int     // the newest text that has it
	now    float64 // what it weighs, see reading
	shown  int     // the newest choice in which it was shown
}

// Source says where a text stands.
type Source struct {
	Seq     int64
	Weight  float64 // of each of its names
	Shared  bool    // the more names the text has, the less each counts
	Escaped bool    // the text is JSON
}

// Clone returns a memory to ask what would be said: what that forgets stays in m.
func (m *Memory) Clone() *Memory {
	m.read = m.reading()
	clone := *m
	clone.spare = nil
	clone.words = slices.Clone(m.words)
	clone.decided = slices.Clone(m.decided)
	clone.quotes = slices.Clone(m.quotes)
	return &clone
}

// halfLife is after how many tokens an occurrence of a name counts half.
const halfLife = 100_000

// crowding is how much the number of names in a text counts against each of them, if they share its weight.
const crowding = 0.75

// factors are how much names of a kind count.
var factors = [...]float64{names.Path: 1, names.Symbol: 0.8, names.ID: 0.8, names.Setting: 0.6, names.Number: 0.3}

// Pass adds the tokens of a message, which comes after all that was noted.
func (m *Memory) Pass(tokens int) {
	m.clock += int64(tokens)
	m.unread()
}

// knownTogether is for how many names memory is taken at once.
const knownTogether = 64

// Note adds the names of a text, whose bytes must not change afterwards: names are not copied. Of a text with very many
// names it adds those at the beginning and at the end.
func (m *Memory) Note(text []byte, from Source) {
	rest := m.find(text, from)
	weight := from.Weight
	if from.Shared {
		share := float64(len(text)) / float64(max(len(text)-rest, 1)) // of the names that were looked at
		weight /= math.Pow(float64(max(len(m.found), 1))*share, crowding)
	}
	for _, k := range m.found {
		k.count(m.clock, from.Seq, weight*factors[k.kind])
	}
	if len(m.known) > mostKnown {
		m.Prune(mostKnown / 4)
	}
}

// mostKnown is how many names are kept at most while texts are noted, so that a very long log takes no more memory than
// others.
const mostKnown = 65_536

// manyNames is of how many names each counts too little to look for more, and endBytes how long the end is that is
// looked at nevertheless.
const (
	manyNames = 256
	endBytes  = 2048
)

// find sets found to the distinct names of a text. It returns how many bytes it left out.
func (m *Memory) find(text []byte, from Source) (rest int) {
	if m.known == nil {
		m.known = map[string]*known{}
	}
	m.notes++
	m.unread()
	m.found = m.found[:0]
	at := 0
	if m.noted == nil {
		m.noted = new(names.Cache[*known])
	}
	m.noted.Each(text, from.Escaped, m.learn, func(k *known, begin int) bool {
		if m.add(k); from.Shared && len(m.found) == manyNames {
			at = begin
		}
		return at == 0
	})
	if at == 0 || at > len(text)-2*endBytes {
		return 0
	}
	m.noted.Each(text[len(text)-endBytes:], from.Escaped, m.learn, func(k *known, _ int) bool {
		m.add(k)
		return true
	})
	return len(text) - at - endBytes
}

// learn returns what is known of a name, which is known from then on.
func (m *Memory) learn(name names.Name) *known {
	k := m.known[string(name.Text)]
	if k == nil {
		if len(m.spare) == 0 {
			m.spare = make([]known, knownTogether)
		}
		k, m.spare = &m.spare[0], m.spare[1:]
		*k = known{name: unsafe.String(&name.Text[0], len(name.Text)), kind: name.Kind, clock: m.clock}
		m.known[k.name] = k
	}
	return k
}

// add adds a name to those that were found.
func (m *Memory) add(k *known) {
	if k.note != m.notes {
		k.note = m.notes
		m.found = append(m.found, k)
	}
}

// count adds an occurrence. Of those in one message only the one that counts most is counted.
func (k *known) count(clock, seq int64, weight float64) {
	if k.seq == seq {
		if weight > k.fresh {
			k.weight += weight - k.fresh
			k.fresh = weight
		}
		return
	}
	k.weight = k.at(clock) + weight
	k.clock, k.seq, k.fresh = clock, seq, weight
}

// at returns the weight of a name as of a later time. The conversion keeps the compiler from fusing operations, so that
// every machine chooses the same names.
func (k *known) at(clock int64) float64 {
	return float64(k.weight * math.Exp2(-float64(clock-k.clock)/halfLife))
}
