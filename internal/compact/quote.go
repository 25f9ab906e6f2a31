package compact

import (
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/failure"
	"github.com/varve-dev/varve/internal/compact/memory"
	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/compact/text"
)

// quotes returns lines of the results that have left the view, with their refs, secrets masked.
func (s *runState) quotes(d *eviction, seen memory.Seen) string {
	if s.linesRoom() == 0 {
		return ""
	}
	for m := range d.evicted() {
		for i := s.messages[m].first; i < s.messages[m].last; i++ {
			if p := &s.parts[i]; p.kind == result && p.paired && p.action < Stub && !p.readBack {
				s.quoteResult(i)
			}
		}
	}
	return resource.Mask(summary.Harmless(s.memory.Lines(s.linesRoom(), seen)))
}

// counted recognises a line with what came of a command: a count or an exit code.
var counted = regexp.MustCompile(`(?i)\b\d+ (passed|failed|failures?|errors?|tests?|examples?|warnings?|skipped|` +
	`files? changed|insertions?|deletions?)\b|\bexit(ed)?( with)?( code| status)?\s*[:=]?\s*-?\d+`)

// quoteResult gives the memory result i, which leaves the view.
func (s *runState) quoteResult(i int) {
	p := &s.parts[i]
	q := memory.Quote{Seq: p.seq, Ref: s.shownRefOf(i), About: s.aboutOf(p), Text: s.textOfResult(i)}
	s.memory.Quote(q)
	if !p.usable || failure.Shows([]byte(q.Text), p.does.runs(), s.policy.Tools.Errors) {
		if line := trimmed(failure.Complaint(q.Text)); line != "" {
			q.Kind, q.Text = memory.Failure, line
			s.memory.Quote(q)
			return
		}
	}
	if !p.does.runs() {
		return
	}
	whole := q.Text
	for line := range strings.Lines(whole[max(len(whole)-endOfOutput, 0):]) {
		if counted.MatchString(line) {
			q.Kind, q.Text = memory.Outcome, trimmed(line)
		}
	}
	if q.Kind == memory.Outcome {
		s.memory.Quote(q)
	}
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

// textOfResult returns what the view has of result i as text.
func (s *runState) textOfResult(i int) string {
	if s.parts[i].action == Keep {
		return string(s.content(i).Text)
	}
	head, tail := s.current(i)
	return string(slices.Concat(head, []byte("\n"), tail))
}

// decides recognises a sentence in which the agent says what it found or decided.
var decides = regexp.MustCompile(`(?i)\b(I'?ll|I will|let'?s|decided?|instead of|because|root cause|` +
	`(issue|problem|bug|cause|fix) (is|was)|should|must|needs? to|found|turns? out|so that|rather than)\b`)

// sentenceEnds ends a sentence.
var sentenceEnds = regexp.MustCompile(`\n+|[.!?]\s+`)

const shortSentence, longSentence = 40, 300 // bytes

// decide adds the sentences of a text of the agent to the memory in which it finds or decides something.
func (s *runState) decide(seq int64, said string) {
	for start := 0; start < len(said); {
		end, next := len(said), len(said)
		if at := sentenceEnds.FindStringIndex(said[start:]); at != nil {
			end, next = start+at[0], start+at[1]
			if said[end] != '\n' {
				end++ // the full stop
			}
		}
		sentence := strings.TrimSpace(said[start:end])
		start = next
		if len(sentence) < shortSentence || len(sentence) > longSentence || !decides.MatchString(sentence) {
			continue
		}
		if sentence = summary.Said(sentence); sentence != "" && !strings.HasPrefix(sentence, ">") {
			s.memory.Decide(seq, sentence)
		}
	}
}

// linesRoom returns how many tokens the lines of results may have.
func (s *runState) linesRoom() int { return s.share(s.policy.Summarise.LinesRatio) }

// decidedRoom returns how many tokens the agent's sentences may have.
func (s *runState) decidedRoom() int { return s.linesRoom() / 2 }
