package memory

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/names"
)

// errEncoded reports bytes that Encode did not write.
var errEncoded = errors.New("memory: damaged")

// weightUnit is the least weight that is encoded.
const weightUnit = 1.0 / 4096

// Encode returns the memory as bytes: the clock, the words, the sentences, the names, the quotes. Numbers are unsigned
// varints.
func (m *Memory) Encode() []byte {
	b := binary.AppendUvarint(make([]byte, 0, m.size()), uint64(m.clock))
	for _, list := range [][]words{m.words, m.decided} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, w := range list {
			b = binary.AppendUvarint(b, uint64(w.seq))
			b = appendText(b, w.text)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(m.known)))
	for _, k := range m.inOrder() {
		b = appendText(b, k.name)
		for _, n := range []int64{int64(k.kind), int64(k.weight / weightUnit), m.clock - k.clock, k.seq} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(m.quotes)))
	for _, q := range m.quotes {
		b = binary.AppendUvarint(b, uint64(q.Seq))
		b = append(b, byte(q.Kind))
		for _, t := range []string{q.Ref, q.About, q.Text} {
			b = appendText(b, t)
		}
	}
	return b
}

// size returns about how many bytes an encoded memory has.
func (m *Memory) size() int {
	const numbers = 16 // bytes of the numbers beside a text
	size := numbers
	for _, list := range [][]words{m.words, m.decided} {
		for _, w := range list {
			size += numbers + len(w.text)
		}
	}
	for name := range m.known {
		size += numbers + len(name)
	}
	for i := range m.quotes {
		size += numbers + len(m.quotes[i].Ref) + len(m.quotes[i].About) + len(m.quotes[i].Text)
	}
	return size
}

func (m *Memory) inOrder() []*known {
	all := make([]*known, 0, len(m.known))
	for _, k := range m.known {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *known) int { return strings.Compare(a.name, b.name) })
	return all
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// Decode reads what Encode wrote. The memory refers to it.
func Decode(encoded string) (*Memory, error) {
	r := reader{rest: encoded}
	m := &Memory{clock: r.number()}
	for _, list := range []*[]words{&m.words, &m.decided} {
		for range r.count() {
			*list = append(*list, words{seq: r.number(), text: r.text()})
		}
	}
	list := make([]known, r.count())
	m.known = make(map[string]*known, len(list))
	for i := range list {
		k := &list[i]
		k.name, k.kind = r.text(), names.Kind(min(r.number(), int64(names.Number)))
		k.weight = float64(r.number()) * weightUnit
		k.clock = m.clock - r.number()
		k.seq = r.number()
		m.known[k.name] = k
	}
	for range r.count() {
		q := Quote{Seq: r.number(), Kind: QuoteKind(min(r.number(), int64(quoteKinds)-1))}
		q.Ref, q.About = r.text(), r.text()
		q.Text = r.text()
		m.quotes = append(m.quotes, q)
	}
	if r.failed || r.rest != "" {
		return nil, errEncoded
	}
	return m, nil
}

// reader reads values; after the first one that is not there it reads zeros.
type reader struct {
	rest   string
	failed bool
}

func (r *reader) fail() { *r = reader{failed: true} }

func (r *reader) number() int64 {
	v, n := binary.Uvarint(bytesOf(r.rest))
	if n <= 0 || v > 1<<40 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return int64(v)
}

// count reads the number of things that follow. Each of them takes at least a byte, which bounds a damaged number.
func (r *reader) count() int64 {
	n := r.number()
	if n > int64(len(r.rest)) {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > int64(len(r.rest)) {
		r.fail()
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}
