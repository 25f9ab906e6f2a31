package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// turn holds what one side says: a message of the user or the system, or consecutive messages of the assistant together
// with the results of their calls. Every provider requires the results directly after the calls.
type turn struct {
	said    []Message
	calls   []*call
	answers []Message // contain only results of the calls
	mixed   *Message  // results of the calls, then what the user says; after answers
}

// call is a call of a turn.
type call struct {
	turn     int
	said     int    // which message of turn.said has it
	at       *Block // in that message
	answered bool
}

// arrangement puts a conversation into the order that its target requires.
type arrangement struct {
	*repairer
	turns []*turn
	calls []*call         // those so far, by their numbers, which begin at 1
	early map[int]Message // results whose calls are to come, by the numbers of these
	list  []Message       // the whole conversation
	ids   map[string]bool // of all calls, once one was asked for
}

// arrange pairs calls and results, and moves what is not where the target requires it. A result without a call becomes
// a note of the user.
func (r *repairer) arrange(list []Message) []Message {
	a := &arrangement{repairer: r, calls: make([]*call, pair(list)+1), early: map[int]Message{}, list: list}
	for i := range list {
		if n := &list[i]; n.Role == Assistant && !n.has(Result) {
			a.assistant(n)
		} else {
			a.others(n)
		}
	}
	a.settlePending()
	return a.flat()
}

// assistant adds a message of the assistant to the turn that is open, or begins a new turn.
func (a *arrangement) assistant(n *Message) {
	x := a.last()
	if x == nil || !a.continues(x, n) {
		x = &turn{}
		a.turns = append(a.turns, x)
	}
	x.said = append(x.said, *n)
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Call {
			c := &call{turn: len(a.turns) - 1, said: len(x.said) - 1, at: p}
			x.calls = append(x.calls, c)
			a.calls[p.pair] = c
		}
	}
	if len(a.early) > 0 {
		a.placeEarly(x, n)
	}
}

// continues reports whether a message of the assistant belongs to the turn before it. Chat Completions requires the
// results after each message, and an AI SDK message contains its own; messages of other formats are joined there.
func (a *arrangement) continues(x *turn, n *Message) bool {
	last := &x.said[len(x.said)-1]
	if last.Role != Assistant || len(x.answers) > 0 || x.mixed != nil {
		return false
	}
	switch a.target {
	case session.OpenAIChat:
		return len(x.calls) == 0 || !a.keeps(last) || !a.keeps(n)
	case session.AISDK:
		return last.Origin == n.Origin || !a.keepsFormat(last) && !a.keepsFormat(n)
	}
	return true
}

func (a *arrangement) last() *turn {
	if len(a.turns) == 0 {
		return nil
	}
	return a.turns[len(a.turns)-1]
}

// others adds a message that is not the assistant's, or that contains results.
func (a *arrangement) others(n *Message) {
	s := a.sort(n)
	switch {
	case s.results == 0 && n.Role != Tool:
		a.say(n)
	case s.results == 0: // a ModelMessage
		if n.Blocks = a.said(s.rest); len(n.Blocks) > 0 {
			n.Role, n.Edited = User, true
			a.say(n)
		}
	case s.inPlace() && len(s.rest) == 0:
		a.last().answers = append(a.last().answers, *n)
	case s.inPlace() && s.first && a.keeps(n) && a.target == session.Anthropic:
		a.last().mixed = n
	case a.target == session.OpenAIResponses && a.keeps(n) && len(s.orphans)+len(s.early) == 0:
		a.say(n) // this provider requires a result, but not where it is
	default:
		a.split(n, &s)
	}
}

func (a *arrangement) say(n *Message) {
	a.turns = append(a.turns, &turn{said: []Message{*n}})
}

// sorted are the blocks of a message by where they belong.
type sorted struct {
	results int
	mine    []Block // results of the turn directly before the message
	moved   []moved // results of an earlier turn
	early   []Block // results of a turn to come
	orphans []Block // results without a call
	rest    []Block // everything else
	first   bool    // the results come before everything else
}

type moved struct {
	turn  int
	block Block
}

func (s *sorted) inPlace() bool { return len(s.moved)+len(s.early)+len(s.orphans) == 0 }

func (a *arrangement) sort(n *Message) sorted {
	s := sorted{first: true}
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind != Result {
			s.rest = append(s.rest, *p)
			continue
		}
		s.results++
		s.first = s.first && len(s.rest) == 0
		c := a.calls[p.pair]
		if c != nil {
			a.answer(n, p, c)
		}
		switch {
		case p.pair == 0:
			s.orphans = append(s.orphans, *p)
		case c == nil:
			s.early = append(s.early, *p)
		case c.turn == len(a.turns)-1 && a.last().mixed == nil:
			s.mine = append(s.mine, *p)
		default:
			s.moved = append(s.moved, moved{c.turn, *p})
		}
	}
	return s
}

