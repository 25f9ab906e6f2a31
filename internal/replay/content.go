package replay

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/failure"
	"github.com/varve-dev/varve/internal/compact/names"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// Content names what is measured besides the strings of calls: whether a view has what the agent needs to go on, and
// not only its names.
type Content uint8

// What is measured. An edit, a line or a value is far as a string is: it was seen last 8,000 tokens back.
const (
	EditFar   Content = iota // all earlier lines of the text that an edit replaces
	LineFar                  // the line that had a needed string last
	ValueFar                 // what that line gives the string as its value, or its signature
	LastError                // after each compaction: the line of the last failed result that has the reason
	LastCount                // after each compaction: the last line with a count or an exit code
	Decided1                 // after that many compactions: a sentence in which the agent says what it found or decided
	Decided2
	Decided5
	Demanded1 // the same of a demand of the user
	Demanded2
	Demanded5
	Seen          // a result of 300 to 4,000 tokens is whole in the first request after it
	Answered      // after the last message: the answer to a question
	AnsweredByRef // that, or a ref beside a word of the question that brings it back
	contents
)

var contentNames = [contents]string{
	"edit far", "line far", "value far", "last error", "last count", "decided 1", "decided 2", "decided 5",
	"demands 1", "demands 2", "demands 5", "seen", "answers", "answers by ref",
}

func (c Content) String() string { return contentNames[c] }

// afterCompactions is after how many compactions sentences are looked for.
var afterCompactions = []int{1, 2, 5}

// noted is a text that a message has.
type noted struct {
	message int
	found   int32
}

// notes are the texts of a session that content measures look for.
type notes struct {
	errors, counts []noted
	decisions      []noted
	fresh          map[int][][]int32 // by request: lines of each result that came since the request before
	asked          []asked
}

const (
	shortLine     = 8   // characters that a line of an edit has at least
	longLine      = 180 // of a longer line the part around the needed string
	besides       = 12  // characters that a line has besides the needed string
	manyLines     = 3   // of an edit, or
	longEdit      = 120 // characters
	linesOfResult = 6   // lines that are looked for in a result
)

var (
	counted = regexp.MustCompile(`(?i)\b\d+ (passed|failed|failures?|errors?|tests?|examples?|warnings?|skipped|` +
		`files? changed|insertions?|deletions?)\b|\bexit(ed)?( with)?( code| status)?\s*[:=]?\s*-?\d+`)
	valued = regexp.MustCompile("^[\"'`]?\\s*(:=|=|:|\\()\\s*[^\\s].{0,60}")
)

// linesOfEdit adds the lines of the text that an edit replaces.
func (x *indexer) linesOfEdit(c *callStrings) {
	for _, old := range c.replaced {
		if len(old) < longEdit && strings.Count(strings.TrimSpace(old), "\n")+1 < manyLines {
			continue
		}
		for line := range strings.Lines(old) {
			if line = normalised(line); len(line) >= shortLine {
				c.lines = append(c.lines, x.pattern(line, false))
			}
		}
	}
}

// noteMessage adds the texts of message i that are looked for after compactions.
func (x *indexer) noteMessage(i int) {
	body, found := x.session.Messages[i].Body, &x.facts[i]
	for k := range found.Parts {
		p := &found.Parts[k]
		switch {
		case p.Kind == wire.Result:
			text := wire.ResultText(x.session.Format, body, *p).Text
			x.noteResult(i, p, text)
		case p.Kind == wire.Text && x.messages[i].assistant:
			text := wire.ResultText(x.session.Format, body, *p).Text
			for _, sentence := range sentences.Split(string(text), -1) {
				// The engine keeps sentences by the words in them: here the names in them decide.
				if s := normalised(sentence); len(s) >= 40 && len(s) <= 300 && namesSomething(s) {
					x.notes.decisions = append(x.notes.decisions, noted{i, x.pattern(s, false)})
				}
			}
		}
	}
}

// namesSomething reports whether a sentence has a path, a symbol or an id.
func namesSomething(sentence string) bool {
	for range names.Scan([]byte(sentence), false) {
		return true
	}
	return false
}

// noteResult adds the reason of a failed result, and the last count.
func (x *indexer) noteResult(i int, p *wire.Part, text []byte) {
	if p.IsError || failure.Shows(text, true, nil) {
		if line := normalised(failure.Complaint(string(text))); len(line) >= shortLine {
			x.notes.errors = append(x.notes.errors, noted{i, x.pattern(line[:min(len(line), longLine)], false)})
		}
	}
	last := ""
	for line := range strings.Lines(string(text[max(len(text)-4000, 0):])) {
		if counted.MatchString(line) {
			last = normalised(line)
		}
	}
	if len(last) >= shortLine {
		x.notes.counts = append(x.notes.counts, noted{i, x.pattern(last[:min(len(last), longLine)], false)})
	}
}

// noteFresh adds lines of the results that came since the request before this one.
func (x *indexer) noteFresh(request, before int) {
	for m := before; m < request; m++ {
		body, found := x.session.Messages[m].Body, &x.facts[m]
		for k := range found.Parts {
			p := &found.Parts[k]
			if p.Kind != wire.Result || p.Tokens < 300 || p.Tokens > 4000 {
				continue
			}
			var lines []int32
			all := slices.Collect(strings.Lines(string(wire.ResultText(x.session.Format, body, *p).Text)))
			for n := range linesOfResult {
				if line := normalised(all[n*(len(all)-1)/(linesOfResult-1)]); len(line) >= shortLine {
					lines = append(lines, x.pattern(line[:min(len(line), longLine)], false))
				}
			}
			if lines != nil {
				x.notes.fresh[request] = append(x.notes.fresh[request], lines)
			}
		}
	}
}

