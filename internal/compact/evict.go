package compact

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// eviction takes the oldest messages out of the view as whole units. One message replaces them: a summary or a notice.
type eviction struct {
	begin, end int    // messages[begin:end], kept aside
	kept       int    // the newest message of the user, which is never evicted; -1 if it is not among them
	spared     []bool // by message: it is not evicted, either; nil for none
	action     ActionKind
	stage      string
	coverage
	pins      []Pin    // that it carries, or names
	compacted bool     // the provider itself has compacted them
	unwritten bool     // the model that was to summarise them has failed
	taken     []string // of a message of summaries that only takes answers in: what they are
	body      []byte   // of the message that replaces them
	tokens    int      // of it, as stages count
	now       int      // of it, as it is
}

func (d *eviction) evicts(m int) bool { return d.begin <= m && m < d.end && !d.keeps(m) }

func (d *eviction) keeps(m int) bool { return m == d.kept || d.spared != nil && d.spared[m] }

// evicted yields the messages that are evicted.
func (d *eviction) evicted() iter.Seq[int] {
	return func(yield func(m int) bool) {
		for m := d.begin; m < d.end; m++ {
			if !d.keeps(m) && !yield(m) {
				return
			}
		}
	}
}

// newEviction prepares the eviction of messages[begin:end]. It returns nil if no message of the log is among them.
func (s *runState) newEviction(begin, end int, action ActionKind) *eviction {
	return s.evictionKeeping(begin, end, s.newestUserKept, action)
}

// evictionKeeping prepares the eviction of messages[begin:end] but for kept, if that is among them.
func (s *runState) evictionKeeping(begin, end, kept int, action ActionKind) *eviction {
	d := &eviction{begin: begin, end: end, kept: -1, spared: s.spared, action: action, stage: s.stage}
	switch {
	case begin == kept:
		d.begin = begin + 1
	case begin < kept && kept < end:
		d.kept = kept
	}
	fromLog := false
	for m := range d.evicted() {
		at := &s.messages[m]
		d.cover(at)
		fromLog = fromLog || !at.coversOthers()
	}
	if !fromLog {
		return nil
	}
	d.largest = s.largestOf(d)
	return d
}

// largestResults is how many evicted results a summary or a notice names. The largest of a range are the largest of the
// largest of its pieces, so that an incremental compaction names the same ones as one from the log.
const largestResults = 5

// worthNaming is how many tokens a result has at least that a summary or a notice names.
const worthNaming = 100

// largestOf returns the largest results among the evicted messages, by their place in the log.
func (s *runState) largestOf(d *eviction) (largest []named) {
	var results []evictedResult
	for m := range d.evicted() {
		results = s.appendResults(results, m)
	}
	bySize := slices.Clone(results)
	slices.SortStableFunc(bySize, func(a, b evictedResult) int { return cmp.Compare(b.tokens, a.tokens) })
	bySize = bySize[:min(len(bySize), largestResults)]
	slices.SortFunc(bySize, func(a, b evictedResult) int { return cmp.Compare(a.place, b.place) })
	for _, r := range bySize {
		if r.part >= 0 {
			r.ref = s.shownRefOf(r.part)
		}
		largest = append(largest, r.named)
	}
	return largest
}

// evictedResult is a result that a summary or a notice may name.
type evictedResult struct {
	named
	place int
	part  int // -1 for one that an earlier summary or notice names
}

// appendResults appends the results of message m and those that it names.
func (s *runState) appendResults(results []evictedResult, m int) []evictedResult {
	at := &s.messages[m]
	for _, r := range at.largest {
		results = append(results, evictedResult{r, len(results), -1})
	}
	for i := at.first; i < at.last; i++ {
		if p := &s.parts[i]; p.kind == result && p.usable && p.tokens >= worthNaming {
			r := named{tool: label(p.tool), tokens: p.tokens}
			results = append(results, evictedResult{r, len(results), i})
		}
	}
	return results
}

// refOf returns the ref of part i, whether or not it is whole in the view.
func (s *runState) refOf(i int) session.ResultRef {
	p := &s.parts[i]
	if p.action != Keep {
		return s.ref(p, &p.replacement)
	}
	return s.ref(p, &replacement{sum: s.sumOf(i)})
}

// shownRefOf returns what the view names in place of part i.
func (s *runState) shownRefOf(i int) string {
	if source := s.parts[i].source; source != "" {
		return source
	}
	return s.refOf(i).String()
}

// sumOf returns the SHA-256 of part i, which must be whole in the view.
func (s *runState) sumOf(i int) [32]byte {
	if p := &s.parts[i]; p.foreign && p.kind != prose {
		return p.appended
	}
	sum, known := s.sums[i]
	if !known {
		sum = sha256.Sum256(s.content(i).Stored)
		s.sums[i] = sum
	}
	return sum
}

