package compact

import (
	"regexp"
	"slices"
	"strings"
	"unsafe"

	"github.com/varve-dev/varve/internal/compact/failure"
	"github.com/varve-dev/varve/internal/compact/memory"
	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// quotes returns lines of the results that have left the view, with their refs, secrets masked.
func (s *runState) quotes(d *eviction, choice *memory.Choice) string {
	if s.linesRoom() == 0 {
		return ""
	}
	asked := s.askedBy(d)
	for m := range s.messages {
		for i := s.messages[m].first; i < s.messages[m].last; i++ {
			p := &s.parts[i]
			switch {
			case p.kind != result || !p.paired || p.readBack || p.action >= Stub:
			case d.evicts(m):
				s.quoteWritten(i, asked[p.callID])
				for _, q := range s.quotesOf(i) {
					s.memory.Quote(q)
				}
			case p.action == Keep && s.proposed[i].lowers(p) && s.proposed[i].action != Stub:
				s.memory.Quote(s.quotesOf(i)[0])
			}
		}
	}
	written := min(s.writtenRoom(), d.currentTokens(s.history)/8) // the summary of a short session must save something
	return resource.Mask(summary.Harmless(choice.Lines(s.linesRoom(), written)))
}

// sentCall is a call with its arguments.
type sentCall struct {
	seq       int64
	arguments []byte // as its message has them
}

// askedBy returns the calls in evicted messages by their ids.
func (s *runState) askedBy(d *eviction) map[string]sentCall {
	asked := map[string]sentCall{}
	for m := range d.evicted() {
		if s.messages[m].role != assistant {
			continue
		}
		found, err := s.found(m)
		if err != nil {
			continue // it was read before
		}
		for i := range found.Parts {
			if p := &found.Parts[i]; p.Kind == wire.Call && p.CallID != "" {
				asked[p.CallID] = sentCall{s.messages[m].seq, p.Value.Of(s.body(m))}
			}
		}
	}
	return asked
}

// writing is a result and the first byte of the arguments of its call.
type writing struct {
	result    int
	arguments *byte
}

// quoteWritten gives the memory what a call has written whose result i leaves the view. It is read once, however often
// a summary of it is written.
func (s *runState) quoteWritten(i int, by sentCall) {
	p := &s.parts[i]
	if !p.does.writes() || !p.usable || by.arguments == nil {
		return
	}
	at := writing{i, unsafe.SliceData(by.arguments)}
	q, known := s.written[at]
	if !known {
		ref := session.MessagesRef{First: by.seq, Last: by.seq}.String()
		text := resource.Written(decoded(by.arguments))
		q = memory.Quote{Seq: by.seq, Ref: ref, About: s.aboutOf(p), Kind: memory.Written, Text: text}
		s.written[at] = q
	}
	if q.Text != "" {
		s.memory.Quote(q)
	}
}

// counted recognises a line with what came of a command: a count or an exit code.
var counted = regexp.MustCompile(`(?i)\b\d+ (passed|failed|failures?|errors?|tests?|examples?|warnings?|skipped|` +
	`files? changed|insertions?|deletions?)\b|\bexit(ed)?( with)?( code| status)?\s*[:=]?\s*-?\d+`)

// quotesOf returns what is quoted of result i, the whole of it first. It is read once, however often a summary of it is
// written.
func (s *runState) quotesOf(i int) []memory.Quote {
	list, known := s.quotations[i]
	if !known {
		list = s.quoteResult(i)
		if s.parts[i].action != Bookend { // what that has depends on what is proposed
			s.quotations[i] = list
		}
	}
	return list
}

func (s *runState) quoteResult(i int) []memory.Quote {
	p := &s.parts[i]
	q := memory.Quote{Seq: p.seq, Ref: s.shownRefOf(i), About: s.aboutOf(p), Text: s.textOfResult(i)}
	list := []memory.Quote{q}
	shown := unsafe.Slice(unsafe.StringData(q.Text), len(q.Text)) // which is only read
	if !p.usable || failure.Shows(shown, p.does.runs(), s.policy.Tools.Errors) {
		if line := strings.TrimSpace(failure.Complaint(q.Text)); line != "" {
			q.Kind, q.Text = memory.Failure, line
			return append(list, q)
		}
	}
	if !p.does.runs() {
		return list
	}
	if line := outcomeOf(q.Text[max(len(q.Text)-endOfOutput, 0):]); line != "" {
		q.Kind, q.Text = memory.Outcome, line
		list = append(list, q)
	}
	return list
}

// mayCount reports whether a line may have such a count or code: a number before the first letter of what is counted,
// or "exit". The expression is slow.
func mayCount(line string) bool {
	for i := 0; i+2 < len(line); i++ {
		c := line[i]
		switch {
		case '0' <= c && c <= '9' && line[i+1] == ' ' && strings.IndexByte("pfetwsid", line[i+2]|0x20) >= 0,
			c|0x20 == 'x' && strings.EqualFold(line[i+1:i+3], "it"):
			return true
		}
	}
	return false
}

// outcomeOf returns the last line with what came of a command, "" for none.
func outcomeOf(text string) string {
	for text != "" {
		begin := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
		line := text[begin:]
		if text = text[:begin]; mayCount(line) && counted.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// endOfOutput is how many bytes of a command's output are looked at for what came of it.
const endOfOutput = 4096

// aboutOf returns a line about what a result is about.
func (s *runState) aboutOf(p *part) string {
	of := p.resource
	if len(p.paths) > 0 {
		of = p.paths[0]
	}
	about := strings.Join(strings.Fields(label(p.tool)+" "+of), " ")
	return string(text.First([]byte(about), resourceBytes))
}

// textOfResult returns what the view has of result i as text. Nothing changes the bytes of a content.
func (s *runState) textOfResult(i int) string {
	if s.parts[i].action == Keep {
		return sharedText(s.content(i).Text)
	}
	head, tail := s.current(i)
	return string(slices.Concat(head, []byte("\n"), tail))
}

// sharedText returns bytes that nothing changes any more as a text, without a copy.
func sharedText(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// sentenceEnd returns where the first sentence of a text ends, and where the next begins: at line ends, or behind the
// end of a sentence and white space.
func sentenceEnd(text string) (end, next int) {
	const ends, spaces = ".!?", " \t\n\f\r"
	for i := range len(text) {
		if text[i] == '\n' {
			return i, len(text) - len(strings.TrimLeft(text[i:], "\n"))
		}
		if strings.IndexByte(ends, text[i]) >= 0 {
			if rest := strings.TrimLeft(text[i+1:], spaces); len(rest) < len(text)-i-1 {
				return i + 1, len(text) - len(rest)
			}
		}
	}
	return len(text), len(text)
}

const shortSentence, longSentence = 32, 400 // bytes

// decide adds the sentences of a text of the agent to the memory.
func (s *runState) decide(seq int64, said string) {
	said = summary.Unquoted(said)
	for start := 0; start < len(said); {
		end, next := sentenceEnd(said[start:])
		sentence := strings.TrimSpace(said[start : start+end])
		start += next
		if len(sentence) < shortSentence || len(sentence) > longSentence {
			continue
		}
		if sentence = summary.Said(sentence); sentence != "" && !strings.HasPrefix(sentence, ">") {
			s.memory.Decide(seq, sentence)
		}
	}
}

// linesRoom returns how many tokens the lines of results may have.
func (s *runState) linesRoom() int { return s.share(s.policy.Summarise.LinesRatio) }

// writtenRoom returns how many tokens the newest texts may have that the agent wrote into files.
func (s *runState) writtenRoom() int { return s.linesRoom() * 6 / 5 }

// decidedRoom returns how many tokens the agent's sentences may have.
func (s *runState) decidedRoom() int { return s.linesRoom() * 4 / 3 }
