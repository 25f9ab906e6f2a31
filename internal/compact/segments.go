package compact

import (
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// segment is what the state remembers of the summary of a range of the log. Its text is copied as it is from checkpoint
// to checkpoint, but for what Extract wrote about the present, which only the newest segment has.
type segment struct {
	from, to   int64
	messages   int
	replaced   int  // tokens that its messages had in the view
	text       span // in the decoded text of the message
	present    int  // where in it begins what is about the present
	tokens     int
	ofPresent  int // of these tokens
	writer     string
	state      SegmentState
	generation int
	digest     summary.Digest // of the request to the model; zero if none was asked
	flags      []string
}

// segmentText is a segment with its text.
type segmentText struct {
	segment
	lasting, now string
}

// whole returns the text of a segment.
func (p *segmentText) whole() string { return joined(p.lasting, p.now) }

// joined joins texts by empty lines, without empty ones.
func joined(texts ...string) string {
	all := make([]string, 0, len(texts))
	for _, t := range texts {
		if t != "" {
			all = append(all, t)
		}
	}
	return strings.Join(all, "\n\n")
}

// extracts reports whether Extract wrote a segment.
func (g *segment) extracts() bool { return g.writer == "" }

// segmented reports whether the view has a summary for each of several ranges, so that a new one leaves the others as
// they are.
func (s *runState) segmented() bool { return s.policy.Summarise.MaxSegments() > 1 }

// headingTokens is about what stands before each of several segments.
const headingTokens = 30

// segmentTokens returns the limit of a segment: no more than a quarter of the target, or than half of the room for all,
// if summaries must be smaller than what they replace.
func (s *runState) segmentTokens() int {
	limit := s.policy.Summarise.MaxTokens
	if s.policy.OnlySmaller {
		limit = min(limit, max(int(s.target/4), 1))
	}
	if s.segmented() {
		limit = min(limit, max(s.segmentsRoom()/2, 1))
	}
	return limit
}

// segmentsShare is the share of the target that all segments may have.
const segmentsShare = 0.25

// segmentsRoom returns how many tokens all segments may have: the oldest are merged until they have no more.
func (s *runState) segmentsRoom() int {
	room := s.policy.Summarise.MaxSegments() * s.policy.Summarise.MaxTokens
	if s.policy.OnlySmaller {
		room = min(room, int(segmentsShare*s.target))
	}
	return room
}

// segmentsAhead returns about how many tokens the segments have once another one has come.
func (s *runState) segmentsAhead() int {
	next := s.segmentTokens()
	if !s.segmented() {
		return next
	}
	for m := range s.messages[:s.based] {
		for i := range s.messages[m].segments {
			g := &s.messages[m].segments[i]
			next += g.tokens + headingTokens
			if g.extracts() {
				next -= g.ofPresent
			}
		}
	}
	return min(next, s.segmentsRoom())
}

// summaries are the summaries of the view while stage summarise runs.
type summaries struct {
	*runState
	at    int           // the message that has them, -1 for none
	list  []segmentText // oldest first
	grown int64         // tokens that the answers which were taken have more than what stood in their place
	taken []string      // what the answers are of, for the manifest
}

// summaries reads the summaries of the base. There is one message of them: whoever evicts takes all that came before.
func (s *runState) summaries() (*summaries, error) {
	u := &summaries{runState: s, at: -1}
	for m := range s.messages[:s.based] {
		of := s.messages[m].segments
		if len(of) == 0 {
			continue
		}
		message, err := s.decode(m, true)
		if err != nil {
			return nil, err
		}
		whole := message.Parts[0].Text
		u.at = m
		for _, g := range of {
			u.list = append(u.list, g.read(whole))
		}
	}
	return u, nil
}

// read returns a segment with its text, which is in that of its message.
func (g segment) read(whole string) segmentText {
	p := segmentText{segment: g}
	end := min(g.text.end, len(whole))
	present := min(g.present, end)
	p.now = whole[present:end]
	p.lasting = whole[min(g.text.start, present):present]
	if n := len(p.lasting) - len("\n\n"); p.now != "" && n >= 0 {
		p.lasting = p.lasting[:n]
	}
	return p
}

// kept returns the summaries that stay when a segment follows them, and what leaves with it: what Extract wrote about
// the present, which the new one takes up.
func (u *summaries) kept() (list []segmentText, left string) {
	list = slices.Clone(u.list)
	if n := len(list); n > 0 && list[n-1].extracts() {
		newest := &list[n-1]
		left, newest.now = newest.now, ""
		newest.tokens -= newest.ofPresent
		newest.ofPresent = 0
	}
	return list, left
}

// fill gives a segment the text of an answer.
func (u *summaries) fill(p *segmentText, a summary.Answer) {
	p.lasting, p.now = strings.TrimSpace(a.Retain), strings.TrimSpace(a.Summary)
	p.writer, p.flags = a.Writer, a.Flags
	if p.extracts() && !u.policy.Summarise.Retain && !u.segmented() {
		p.lasting, p.now = "", p.whole()
	}
	u.measure(p)
}

func (u *summaries) measure(p *segmentText) {
	p.tokens = u.count.text([]byte(p.whole()))
	p.ofPresent = 0
	if p.now != "" {
		p.ofPresent = p.tokens - u.count.text([]byte(p.lasting))
	}
}

// tokensOf returns the tokens of summaries with their headings.
func tokensOf(list []segmentText) (sum int) {
	for i := range list {
		sum += list[i].tokens + headingTokens
	}
	return sum
}

// segmentsOf returns the summaries in the checkpoint of a plan, oldest first.
func (p *Plan) segmentsOf() []Segment {
	list := []Segment{}
	add := func(of *coverage) {
		for i := range of.segments {
			list = append(list, of.segments[i].shown())
		}
	}
	for m := range p.history.messages[:p.covered] {
		if d := p.eviction; d != nil && d.begin == m {
			add(&d.coverage)
		}
		if !p.evicts(m) {
			add(&p.history.messages[m].coverage)
		}
	}
	return list
}

// extractName is what Segment.Writer has for Extract.
const extractName = "extract"

// shown returns a segment for those who call the engine.
func (g *segment) shown() Segment {
	writer := g.writer
	if g.extracts() {
		writer = extractName
	}
	return Segment{
		First: g.from, Last: g.to, Messages: g.messages, Tokens: g.tokens, Writer: writer, State: g.state,
		Generation: g.generation, Digest: g.digest, Flags: g.flags,
	}
}

// waitingFor returns the digests of the requests whose answers the checkpoint has a place for.
func (p *Plan) waitingFor(waits pending) (digests []summary.Digest) {
	if waits.last > 0 {
		digests = append(digests, waits.digest)
	}
	for i := range p.Segments {
		if g := &p.Segments[i]; g.State != Written {
			digests = append(digests, g.Digest)
		}
	}
	return digests
}

// reportDue says in the report of stage summarise which summaries are due.
func (p *Plan) reportDue(waits pending) {
	var due []string
	if waits.last > 0 {
		due = append(due, (&dueError{waits.first, waits.last}).Error())
	}
	for _, g := range p.Segments {
		if g.State == Due {
			due = append(due, (&dueError{g.First, g.Last}).Error())
		}
	}
	for i := range p.Stages {
		if p.Stages[i].Stage == "summarise" {
			p.Stages[i].Due = strings.Join(due, "; ")
		}
	}
}