// answer marks a call as answered by a result of a message, which gets the call's name.
func (a *arrangement) answer(n *Message, p *Block, c *call) {
	c.answered = true
	isNamed := p.Name != nil || n.Format != session.Gemini
	if p.Name == nil && a.target != session.OpenAIChat {
		p.Name = c.at.Name // some providers require it, others do not send it
	}
	if a.target != session.Gemini || isNamed && bytes.Equal(c.at.Name, p.Name) {
		return
	}
	if a.keeps(n) {
		a.repaired(a.provider.Codes.Unanswered, "response_renamed", n,
			"the response of call %q has the call's name", p.CallID)
	}
	p.Name = c.at.Name
	p.Edited = true
	n.Edited = true
}

// placeEarly puts the results that came before the newest message of the assistant behind their calls there.
func (a *arrangement) placeEarly(x *turn, n *Message) {
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if result, ok := a.early[p.pair]; ok && p.Kind == Call {
			a.answer(&result, &result.Blocks[0], a.calls[p.pair])
			a.moved(n, &result)
			x.answers = append(x.answers, result)
		}
	}
}

// split moves the results of a message to the turns that they belong to. The rest stays where it was.
func (a *arrangement) split(n *Message, s *sorted) {
	if len(s.mine) > 0 {
		a.last().answers = append(a.last().answers, resultsOf(n, s.mine))
		if a.keeps(n) && len(s.rest) > 0 {
			a.repaired(a.provider.Codes.Mixed, "results_first", n, "results are before what the user says")
		}
	}
	for _, m := range s.moved {
		x := a.turns[m.turn]
		a.moved(&x.said[0], n)
		x.answers = append(x.answers, resultsOf(n, []Block{m.block}))
		a.repaired(a.provider.Codes.Unanswered, "result_moved", n,
			"the result of call %q is directly after its call", m.block.CallID)
	}
	for _, p := range s.early {
		a.early[p.pair] = resultsOf(n, []Block{p})
		a.repaired(a.provider.Codes.Orphan, "result_moved", n,
			"the result of call %q, which came before its call, is directly after it", p.CallID)
	}
	rest := s.rest
	for i := range s.orphans {
		about := "The result of a tool call that is not in this conversation: %s"
		if a.isCalled(s.orphans[i].CallID) {
			about = "Another result of a tool call that has one: %s"
		}
		rest = append(rest, orphanNote(&s.orphans[i], about)...)
		a.repaired(a.provider.Codes.Orphan, "orphan_result", n,
			"a result of call %q, which is not in this conversation or has one, is a note", s.orphans[i].CallID)
	}
	if rest = a.said(rest); len(rest) == 0 {
		return
	}
	said := *n
	said.Blocks, said.Edited = rest, true
	if said.Role == Tool {
		said.Role = User
		said.Name = nil
		said.Extra = nil
	}
	a.say(&said)
}

// said returns what was beside results, nothing if it says nothing: the AI SDK sends no message of empty texts.
func (a *arrangement) said(rest []Block) []Block {
	says := func(p Block) bool { return p.Kind != Text || !blank(p.Text) }
	if a.target != session.AISDK || slices.ContainsFunc(rest, says) {
		return rest
	}
	return nil
}

// isCalled reports whether any call has this id.
func (a *arrangement) isCalled(id string) bool {
	if a.ids == nil {
		a.ids = map[string]bool{}
		each(a.list, Call, func(_ *Message, p *Block) { a.ids[p.CallID] = true })
	}
	return a.ids[id]
}

// resultsOf returns a message that contains some of the results of n.
func resultsOf(n *Message, results []Block) Message {
	out := *n
	out.Role = Tool
	out.Blocks = results
	out.Extra = nil
	out.Edited = n.Edited || len(results) != len(n.Blocks) || n.Role != Tool
	return out
}

// orphanNote returns the content of a result that answers no open call: a text about it, its texts, images and files.
func orphanNote(p *Block, format string) []Block {
	about := note(format, shownID(p.CallID))
	if p.IsError {
		about = joined("[Error] ", about)
	}
	blocks := []Block{{Kind: Text, Text: about, Edited: true}}
	for _, inner := range p.Content {
		if inner.Kind == Text && blank(inner.Text) {
			continue
		}
		if inner.Kind == Opaque {
			inner = Block{Kind: Text, Text: substitute(&inner)}
		}
		inner.Raw = nil
		inner.Format = ""
		inner.Edited = true
		blocks = append(blocks, inner)
	}
	return blocks
}

// settlePending adds the missing results of calls, which say that they are missing, except for the calls of the last
// unit: their results may still come.
func (a *arrangement) settlePending() {
	for i, x := range a.turns {
		inFlight := i == len(a.turns)-1 && x.mixed == nil
		switch {
		case !inFlight:
			a.synthesize(x, x.calls, lostResult)
		case a.Pending == KeepPending || a.Pending == "":
			a.synthesize(x, a.passed(x), lostResult)
			a.synthesize(x, a.denied(x), lostResult)
			a.inFlight = slices.ContainsFunc(x.calls, func(c *call) bool { return !c.answered })
		case a.Pending == SynthesizePending:
			a.synthesize(x, x.calls, pendingResult)
		case a.Pending == DropPending:
			a.dropPending(x)
		}
	}
}