// compose makes the message that replaces the others. Its role is the user's: every provider accepts one there, and
// nothing that was part of a conversation may speak as the system.
func (d *eviction) compose(f session.Format, count counter, template *text.Template, with replacementText) error {
	content := template.Append(make([]byte, 0, template.Constant()+with.size()), func(dst []byte, name string) []byte {
		switch name {
		case "text":
			return d.appendText(dst, with)
		case "first":
			return fmt.Append(dst, d.from)
		case "last":
			return fmt.Append(dst, d.to)
		case "ref":
			return append(dst, d.ref()...)
		case "results":
			return d.appendLargest(dst)
		}
		return fmt.Append(dst, d.messages)
	})
	if d.unwritten {
		content = append(content, unwrittenNotice...)
	}
	content = appendPins(content, d.pins)
	d.body = wire.UserMessage(f, rawjson.Quote(nil, content))
	found, err := wire.Inspect(f, d.body)
	count.message(f, d.body, &found)
	d.tokens, d.now = found.Tokens, found.Tokens
	return err
}

// unwrittenNotice ends a notice of messages whose summary a model has failed to write.
const unwrittenNotice = "\n[The model that was to summarise them failed.]"

// replacementText is what replaces evicted messages: what a writer wrote, between what the engine remembers of them.
type replacementText struct {
	words, names    string
	decided, quotes string // what the agent decided; lines of results
	texts           []segmentText
	headed          bool // each segment has a heading
}

// size returns about how many bytes the sections have.
func (with *replacementText) size() int {
	const headings = 256
	size := headings + len(with.words) + len(with.names) + len(with.decided) + len(with.quotes)
	for i := range with.texts {
		size += headings + len(with.texts[i].lasting) + len(with.texts[i].now)
	}
	return size
}

// appendText writes the sections and records where what writers wrote is.
func (d *eviction) appendText(dst []byte, with replacementText) []byte {
	start := len(dst)
	section := func(heading, text string) {
		if text == "" {
			return
		}
		if len(dst) > start {
			dst = append(dst, "\n\n"...)
		}
		dst = append(append(dst, heading...), text...)
	}
	section("## The user's words\n", with.words)
	d.segments = make([]segment, len(with.texts))
	d.inner = span{}
	for i := range with.texts {
		p := &with.texts[i]
		text := p.whole()
		if with.headed {
			section(p.heading(), "\n"+text)
		} else {
			section("", text)
		}
		if i == 0 {
			d.inner.start = len(dst) - len(text)
		}
		d.inner.end = len(dst)
		p.text = span{len(dst) - len(text), len(dst)}
		p.present = len(dst) - len(p.now)
		d.segments[i] = p.segment
	}
	section("## Said by the agent\n", with.decided)
	section("## Lines of results and of written files\n", with.quotes)
	section("## Names\n", with.names)
	return dst
}

// heading returns the line before one of several summaries.
func (g *segment) heading() string {
	ref := session.MessagesRef{First: g.from, Last: g.to}
	return fmt.Sprintf("[Summary of messages %d to %d, written by %s. In full: get_messages %s]",
		g.from, g.to, label(g.shown().Writer), ref)
}

// ref returns the ref of the evicted messages.
func (d *eviction) ref() string { return session.MessagesRef{First: d.from, Last: d.to}.String() }

// appendLargest writes the largest evicted results; nothing if there are none.
func (d *eviction) appendLargest(dst []byte) []byte {
	for i, r := range d.largest {
		before := ", "
		if i == 0 {
			before = " Its largest results: "
		}
		dst = fmt.Appendf(dst, "%s%s %s (%d tokens)", before, r.ref, r.tool, r.tokens)
	}
	if len(d.largest) > 0 {
		dst = append(dst, '.')
	}
	return dst
}

// currentTokens returns what the evicted messages have in the view.
func (d *eviction) currentTokens(h *history) (sum int) {
	for m := range d.evicted() {
		sum += h.messages[m].now
	}
	return sum
}

// currentBytes returns the bytes of the evicted messages in the view.
func (d *eviction) currentBytes(h *history) (sum int) {
	for m := range d.evicted() {
		sum += h.messages[m].size
	}
	return sum
}

func (d *eviction) reason() string {
	if len(d.taken) > 0 {
		return strings.Join(d.taken, "; ")
	}
	if d.compacted {
		return fmt.Sprintf("the provider itself has compacted these %d messages", d.messages)
	}
	if d.action == Summarise {
		return fmt.Sprintf("a summary stands for %d messages", d.messages)
	}
	return fmt.Sprintf("there was no room for %d messages and no summary of them", d.messages)
}
