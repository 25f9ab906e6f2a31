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
	Written                  // the agent wrote them into a file
	quoteKinds
)

// newest is how many quotes of a kind stay in any case.
var newest = [quoteKinds]int{Failure: 2, Outcome: 3}

// Quote adds a quote, which comes after all others in the log.
func (m *Memory) Quote(q Quote) { m.quotes = append(m.quotes, q) }

// Lines chooses the lines of the results that have left the view that say most of what names are, in no more than room
// tokens, the newest failures and outcomes, and the newest of what the agent wrote, whole, in as many tokens as written
// says. What is not chosen is forgotten. Names in seen need no line; those that
// lines have are added to it.
func (m *Memory) Lines(room, written int, seen Seen) string {
	chosen := m.chooseNewest(&room)
	m.chooseWritten(written, chosen, seen)
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

// These bound the work of a long session: the newest texts are read, and each is looked for in those that follow it.
const writtenTexts, comparedTexts = 256, 32

// chooseWritten adds the newest texts that the agent wrote and that none of the next ones contains. Others that are not
// old may still have a line.
func (m *Memory) chooseWritten(room int, chosen map[int]string, seen Seen) {
	var newer []string
	for i := len(m.quotes) - 1; i >= 0; i-- {
		q := &m.quotes[i]
		if q.Kind != Written {
			continue
		}
		contains := func(text string) bool { return strings.Contains(text, strings.TrimSpace(q.Text)) }
		if len(newer) == writtenTexts || slices.ContainsFunc(newer[max(len(newer)-comparedTexts, 0):], contains) {
			q.Text = ""
			continue
		}
		newer = append(newer, q.Text)
		if size := tokens.Estimate([]byte(q.Text)) + refTokens; size <= room {
			room -= size
			chosen[i] = strings.TrimRight(q.Text, "\n") + "\n"
			seen.Add([]byte(q.Text), false)
		} else {
			q.Kind = Passage
		}
	}
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

const (
	linePower    = 0.8 // how much the length of a line counts against it
	definesMore  = 1.7 // how much more a line counts that says what a name is
	leastForLine = 10  // tokens
)

// passage is a line that may be chosen.
type passage struct {
	*line
	quote int
	worth float64
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
	choice := m.begin(seen)
	left, taken := m.passages(room, choice), map[int][]passage{}
	for len(left) > 0 && room >= leastForLine {
		p := heap.Pop(&left).(passage)
		if worth := p.worthIn(choice); worth < p.worth {
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
		for _, k := range p.names {
			k.shown = choice
			seen[k.name] = true
		}
		room -= need
	}
	for i, list := range taken {
		slices.SortFunc(list, func(a, b passage) int { return cmp.Compare(a.at, b.at) })
		for _, p := range list {
			chosen[i] += p.text + "\n"
		}
	}
}

// passages returns the lines that are worth something.
func (m *Memory) passages(room, choice int) (list passages) {
	for i := range m.quotes {
		if m.quotes[i].Kind != Passage || room <= 0 {
			continue
		}
		of := m.linesOf(m.quotes[i].Text)
		for k := range of {
			if worth := of[k].worthIn(choice); worth > 0 {
				list = append(list, passage{&of[k], i, worth})
			}
		}
	}
	heap.Init(&list)
	return list
}

// mostDecided is how many sentences are remembered at most.
const mostDecided = 512

// Decide adds a sentence of the agent.
func (m *Memory) Decide(seq int64, sentence string) {
	m.decided = append(m.decided, words{seq, sentence})
	m.decided = m.decided[max(len(m.decided)-mostDecided, 0):]
}

// Decided returns those of these sentences that say most, in no more than room tokens: of the evicted messages, and
// without those that already says. Those of one message are one line. What is not chosen is forgotten.
func (m *Memory) Decided(room int, evicted func(seq int64) bool, already string) string {
	keep := make([]bool, len(m.decided))
	var asking []decision
	for i := range m.decided {
		w := &m.decided[i]
		if keep[i] = !evicted(w.seq) || strings.Contains(already, w.text); !keep[i] {
			asking = append(asking, m.decisionOf(i))
		}
	}
	slices.SortFunc(asking, func(a, b decision) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(b.at, a.at))
	})
	chosen, told := make([]bool, len(m.decided)), map[int64]bool{}
	for _, d := range asking {
		seq := m.decided[d.at].seq
		if told[seq] {
			d.size -= tokensOfRef
		}
		if d.size <= room {
			room -= d.size
			chosen[d.at], keep[d.at] = true, true
			told[seq] = true
		}
	}
	var kept []words
	var lines []string
	said := int64(0)
	for i, w := range m.decided {
		if keep[i] {
			kept = append(kept, w)
		}
		switch {
		case !chosen[i]:
		case w.seq == said:
			lines[len(lines)-1] += " " + w.text
		default:
			lines = append(lines, fmt.Sprintf("[m%d] %s", w.seq, w.text))
			said = w.seq
		}
	}
	m.decided = kept
	return strings.Join(lines, "\n")
}

// decision is a sentence that may be chosen.
type decision struct {
	at, size int
	worth    float64
}

// decisionOf returns a sentence with what it is worth.
func (m *Memory) decisionOf(i int) decision {
	w := &m.decided[i]
	all := m.reading().sentences
	d, known := all[w.text]
	if !known {
		d = decision{size: w.tokens(), worth: m.worthOfSentence(w)}
		all[w.text] = d
	}
	d.at = i
	return d
}

// decides recognises a sentence in which the agent says what it found or decided.
var decides = regexp.MustCompile(`(?i)\b(decided?|instead of|because|root cause|` +
	`(issue|problem|bug|cause|fix) (is|was)|should|must|needs? to|found|turns? out|so that|rather than)\b`)

// announces recognises a sentence that tells what the agent does next.
var announces = regexp.MustCompile(
	`^(Now |Next |OK|Okay|Good|Great)?,?\s*([Ll]et me|[Ll]et's|I'll|I will|I'm going to)\b`)

// worthOfSentence returns what a sentence is worth for its size: what its names are, more where it decides something.
func (m *Memory) worthOfSentence(w *words) float64 {
	sum := 1.0
	for name := range names.Scan([]byte(w.text), false) {
		if k := m.known[string(name.Text)]; k != nil {
			sum += k.at(m.clock)
		}
	}
	switch {
	case decides.MatchString(w.text):
		sum *= definesMore
	case announces.MatchString(w.text):
		sum /= definesMore
	}
	return float64(sum / math.Pow(float64(w.tokens()), linePower))
}
