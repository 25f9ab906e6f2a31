package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/wire"
)

// farTokens is how many tokens back the message that has a string last begins, at least, for its need to be far.
const farTokens = 8000

// index is what is known of a session before it is replayed. Messages go by their place in the log, strings by their
// number.
type index struct {
	messages []indexed
	requests []request
	strings  int
	matcher  *matcher
	places   [][]int32 // by string: the messages that have it
	words    []segment
	uses     [][]int32 // by string: the requests that need it, by their first message
	notes    notes
}

// indexed is what is known of a message.
type indexed struct {
	before    int64 // tokens of the log before it
	at        time.Time
	assistant bool
	system    bool
	starts    bool    // a unit begins with it
	strings   []int32 // outside of its results
	results   []resultIn
}

// resultIn is a result in a message.
type resultIn struct {
	value   wire.Span
	tokens  int
	strings []int32
}

// request is a message of the agent, or several in a row, which one request asked for.
type request struct {
	message int // the first of them: the view has all before it
	calls   []call
	edits   [][]int32 // the earlier lines of what each far edit replaces
}

// call is a call that needs strings of earlier messages.
type call struct {
	edit   bool
	needs  []need
	lines  []int32 // that had far needs last
	values []int32
}

// need is a string that a call uses and that a tool or the user brought.
type need struct {
	found int32
	kind  Kind
	last  int32 // the message before the request that has it last
	far   bool
	own   bool // what the call is about uses it, not what the call writes
}

// prepare indexes the session, once.
func (s *Session) prepare() error {
	s.once.Do(func() { s.index, s.err = newIndex(s) })
	return s.err
}

// indexer makes an index.
type indexer struct {
	*index
	session  *Session
	facts    []wire.Facts
	calls    [][]*callStrings // by message
	numbers  map[string]int32
	patterns []pattern
	log      []byte           // normalised
	decoded  map[int][]string // by message, of those that were asked for: its texts
}