// sourceOf returns the line of a message that has a needed string, and what it says of the string: "" for none.
func (x *indexer) sourceOf(m int, needle string) (line, value string) {
	for _, text := range x.texts(m) {
		for at := range strings.Lines(text) {
			t := normalised(at)
			i := strings.Index(t, needle)
			for i >= 0 && !(&pattern{text: needle, word: true}).stands([]byte(t), i) {
				next := strings.Index(t[i+1:], needle)
				if next < 0 {
					i = -1
					break
				}
				i += 1 + next
			}
			if i < 0 {
				continue
			}
			end := i + len(needle)
			if of := valued.FindString(t[end:]); of != "" && len(strings.TrimSpace(of)) > 3 {
				value = strings.TrimSpace(needle + of)
			}
			start, stop := max(i-longLine/2, 0), min(end+longLine/2, len(t))
			if line = strings.TrimSpace(t[start:stop]); len(line) < len(needle)+besides {
				line = ""
			}
		}
	}
	return line, value
}

// texts returns the texts of a message, decoded.
func (x *indexer) texts(m int) []string {
	if list, ok := x.decoded[m]; ok {
		return list
	}
	var list []string
	body, found := x.session.Messages[m].Body, &x.facts[m]
	for k := range found.Parts {
		p := &found.Parts[k]
		switch p.Kind {
		case wire.Result, wire.Text:
			list = append(list, string(wire.ResultText(x.session.Format, body, *p).Text))
		case wire.Call:
			value := p.Value.Of(body)
			if len(value) > 0 && value[0] == '"' {
				value, _ = rawjson.Unquote(nil, value)
			}
			list = append(list, string(bytes.ReplaceAll(value, []byte(`\n`), []byte("\n"))))
		}
	}
	x.decoded[m] = list
	return list
}

// content adds what requests and compactions are asked besides the strings of calls. It needs to know where those are.
func (x *indexer) content() error {
	x.notes.fresh, x.decoded = map[int][][]int32{}, map[int][]string{}
	for i := range x.messages {
		x.noteMessage(i)
		for _, c := range x.calls[i] {
			x.linesOfEdit(c)
		}
	}
	before := 0
	for r := range x.requests {
		q := &x.requests[r]
		x.noteFresh(q.message, before)
		before = q.message
		for k := range q.calls {
			for _, n := range q.calls[k].needs {
				if !n.far || n.kind == Quoted {
					continue
				}
				line, value := x.sourceOf(int(n.last), x.patterns[n.found].text)
				if line != "" {
					q.calls[k].lines = append(q.calls[k].lines, x.pattern(line, false))
				}
				if value != "" {
					q.calls[k].values = append(q.calls[k].values, x.pattern(value, false))
				}
			}
		}
	}
	if err := x.questions(); err != nil {
		return err
	}
	x.strings = len(x.patterns)
	x.find()
	x.uses = append(x.uses, make([][]int32, x.strings-len(x.uses))...)
	x.edits()
	return nil
}

// edits finds the far edits: of a call all lines of what it replaces that were seen before, one of them long ago.
func (x *indexer) edits() {
	for r := range x.requests {
		q := &x.requests[r]
		for i := q.message; i < len(x.messages) && (i == q.message || x.messages[i].assistant); i++ {
			for _, c := range x.calls[i] {
				far, lines := false, []int32(nil)
				for _, n := range c.lines {
					k, _ := slices.BinarySearch(x.places[n], int32(q.message))
					if k == 0 {
						continue
					}
					last := x.places[n][k-1]
					far = far || x.messages[i].before-x.messages[last].before >= farTokens
					lines = append(lines, n)
				}
				if far {
					q.edits = append(q.edits, lines)
				}
			}
			if len(x.messages[i].results) > 0 {
				break
			}
		}
	}
}

// ask asks a view for strings: it has all or not.
func (m *meter) ask(of *Ratio, list ...int32) {
	of.count(!slices.ContainsFunc(list, func(n int32) bool { return !m.holds(n) }))
}

// requestContent measures what the view of a request has.
func (m *meter) requestContent(to *sums, r *request) {
	for _, lines := range r.edits {
		m.ask(&to.Content[EditFar], lines...)
	}
	for i := range r.calls {
		for _, n := range r.calls[i].lines {
			m.ask(&to.Content[LineFar], n)
		}
		for _, n := range r.calls[i].values {
			m.ask(&to.Content[ValueFar], n)
		}
	}
	for _, lines := range m.notes.fresh[r.message] {
		m.ask(&to.Content[Seen], lines...)
	}
}

// compactedContent measures what a view has right after a compaction of the first n messages.
func (m *meter) compactedContent(n int) {
	for c, list := range map[Content][]noted{LastError: m.notes.errors, LastCount: m.notes.counts} {
		k := len(list) - 1
		for k >= 0 && list[k].message >= n {
			k--
		}
		if k >= 0 {
			m.ask(&m.out.Content[c], list[k].found)
		}
	}
	m.ends = append(m.ends, n)
	for k, times := range afterCompactions {
		c := len(m.ends) - times
		if c < 0 {
			continue
		}
		from, to := 0, m.ends[c]
		if c > 0 {
			from = m.ends[c-1]
		}
		for _, d := range m.notes.decisions {
			if from <= d.message && d.message < to {
				m.ask(&m.out.Content[int(Decided1)+k], d.found)
			}
		}
		for _, w := range m.words {
			if w.demand && from <= w.message && w.message < to {
				m.ask(&m.out.Content[int(Demanded1)+k], w.found)
			}
		}
	}
}
