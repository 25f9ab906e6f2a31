package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/tokens"
)

// words are what the user wrote in one message.
type words struct {
	seq  int64
	text string
	size int // its tokens with the ref before it, 0 if they were not counted
}

// longest is how many characters of one message are remembered at most.
const longest = 64_000

// Say adds what the user wrote.
func (m *Memory) Say(seq int64, said string) {
	if said = strings.TrimSpace(said); said != "" {
		m.words = append(m.words, words{seq: seq, text: cut(said, seq, longest)})
	}
}

// shortest is to how many tokens a text is cut at least.
const shortest = 48

// Words returns the user's words in the evicted messages, whole as long as they fit into room tokens. If they do not,
// the longest are cut to head and tail, all to about one length. If even that is too much, the oldest but the
// first are dropped. What was cut or dropped is forgotten.
func (m *Memory) Words(room int, evicted func(seq int64) bool) string {
	limit := m.limit(room, evicted)
	rest := 0 // tokens of this text and those after it, each cut to the shortest
	if limit < shortest {
		rest = m.tokensOf(evicted, shortest)
	}
	var said strings.Builder
	kept := m.words[:0]
	for i, w := range m.words {
		if !evicted(w.seq) {
			kept = append(kept, w)
			continue
		}
		if limit < shortest {
			from := rest
			if rest -= min(w.tokens(), shortest); i > 0 && from > room {
				continue
			}
		}
		w.shorten(max(limit, shortest))
		kept = append(kept, w)
		w.write(&said)
		said.WriteByte('\n')
	}
	m.words = kept
	return strings.TrimSuffix(said.String(), "\n")
}

// write writes the words behind the ref of their message.
func (w *words) write(to *strings.Builder) {
	to.WriteString("[m")
	to.WriteString(strconv.FormatInt(w.seq, 10))
	to.WriteString("] ")
	to.WriteString(w.text)
}

// Said returns about how many tokens all that the user wrote has.
func (m *Memory) Said() int { return m.tokensOf(func(int64) bool { return true }, longest) }

// limit returns how many tokens each text may have so that all fit into the room.
func (m *Memory) limit(room int, evicted func(seq int64) bool) int {
	var sizes []int
	for i := range m.words {
		if w := &m.words[i]; evicted(w.seq) {
			sizes = append(sizes, w.tokens())
		}
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		share := room / (len(sizes) - i)
		if size > share {
			return share
		}
		room -= size
	}
	return longest
}

// tokensOf returns the tokens of the words in the evicted messages, each cut to that many.
func (m *Memory) tokensOf(evicted func(seq int64) bool, limit int) (sum int) {
	for i := range m.words {
		if w := &m.words[i]; evicted(w.seq) {
			sum += min(w.tokens(), limit)
		}
	}
	return sum
}

// tokens returns the tokens of a text with the ref before it, which it counts once.
func (w *words) tokens() int {
	if w.size == 0 {
		w.size = tokens.Estimate(bytesOf(w.text)) + tokensOfRef
	}
	return w.size
}

// tokensOfRef is about how many tokens the ref of a message has.
const tokensOfRef = 5

// shorten cuts a text to about limit tokens.
func (w *words) shorten(limit int) {
	for chars := len(w.text); w.tokens() > limit && chars > 0; {
		chars = min(chars*limit/w.tokens(), chars-16)
		w.text, w.size = cut(w.text, w.seq, max(chars, 32)), 0
	}
}

// cut shortens a text to a number of characters: two thirds from its beginning and one third from its end, with the ref
// of its message between them.
func cut(said string, seq int64, chars int) string {
	whole := []byte(said)
	if text.Len(whole) <= chars {
		return said
	}
	gap := fmt.Sprintf(" [… whole: m%d …] ", seq)
	said = strings.ReplaceAll(said, gap, "")
	whole = []byte(said)
	head := text.First(whole, max(chars-len(gap), 0)*2/3)
	tail := text.Last(whole, max(chars-len(gap), 0)/3)
	return string(head) + gap + string(tail)
}
