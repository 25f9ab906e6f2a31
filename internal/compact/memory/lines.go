package memory

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/names"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/tokens"
)

// Quote is what is kept of a tool's result whose message has left the view.
type Quote struct {
	Seq   int64  // of its message
	Ref   string // brings back the result
	About string // what the call asked for
	Kind  QuoteKind
	Text  string // the result, or the lines that were chosen of it
}

// QuoteKind says why lines are kept.
type QuoteKind uint8

// The kinds of quotes.
const (
	Passage QuoteKind = iota // they say what names are
	Failure                  // the reason of a failed result
	Outcome                  // the count or the exit code of a command
	quoteKinds
)

// newest is how many quotes of a kind stay in any case.
var newest = [quoteKinds]int{Failure: 2, Outcome: 3}

// Quote adds a quote, which comes after all others in the log.
func (m *Memory) Quote(q Quote) { m.quotes = append(m.quotes, q) }

// Lines chooses the lines of the results that have left the view that say most of what names are, in no more than room
// tokens, and the newest failures and outcomes. What is not chosen is forgotten. Names in seen need no line; those that
// lines have are added to it.
func (m *Memory) Lines(room int, seen Seen) string {
	chosen := m.chooseNewest(&room)
	m.choosePassages(room, chosen, seen)
	kept := m.quotes[:0:0]
	for i, q := range m.quotes {
		if q.Text = chosen[i]; q.Text != "" {
			kept = append(kept, q)
			seen.Add([]byte(q.Text), false)
		}
	}
	m.quotes = kept
	var text strings.Builder
	for i, q := range kept {
		if i == 0 || kept[i-1].Ref != q.Ref {
			fmt.Fprintf(&text, "[%s] %s\n", q.Ref, q.About)
		}
		for line := range strings.Lines(q.Text) { // a quotation, so that none can pass for a line of the engine's
			text.WriteString(">" + strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// refTokens is about how many tokens the line before the lines of a result has.
const refTokens = 15

// chooseNewest returns the texts of the quotes that stay in any case, by their number.
func (m *Memory) chooseNewest(room *int) map[int]string {
	chosen, left := map[int]string{}, newest
	for i := len(m.quotes) - 1; i >= 0; i-- {
		if q := &m.quotes[i]; left[q.Kind] > 0 {
			left[q.Kind]--
			chosen[i] = clipped(q.Text) + "\n"
			*room -= tokens.Estimate([]byte(chosen[i])) + refTokens
		}
	}
	return chosen
}

// longestLine is how many bytes of a line are kept.
const longestLine = 200

// clipped returns the first line of a text, cut if it is long.
func clipped(line string) string {
	line, _, _ = strings.Cut(line, "\n")
	if len(line) > longestLine {
		line = string(text.First([]byte(line), longestLine))
	}
	return strings.TrimRight(line, " \t\r")
}

// defining recognises a line that says what a name is: a definition, an assignment, a place with a message.
var defining = regexp.MustCompile(
	`^\s*(\d+\s*[\t→:|-]\s*)?((export|public|private|protected|static|async|pub|default|abstract) )*` +
		`(func|def|class|fn|type|interface|struct|enum|const|let|var|module|defmodule|defp?|create table|impl|trait|` +
		`function)\b|` +
		`[\w\])"']\s*(:=|=|:)\s*\S|^\S+:\d+:|\w\(.*\)\s*(\{|:|->)`)

const (
	linePower    = 0.8 // how much the length of a line counts against it
	definesMore  = 1.7 // how much more a line counts that says what a name is
	leastForLine = 10  // tokens
)

// passage is a line that may be chosen.
type passage struct {
	quote, at, size int
	line            string
	worth           float64
}

// passages are lines by what they are worth, the best first.
type passages []passage

func (h passages) Len() int      { return len(h) }
func (h passages) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h passages) Less(i, k int) bool {
	a, b := &h[i], &h[k]
	return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.quote, b.quote), cmp.Compare(a.at, b.at)) < 0
}
func (h *passages) Push(p any) { *h = append(*h, p.(passage)) }
func (h *passages) Pop() any {
	n := len(*h) - 1
	last := (*h)[n]
	*h = (*h)[:n]
	return last
}

// choosePassages adds the lines that stay of the other quotes, the best first. What a line is worth becomes less when
// another that has its names is chosen.
func (m *Memory) choosePassages(room int, chosen map[int]string, seen Seen) {
	left, taken := m.passages(room, seen), map[int][]passage{}
	for len(left) > 0 && room >= leastForLine {
		p := heap.Pop(&left).(passage)
		if worth := m.worthOfLine(p.line, p.size, seen); worth < p.worth {
			if p.worth = worth; worth > 0 {
				heap.Push(&left, p)
			}
			continue
		}
		need := p.size
		if taken[p.quote] == nil {
			need += refTokens
		}
		if need > room {
			continue
		}
		taken[p.quote] = append(taken[p.quote], p)
		seen.Add([]byte(p.line), false)
		room -= need
	}
	for i, list := range taken {
		slices.SortFunc(list, func(a, b passage) int { return cmp.Compare(a.at, b.at) })
		for _, p := range list {
			chosen[i] += p.line + "\n"
		}
	}
}

// passages returns the lines that are worth something.
func (m *Memory) passages(room int, seen Seen) (list passages) {
	for i := range m.quotes {
		if m.quotes[i].Kind != Passage || room <= 0 {
			continue
		}
		at := 0
		for line := range strings.Lines(m.quotes[i].Text) {
			at++
			line = clipped(line)
			size := tokens.Estimate([]byte(line)) + 1
			if worth := m.worthOfLine(line, size, seen); worth > 0 {
				list = append(list, passage{i, at, size, line, worth})
			}
		}
	}
	heap.Init(&list)
	return list
}

// worthOfLine returns what a line is worth for its size: what the names in it are that nothing else has.
func (m *Memory) worthOfLine(line string, size int, seen Seen) (sum float64) {
	for name := range names.Scan([]byte(line), false) {
		if k := m.known[string(name.Text)]; k != nil && !seen[k.name] {
			sum += k.at(m.clock)
		}
	}
	if sum > 0 && defining.MatchString(line) {
		sum *= definesMore
	}
	return sum / math.Pow(float64(size+3), linePower)
}

// mostDecided is how many sentences are remembered at most.
const mostDecided = 256

// Decide adds a sentence in which the agent says what it found or decided.
func (m *Memory) Decide(seq int64, sentence string) {
	m.decided = append(m.decided, words{seq, sentence})
	m.decided = m.decided[max(len(m.decided)-mostDecided, 0):]
}

// Decided returns these sentences of the evicted messages, the newest that fit into room tokens. The others are
// forgotten.
func (m *Memory) Decided(room int, evicted func(seq int64) bool) string {
	var kept []words
	var lines []string
	for i := len(m.decided) - 1; i >= 0; i-- {
		w := m.decided[i]
		if evicted(w.seq) {
			if room -= w.tokens(); room < 0 {
				continue
			}
			lines = append(lines, fmt.Sprintf("[m%d] %s", w.seq, w.text))
		}
		kept = append(kept, w)
	}
	slices.Reverse(kept)
	slices.Reverse(lines)
	m.decided = kept
	return strings.Join(lines, "\n")
}
