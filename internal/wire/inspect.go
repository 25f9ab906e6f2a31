package wire

import (
	"sync"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// encoders write Messages of any format, none of them an untouched message of this format, in the format. Their
// order, pairing and roles are as the format wants them (see arrange); what it cannot express is written as
// substitute writes it.
var encoders = map[session.Format]func(e *encoder, run []Message){
	session.OpenAIChat:      encodeChat,
	session.Anthropic:       encodeAnthropic,
	session.OpenAIResponses: encodeResponses,
	session.Gemini:          encodeGemini,
	session.AISDK:           encodeAISDK,
}

// Encode writes the Messages in a format. A run of them that is one whole, untouched message of that format comes out
// as the bytes that came in.
func Encode(target session.Format, list []Message) [][]byte {
	e := &encoder{target: target}
	if target == session.AISDK {
		encodeAISDK(e, list) // a message holds the results of its calls: only there it is known which are untouched
		return e.bodies
	}
	for len(list) > 0 {
		n := untouched(target, list)
		if n > 0 {
			e.add(list[0].Raw)
		} else {
			n = countEdited(target, list)
			encoders[target](e, list[:n])
		}
		list = list[n:]
	}
	return e.bodies
}

// countEdited counts the Messages before the next one that is untouched. All results of a turn are one run in Chat
// Completions: what some of them show comes after the last.
func countEdited(target session.Format, list []Message) int {
	n := 1
	for n < len(list) && (untouched(target, list[n:]) == 0 || target == session.OpenAIChat && list[n].Role == Tool) {
		n++
	}
	return n
}

// read reads the message, whatever the caller wants of it: there is one reader a format.
func (s *scanner) read(f session.Format) (Facts, error) {
	body := s.body
	if len(body) > session.MaxMessageBytes {
		return Facts{}, session.Invalid("", "message_too_large",
			"a message must have at most %d bytes, this one has %d", session.MaxMessageBytes, len(body))
	}
	top := rawjson.Start(body)
	if top == len(body) || body[top] != '{' {
		return Facts{}, session.Invalid("", "invalid_message",
			"a message must be a JSON object, this is %s", s.describe(top))
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
	if s.err != nil {
		return Facts{}, s.err
	}
	s.facts.Tokens += messageTokens
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

// decode is Decode that also returns the message's flags, those aside that only Inspect finds (FlagDuplicateKeys, and
// FlagAssessed and those after it), and the error that Inspect returns.
func decode(f session.Format, body []byte) (list []Message, flags Flags, err error) {
	r := readings.Get().(*reading)
	r.collector = collector{format: f, list: make([]Message, 1)}
	r.scanner = scanner{body: body, ir: &r.collector}
	facts, err := r.read(f)
	list = r.list
	*r = reading{}
	readings.Put(r)
	for i := range list {
		n := &list[i]
		n.Format = f
		n.Raw = body
		n.Of = len(list)
		n.Part = i
	}
	return list, facts.Flags, err
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
func Inspect(f session.Format, body []byte) (Facts, error) {
	s := scanner{body: body}
	return s.read(f)
}

// Count is Inspect with the tokens of texts counted by count instead of estimated.
func Count(f session.Format, body []byte, count func(text string) (int, error)) (Facts, error) {
	s := scanner{body: body, count: count}
	return s.read(f)
}

// messageTokens is the cost of a message's role and delimiters.
const messageTokens = 4

// ShapeOfBody returns the shape of a message. That of one that Inspect refuses has no format.
func ShapeOfBody(f session.Format, body []byte) MessageShape {
	m, err := Inspect(f, body)
	if err != nil {
		return MessageShape{}
	}
	return ShapeOf(f, &m)
}

// untouched counts the Messages that a message of the target begins with, all of them as they were decoded; 0 if
// there is none.
func untouched(target session.Format, list []Message) int {
	first := &list[0]
	if first.Format != target || first.Raw == nil {
		return 0
	}
	n := 0
	for n < len(list) && list[n].Raw != nil && list[n].Origin == first.Origin && list[n].Part == n && !list[n].Edited {
		n++
	}
	if n != first.Of {
		return 0
	}
	return n
}
