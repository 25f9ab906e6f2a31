package wire

import (
	"sync"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// read reads the message. There is one reader a format, for every purpose.
func (s *scanner) read(f session.Format) (Facts, error) {
	body := s.body
	s.format = f
	if len(body) > session.MaxMessageBytes {
		return Facts{}, session.Invalid("", "message_too_large",
			"a message must have at most %d bytes, this one has %d", session.MaxMessageBytes, len(body))
	}
	top := Span{Start: rawjson.Start(body), End: len(body)}
	if top.Start == top.End || !s.is(top, '{') {
		return Facts{}, session.Invalid("", "invalid_message",
			"a message must be a JSON object, this is %s", s.describe(top.Start))
	}
	switch f {
	case session.OpenAIChat:
		s.openAIChat(top)
	case session.Anthropic:
		s.anthropic(top)
	case session.Gemini:
		s.gemini(top)
	case session.AISDK:
		s.aiSDK(top)
	case session.OpenAIResponses:
		s.openAIResponses(top)
	default:
		return Facts{}, session.Invalid("", "invalid_message", "format %q is unknown", f)
	}
	s.weighMembers(f)
	if s.err != nil {
		return Facts{}, s.err
	}
	s.facts.Tokens += MessageTokens
	if !s.filled {
		s.facts.Flags |= FlagEmpty
	}
	if s.reader == nil && s.ir == nil {
		s.assess(f)
	}
	return s.facts, nil
}

// reading is what Decode needs for one message. It is used again for the next one.
type reading struct {
	scanner
	collector
}

var readings = sync.Pool{New: func() any { return new(reading) }}

// decode does what Decode does. It also sets the messages' flags, except for those that only Inspect finds
// (FlagDuplicateKeys, FlagAssessed and the flags after it), and returns the error that Inspect returns.
func decode(f session.Format, body []byte) (list []Message, has seen, err error) {
	r := readings.Get().(*reading)
	r.collector = collector{format: f, list: make([]Message, 1)}
	r.scanner = scanner{body: body, ir: &r.collector}
	facts, err := r.read(f)
	list, has = r.list, r.seen
	has.shows = len(r.shown) > 0
	*r = reading{}
	readings.Put(r)
	for i := range list {
		n := &list[i]
		n.Format = f
		n.Raw = body
		n.Of = len(list)
		n.Part = i
		n.flags = facts.Flags
	}
	return list, has, err
}

// scanners are used again: they are large, and outlive their messages.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

func newScanner(body []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.body = body
	return s
}

// inspect reads the message for its facts, and gives the scanner back.
func (s *scanner) inspect(f session.Format) (Facts, error) {
	facts, err := s.read(f)
	*s = scanner{within: s.within[:0]}
	scanners.Put(s)
	return facts, err
}

// Decode reads one message, which Inspect must accept, into the intermediate representation.
func Decode(f session.Format, body []byte) []Message {
	list, _, _ := decode(f, body)
	return list
}

// Inspect reads one message, whose bytes must have passed rawjson.Check. It is tolerant of content: unknown members are
// ignored, unknown blocks are Opaque, unknown roles are accepted. It returns a *session.InvalidError, whose pointer is
// relative to the message, only for what would leave Varve unable to store the message or to pair its calls.
//
// Refs rely on the numbers of parts, which must never change. Parts are numbered in this order: the content (a string
// is one part, an array has one part an element), then for OpenAI Chat refusal, reasoning_content, tool_calls,
// function_call. A message of role tool or function has exactly one part, its result, number 0, and so has an item of
// Responses that is no message. A content of "" or null has no part. In Gemini and in a UIMessage each element of
// parts is a part, but a tool part of a UIMessage is two once the tool is done: the call, then the result. A
// UIMessage without parts has those of its content, then one for each of its toolInvocations.
func Inspect(f session.Format, body []byte) (Facts, error) { return newScanner(body).inspect(f) }

// InspectChecked does what Inspect does with a message in which rawjson.CheckHalves found no other halves than these;
// nil if it was not asked.
func InspectChecked(f session.Format, body []byte, halves *rawjson.Halves) (Facts, error) {
	s := newScanner(body)
	s.halves = halves
	return s.inspect(f)
}

// Count does what Inspect does, but counts the tokens of texts with count instead of estimating them.
func Count(f session.Format, body []byte, count func(text string) (int, error)) (Facts, error) {
	s := newScanner(body)
	s.count = count
	return s.inspect(f)
}

// MessageTokens is the cost of a message's role and delimiters: none has fewer tokens.
const MessageTokens = 4

// ShapeOfBody returns the shape of a message. That of one that Inspect refuses has no format.
func ShapeOfBody(f session.Format, body []byte) MessageShape {
	m, err := Inspect(f, body)
	if err != nil {
		return MessageShape{}
	}
	return ShapeOf(f, &m)
}

// Accept decides whether a message can be stored: its size, its JSON within session.JSONLimits, and what Inspect
// requires. Its error is a *session.InvalidError whose pointers are relative to the message.
func Accept(f session.Format, body []byte) (Facts, error) {
	if len(body) > session.MaxMessageBytes { // which Inspect refuses
		return Inspect(f, body)
	}
	halves, err := rawjson.CheckHalves(body, session.JSONLimits)
	if err != nil {
		return Facts{}, session.JSONError("", err)
	}
	return InspectChecked(f, body, &halves)
}

// Read inspects a message that is known to have this number of tokens.
func (r *Reader) Read(f session.Format, body []byte, tokens int) (Facts, error) {
	const usual, chunk = 16, 1024 // parts of a message, and of all messages that share memory
	if cap(r.parts)-len(r.parts) < usual {
		r.parts = make([]Part, 0, chunk)
	}
	if r.names == nil {
		r.names = map[string]string{}
	}
	s := scanner{body: body, reader: r}
	s.facts.Parts = r.parts[len(r.parts):]
	m, err := s.read(f)
	if err != nil {
		return m, err
	}
	if n := len(r.parts) + len(m.Parts); n <= cap(r.parts) {
		r.parts = r.parts[:n]
	}
	s.settle(&m, tokens)
	return m, nil
}

// settle counts all uncounted parts except the largest. The largest gets the tokens of the message that remain, which
// saves counting it.
func (s *scanner) settle(m *Facts, tokens int) {
	largest := -1
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Tokens == 0 && s.is(p.Value, '"') && (largest < 0 || p.size() > m.Parts[largest].size()) {
			largest = i
		}
	}
	s.reader = nil
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Tokens == 0 && s.is(p.Value, '"') && i != largest {
			p.Tokens = s.tokens(p.Value)
			m.Tokens += p.Tokens
		}
	}
	if largest >= 0 {
		m.Parts[largest].Tokens = max(tokens-m.Tokens, 0)
	}
	m.Tokens = tokens
}

func (p *Part) size() int { return p.Value.End - p.Value.Start }
