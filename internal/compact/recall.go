package compact

import (
	"github.com/varve-dev/varve/internal/compact/memory"
	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// tokensOfName is how many tokens of room in the index there are for each name that a checkpoint's state remembers:
// about half of them fit.
const tokensOfName = 2

// remembers reports whether the policy wants the user's words, lines of results or an index of names.
func (s *runState) remembers() bool {
	limits := &s.policy.Summarise
	return limits.Enabled && limits.WordsRatio+limits.NamesRatio+limits.LinesRatio > 0
}

// remember adds the messages that the base does not cover and the checkpoint will to the memory.
func (s *runState) remember() {
	if s.memory == nil {
		s.memory = &memory.Memory{}
	}
	if !s.remembers() {
		return
	}
	for m := s.based; m < s.through(); m++ {
		s.note(m)
	}
	s.said = s.memory.Said()
	s.memory.Prune(max((s.namesRoom()+s.linesRoom())/tokensOfName, minNames))
}

// minNames is how many names a state remembers at least, where there is room in the view for few.
const minNames = 512

// weights are how much a name counts by where it stands. What the agent only asked for or thought counts less than what
// was said or found.
var weights = map[wire.Kind]float64{wire.Text: 3, wire.Result: 3, wire.Call: 1, wire.Reasoning: 1}

// inResult stands before what a result has as the user's words: a tool could have written that, too.
const inResult = "(in a call's result) "

// note adds message m, which is of the tail, to the memory.
func (s *runState) note(m int) {
	at, body := &s.messages[m], s.body(m)
	s.memory.Pass(at.tokens)
	for i := range s.tail[m-s.based].Parts {
		p := &s.tail[m-s.based].Parts[i]
		if weight := weights[p.Kind]; weight > 0 && s.namesRoom()+s.linesRoom() > 0 {
			from := memory.Source{Seq: at.seq, Weight: weight, Escaped: true, Shared: p.Kind == wire.Result}
			// Before it is divided into names: a secret that is told by its name is not known without it.
			s.memory.Note(resource.MaskBytes(p.Value.Of(body)), from)
		}
		switch {
		case p.Kind == wire.Text && at.role == assistant && s.linesRoom() > 0:
			s.decide(at.seq, s.textOf(body, p))
		case s.wordsRoom() == 0:
		case p.Kind == wire.Text && at.role == user:
			s.memory.Say(at.seq, summary.Said(s.textOf(body, p)))
		case p.Kind == wire.Result:
			s.text = beginning(s.text[:0], p.Value.Of(body))
			if !summary.MayBeSaid(s.text) {
				continue
			}
			if said, _ := summary.SaidInResult(string(s.text)); said != "" {
				s.memory.Say(at.seq, inResult+said)
			}
		}
	}
}

// beginning appends the text of a string literal, nothing of longer and other values: the user's answer is all of a
// short result.
func beginning(dst, literal []byte) []byte {
	const answer = 4096
	if len(literal) > answer || len(literal) == 0 || literal[0] != '"' {
		return dst
	}
	text, _ := rawjson.Unquote(dst, literal)
	return text
}

// mostNames is how many tokens an index has at most, however large the window is: more names are needed too seldom.
const mostNames = 8000

// namesRoom returns how many tokens the index of names may have.
func (s *runState) namesRoom() int { return min(s.share(s.policy.Summarise.NamesRatio), mostNames) }

// wordsRoom returns how many tokens the user's words may have.
func (s *runState) wordsRoom() int { return s.share(s.policy.Summarise.WordsRatio) }

// summaryRoom returns how many tokens the summaries may have with all that stands beside them, or will have, if that is
// known.
func (s *runState) summaryRoom() int {
	if s.expected > 0 {
		return s.expected
	}
	quoted := s.linesRoom() + s.writtenRoom() + s.decidedRoom()
	return s.segmentsAhead() + s.namesRoom() + min(s.wordsRoom(), s.said) + quoted
}

// recall returns what the memory has of the evicted messages: the user's words, sentences of the agent that the writers
// have not said, lines, and the names that the rest of the view does not have, secrets of well-known forms masked.
func (s *runState) recall(d *eviction, said string) (with replacementText) {
	if !s.remembers() {
		return with
	}
	inView := map[int64]bool{}
	for m := range s.messages {
		inView[s.messages[m].seq] = inView[s.messages[m].seq] || !d.evicts(m)
	}
	with.words = resource.Mask(s.memory.Words(s.wordsRoom(), func(seq int64) bool { return !inView[seq] }))
	with.decided = resource.Mask(s.memory.Decided(s.decidedRoom(), func(seq int64) bool { return !inView[seq] }, said))
	choice := s.memory.Choose()
	for m := range s.messages {
		if !d.evicts(m) {
			choice.Show(s.namesShown(m))
		}
	}
	with.quotes = s.quotes(d, choice)
	with.names = resource.Mask(choice.Index(s.namesRoom()))
	return with
}

// namesShown returns the remembered names that the view has of message m: of the parts that a stage wants to replace
// those of what replaces them. A message without such parts is read once, however often a summary is written beside it.
func (s *runState) namesShown(m int) (list memory.Names) {
	body, from := s.body(m), 0
	for i := s.messages[m].first; i < s.messages[m].last; i++ {
		if p := &s.parts[i]; p.valueBytes() > 0 && s.proposed[i].lowers(p) {
			list = s.memory.NamesIn(list, body[from:p.value.Start], true)
			from = p.value.End
			if d, ok := s.drafts[i]; ok {
				list = s.memory.NamesIn(list, d.quoted, true)
				list = s.memory.NamesIn(list, d.text, true)
			}
		}
	}
	if from > 0 {
		return s.memory.NamesIn(list, body[from:], true)
	}
	if s.shown[m] == nil {
		s.shown[m] = s.memory.NamesIn(nil, body, true)
	}
	return s.shown[m]
}
