package memory

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

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
// says. What is not chosen is forgotten. Names that are shown need no line; those that lines have are shown.
func (c *Choice) Lines(room, written int) string {
	chosen := c.chooseNewest(&room)
	c.chooseWritten(written, chosen)
	c.choosePassages(room, chosen)
	kept := c.quotes[:0:0]
	for i, q := range c.quotes {
		if q.Text = chosen[i]; q.Text == "" {
			continue
		}
		if kept = append(kept, q); newest[q.Kind] > 0 {
			c.showText(q.Text)
		}
	}
	c.quotes = kept
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
func (c *Choice) chooseWritten(room int, chosen map[int]string) {
	var newer []string
	for i := len(c.quotes) - 1; i >= 0; i-- {
		q := &c.quotes[i]
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
			c.showText(q.Text)
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

// before reports whether a passage is better than another one.
func (p *passage) before(o *passage) bool {
	switch {
	case p.worth != o.worth:
		return p.worth > o.worth
	case p.quote != o.quote:
		return p.quote < o.quote
	}
	return p.at < o.at
}

// passages are a heap of lines, the best first.
type passages []passage

func (h passages) Len() int           { return len(h) }
func (h passages) Less(i, k int) bool { return h[i].before(&h[k]) }
func (h passages) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }
func (h *passages) Push(p any)        { *h = append(*h, p.(passage)) }

func (h *passages) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// choosePassages adds the lines that stay of the other quotes, the best first. What a line is worth becomes less when
// another that has its names is chosen.
func (c *Choice) choosePassages(room int, chosen map[int]string) {
	left, taken := c.passages(room), map[int][]passage{}
	for len(left) > 0 && room >= leastForLine {
		p := &left[0]
		need := p.size
		if taken[p.quote] == nil {
			need += refTokens
		}
		worth := p.worthIn(c.number)
		switch {
		case worth > 0 && worth < p.worth:
			p.worth = worth
			heap.Fix(&left, 0)
			continue
		case worth > 0 && p.size > room: // nor has any other line room that is as long
			left = slices.DeleteFunc(left, func(p passage) bool { return p.size > room })
			heap.Init(&left)
			continue
		case worth > 0 && need <= room:
			taken[p.quote] = append(taken[p.quote], *p)
			c.Show(p.names)
			room -= need
		}
		heap.Pop(&left)
	}
	for i, list := range taken {
		slices.SortFunc(list, func(a, b passage) int { return cmp.Compare(a.at, b.at) })
		var text strings.Builder
		for _, p := range list {
			text.WriteString(p.text + "\n")
		}
		chosen[i] = text.String()
	}
}

// passages returns the lines that are worth something.
func (c *Choice) passages(room int) (list passages) {
	for i := range c.quotes {
		if c.quotes[i].Kind != Passage || room <= 0 {
			continue
		}
		of := c.linesOf(c.quotes[i].Text)
		for k := range of {
			if worth := of[k].worthIn(c.number); worth > 0 {
				list = append(list, passage{&of[k], i, worth})
			}
		}
	}
	heap.Init(&list)
	return list
}
