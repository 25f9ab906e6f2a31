package memory

import (
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
	text.Grow(c.sizeOf(kept))
	for i, q := range kept {
		if i == 0 || kept[i-1].Ref != q.Ref {
			fmt.Fprintf(&text, "[%s] %s\n", q.Ref, q.About)
		}
		for line := range strings.Lines(q.Text) { // a quotation, so that none can pass for a line of the engine's
			text.WriteByte('>')
			text.WriteString(strings.TrimRight(line, "\r\n"))
			text.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// sizeOf returns about how many bytes quotes have in a view.
func (c *Choice) sizeOf(quotes []Quote) (size int) {
	const mark = 1.0 / 16 // of each line
	for i := range quotes {
		q := &quotes[i]
		size += len("[] \n") + len(q.Ref) + len(q.About) + len(q.Text) + int(mark*float64(len(q.Text)))
	}
	return size
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
		written := strings.TrimSpace(q.Text)
		contains := func(text string) bool { return contains(text, written) }
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
	for line != "" && isBlank(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	return line
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

const (
	linePower    = 0.8 // how much the length of a line counts against it
	definesMore  = 1.7 // how much more a line counts that says what a name is
	leastForLine = 10  // tokens
)

// passage is a line that may be chosen, by its place. A heap of them moves no pointers.
type passage struct {
	worth       float64
	quote, line int32
}

// before reports whether a passage is better than another one.
func (p *passage) before(o *passage) bool {
	switch {
	case p.worth != o.worth:
		return p.worth > o.worth
	case p.quote != o.quote:
		return p.quote < o.quote
	}
	return p.line < o.line
}

// passages are a heap of lines, the best first.
type passages []passage

// order makes a heap of a list.
func (h passages) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// sink moves passage i down to its place.
func (h passages) sink(i int) {
	for {
		k := 2*i + 1
		if k >= len(h) {
			return
		}
		if k+1 < len(h) && h[k+1].before(&h[k]) {
			k++
		}
		if !h[k].before(&h[i]) {
			return
		}
		h[i], h[k] = h[k], h[i]
		i = k
	}
}

// withoutFirst returns the heap without its first passage.
func (h passages) withoutFirst() passages {
	last := len(h) - 1
	h[0] = h[last]
	h[:last].sink(0)
	return h[:last]
}

// choosePassages adds the lines that stay of the other quotes, the best first. What a line is worth becomes less when
// another that has its names is chosen.
func (c *Choice) choosePassages(room int, chosen map[int]string) {
	if room <= 0 {
		return
	}
	lines, taken := c.linesOfAll(), make([][]int32, len(c.quotes))
	left := c.passages(lines)
	for len(left) > 0 && room >= leastForLine {
		p := &left[0]
		at := &lines[p.quote][p.line]
		need := at.size
		if taken[p.quote] == nil {
			need += refTokens
		}
		worth := at.worthIn(c.number)
		switch {
		case worth > 0 && worth < p.worth:
			p.worth = worth
			left.sink(0)
			continue
		case worth > 0 && at.size > room: // nor has any other line room that is as long
			left = slices.DeleteFunc(left, func(p passage) bool { return lines[p.quote][p.line].size > room })
			left.order()
			continue
		case worth > 0 && need <= room:
			taken[p.quote] = append(taken[p.quote], p.line)
			c.Show(at.names)
			room -= need
		}
		left = left.withoutFirst()
	}
	for i, list := range taken {
		if list == nil {
			continue
		}
		slices.Sort(list)
		texts := make([]string, len(list), len(list)+1)
		for n, k := range list {
			texts[n] = lines[i][k].text
		}
		chosen[i] = strings.Join(append(texts, ""), "\n") // each ends with a line feed
	}
}

// linesOfAll returns the lines of each passage that have names.
func (c *Choice) linesOfAll() [][]line {
	lines := make([][]line, len(c.quotes))
	for i := range c.quotes {
		if c.quotes[i].Kind == Passage {
			lines[i] = c.linesOf(c.quotes[i].Text)
		}
	}
	return lines
}

// passages returns the lines that are worth something.
func (c *Choice) passages(lines [][]line) passages {
	count := 0
	for _, of := range lines {
		count += len(of)
	}
	list := make(passages, 0, count)
	for i, of := range lines {
		for k := range of {
			if worth := of[k].worthIn(c.number); worth > 0 {
				list = append(list, passage{worth, int32(i), int32(k)})
			}
		}
	}
	list.order()
	return list
}