// passed returns the calls that the assistant's words are behind, in a format where these are an item of their own.
func (a *arrangement) passed(x *turn) []*call {
	if a.target != session.OpenAIResponses {
		return nil
	}
	n := 0
	called := 0
	for i := range x.said {
		if len(x.said[i].Blocks) == 0 { // an item without words is one all the same
			n = called
		}
		for j := range x.said[i].Blocks {
			p := &x.said[i].Blocks[j]
			switch {
			case p.Kind == Call:
				called++
			case a.isWords(x, i, p):
				n = called
			}
		}
	}
	return x.calls[:n]
}

// denied returns the calls that the user denied, for which nobody else makes the result.
func (a *arrangement) denied(x *turn) (list []*call) {
	for _, c := range x.calls {
		if a.target != session.AISDK && strings.HasPrefix(c.at.waits, deniedCall) {
			list = append(list, c)
		}
	}
	return list
}

// isWords reports whether a block of message i of a turn will be in an item of the assistant's words.
func (a *arrangement) isWords(x *turn, i int, p *Block) bool {
	own := p.Format == a.target && p.Raw != nil && !p.Edited
	switch {
	case own && p.Kind == Reasoning:
		return byID(p.Raw) || !a.isFollowed(x.said, i)
	case own && p.Kind == Opaque:
		return isMessageItem(x.said[i].Raw)
	}
	return true
}

// Why a call has no result.
const (
	lostResult    = "lost: the call was interrupted, or its result is not stored"
	pendingResult = "not there yet"
)

// missingResult returns a result that says that it is missing.
func missingResult(call *Block, why string) Message {
	text := Block{Kind: Text, Text: note("The result of this tool call is %s.", why)}
	result := Block{
		Kind: Result, CallID: call.CallID, Name: call.Name, Content: []Block{text}, IsError: true, pair: call.pair,
	}
	return Message{Role: Tool, Blocks: []Block{result}, Edited: true}
}

// synthesize adds the missing results of some calls of a turn.
func (a *arrangement) synthesize(x *turn, calls []*call, why string) {
	for _, c := range calls {
		if c.answered {
			continue
		}
		c.answered = true
		x.answers = append(x.answers, missingResult(c.at, cmp.Or(c.at.waits, why)))
		a.repaired(a.provider.Codes.Unanswered, "result_synthesized", &x.said[c.said],
			"call %q has no result", c.at.CallID)
	}
}

// dropPending removes the calls that have no result, and the messages that are then empty.
func (a *arrangement) dropPending(x *turn) {
	pending := map[*Block]bool{}
	for _, c := range x.calls {
		if !c.answered {
			pending[c.at] = true
			a.repaired(a.provider.Codes.Unanswered, "call_dropped", &x.said[c.said],
				"call %q has no result yet", c.at.CallID)
		}
	}
	if len(pending) == 0 {
		return
	}
	said := x.said[:0:0]
	for _, n := range x.said {
		kept := n.Blocks[:0:0]
		for i := range n.Blocks {
			if !pending[&n.Blocks[i]] {
				kept = append(kept, n.Blocks[i])
			}
		}
		if len(kept) < len(n.Blocks) {
			n.Blocks, n.Edited = kept, true
		}
		if !n.Edited || a.hasContent(&n) {
			said = append(said, n)
		}
	}
	x.said = said
}

func (a *arrangement) flat() []Message {
	list := make([]Message, 0, len(a.list))
	for _, x := range a.turns {
		if a.isOneUIMessage(x) {
			list = append(list, x.steps()...)
		} else {
			list = append(append(list, x.said...), x.answers...)
		}
		if x.mixed != nil {
			list = append(list, *x.mixed)
		}
	}
	return list
}

// isOneUIMessage reports whether all of a turn is one message of the AI SDK, in which each result is in the part of its
// call.
func (a *arrangement) isOneUIMessage(x *turn) bool {
	if a.target != session.AISDK || len(x.said) < 2 {
		return false
	}
	first, last := &x.said[0], &x.said[len(x.said)-1]
	return a.keepsFormat(first) && first.Origin == last.Origin
}

// steps returns what is said in a turn, each message with the results of its calls behind it: what the last one says is
// what the turn ends with.
func (x *turn) steps() (list []Message) {
	step := map[int]int{} // of each call, by its pair
	for i := range x.said {
		each(x.said[i:i+1], Call, func(_ *Message, p *Block) { step[p.pair] = i })
	}
	answers := make([][]Message, len(x.said))
	for _, n := range x.answers {
		i := step[n.Blocks[0].pair]
		answers[i] = append(answers[i], n)
	}
	for i := range x.said {
		list = append(append(list, x.said[i]), answers[i]...)
	}
	return list
}