func newIndex(s *Session) (*index, error) {
	x := &indexer{index: &index{messages: make([]indexed, len(s.Messages))}, session: s, numbers: map[string]int32{}}
	x.calls = make([][]*callStrings, len(s.Messages))
	for i := range s.Messages {
		if err := x.read(i); err != nil {
			return nil, fmt.Errorf("%s: message %d: %w", s.Name, s.Messages[i].Seq, err)
		}
	}
	x.number()
	x.find()
	x.ask()
	if err := x.content(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return x.index, nil
}

// pause is the time between two messages that have none.
const pause = 20 * time.Second

// read reads a message.
func (x *indexer) read(i int) error {
	m := &x.session.Messages[i]
	found, err := wire.Inspect(x.session.Format, m.Body)
	if err != nil {
		return err
	}
	x.place(i)
	to := &x.messages[i]
	to.assistant = isAssistant(&found)
	to.system = found.Flags&wire.FlagPinned != 0
	to.starts = found.StartsUnit && !(to.assistant && i > 0 && x.messages[i-1].assistant)
	for k := range found.Parts {
		switch p := &found.Parts[k]; p.Kind {
		case wire.Call:
			x.calls[i] = append(x.calls[i], stringsOf(p.Value.Of(m.Body)))
		case wire.Result:
			to.results = append(to.results, resultIn{value: p.Value, tokens: p.Tokens})
		}
	}
	x.facts = append(x.facts, found)
	return nil
}

// place sets what comes before a message, and when it was appended: never before the one that precedes it.
func (x *indexer) place(i int) {
	to := &x.messages[i]
	to.at = x.session.Messages[i].At
	if i == 0 {
		return
	}
	earlier := &x.messages[i-1]
	to.before = earlier.before + int64(x.session.Messages[i-1].Tokens)
	if to.at.IsZero() {
		to.at = earlier.at.Add(pause)
	} else if to.at.Before(earlier.at) {
		to.at = earlier.at
	}
}

func isAssistant(found *wire.Facts) bool {
	if found.Role == "assistant" || found.Role == "model" {
		return true
	}
	calls := func(p wire.Part) bool { return p.Kind == wire.Call || p.Kind == wire.Reasoning }
	return found.Role != "user" && found.Role != "tool" && slices.ContainsFunc(found.Parts, calls)
}

// number gives each string that calls use, and each piece of the user's words, a number.
func (x *indexer) number() {
	for i := range x.calls {
		for _, c := range x.calls[i] {
			for _, u := range c.list {
				x.pattern(u.text, u.kind != Quoted)
			}
		}
	}
	for i := range x.session.Messages {
		x.readWords(i)
	}
	for i := range x.session.facts {
		x.session.facts[i].found = x.pattern(normalised(x.session.facts[i].token), true)
	}
	x.strings = len(x.patterns)
}

func (x *indexer) pattern(text string, word bool) int32 {
	n, ok := x.numbers[text]
	if !ok {
		n = int32(len(x.patterns))
		x.numbers[text] = n
		x.patterns = append(x.patterns, pattern{text, word, n})
	}
	return n
}

// find finds all strings in all messages.
func (x *indexer) find() {
	x.log = x.log[:0]
	for i := range x.session.Messages {
		x.log = normalise(x.log, x.session.Messages[i].Body)
	}
	x.matcher = newMatcher(x.patterns, x.log)
	x.places = make([][]int32, x.strings)
	var text []byte
	for i := range x.messages {
		m, body := &x.messages[i], x.session.Messages[i].Body
		all := newBits(x.strings)
		rest, from := text[:0], 0
		for k := range m.results {
			r := &m.results[k]
			found := newBits(x.strings)
			x.matcher.scan(normalise(nil, r.value.Of(body)), found)
			r.strings = found.list()
			all.add(found)
			rest = normalise(rest, body[from:r.value.Start])
			from = max(from, r.value.End)
		}
		rest = normalise(rest, body[from:])
		found := newBits(x.strings)
		x.matcher.scan(rest, found)
		m.strings = found.list()
		all.add(found)
		for _, s := range all.list() {
			x.places[s] = append(x.places[s], int32(i))
		}
		text = rest
	}
}

func (b bits) add(o bits) {
	for i := range o {
		b[i] |= o[i]
	}
}

func (b bits) list() (list []int32) {
	for i := range int32(len(b) * 64) {
		if b[i>>6] == 0 {
			continue
		}
		if b.has(i) {
			list = append(list, i)
		}
	}
	return list
}

// ask finds the requests and what their calls need.
func (x *indexer) ask() {
	x.uses = make([][]int32, x.strings)
	for i := range x.messages {
		if !x.messages[i].assistant || i == 0 {
			continue
		}
		if !x.messages[i-1].assistant || len(x.messages[i-1].results) > 0 {
			x.requests = append(x.requests, request{message: i})
		}
		if len(x.requests) == 0 {
			continue
		}
		r := &x.requests[len(x.requests)-1]
		for _, c := range x.calls[i] {
			if needs := x.needs(r.message, i, c); len(needs) > 0 {
				for _, n := range needs {
					x.uses[n.found] = append(x.uses[n.found], int32(r.message))
				}
				r.calls = append(r.calls, call{edit: c.edit, needs: needs})
			}
		}
	}
}

// needs returns the strings of a call in message i that a tool or the user brought before its request.
func (x *indexer) needs(request, i int, c *callStrings) (needs []need) {
	for _, u := range c.list {
		n := x.numbers[u.text]
		before, _ := slices.BinarySearch(x.places[n], int32(request))
		if before == 0 || !x.brings(x.places[n][0], n) {
			continue
		}
		last := x.places[n][before-1]
		far := x.messages[i].before-x.messages[last].before >= farTokens
		needs = append(needs, need{n, u.kind, last, far, !u.written})
	}
	return needs
}

// brings reports whether a message has a string in a result, or is not the agent's.
func (x *indexer) brings(m, n int32) bool {
	if !x.messages[m].assistant {
		return true
	}
	return slices.ContainsFunc(x.messages[m].results, func(r resultIn) bool { return slices.Contains(r.strings, n) })
}
