package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

// messageTokens is the cost of a message's role and delimiters.
const messageTokens = 4

// maxRoleBytes bounds a role: providers have a handful of short words.
const maxRoleBytes = 64

// Inspect reads one message, whose bytes must have passed rawjson.Check. It is tolerant of content: unknown members are
// ignored, unknown blocks are Opaque, unknown roles are accepted. It refuses, with a *session.InvalidError whose pointer
// is relative to the message, only what would leave Varve unable to store or pair the message.
//
// Parts are numbered in this order, which refs rely on and which must never change: the content (a string is one part,
// an array one part an element), then for OpenAI Chat refusal, reasoning_content, tool_calls, function_call. A message
// of role tool or function has exactly one part, its result, number 0, and so has an item of Responses that is no message.
// A content of "" or null has no part. Of a Gemini content each element of parts is a part; of a UIMessage, too, but a tool
// part is two once the tool is done: the call, then the result. A UIMessage without parts has those of its content, then one
// for each of its toolInvocations.
func Inspect(f session.Format, body []byte) (Facts, error) {
	return inspectWith(f, &scanner{body: body})
}

// Count is Inspect that does not estimate the tokens of texts but counts them.
func Count(f session.Format, body []byte, count func(text string) (int, error)) (Facts, error) {
	return inspectWith(f, &scanner{body: body, count: count})
}

// survey is Inspect for who wants the flags that a message has of its own, and neither tokens nor a judgement.
func survey(f session.Format, body []byte) (Flags, error) {
	m, err := inspectWith(f, &scanner{body: body, rough: true})
	return m.Flags, err
}

func inspectWith(f session.Format, s *scanner) (Facts, error) {
	body := s.body
	if len(body) > session.MaxMessageBytes {
		return Facts{}, session.Invalid("", "message_too_large", "the message has %d bytes, at most %d are possible", len(body), session.MaxMessageBytes)
	}
	top := rawjson.Start(body)
	if top == len(body) || body[top] != '{' {
		return Facts{}, session.Invalid("", "invalid_message", "a message is a JSON object, this is %s", s.describe(top))
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
	m := s.finish()
	if s.reader == nil && !s.rough {
		s.assess(f)
		m.Flags = s.facts.Flags
	}
	return m, nil
}

// scanner reads one message. err is the first thing that is wrong with it.
type scanner struct {
	body   []byte
	facts  Facts
	filled bool // a part holds something
	loose  bool // the content is neither a text nor an array
	err    error
	count  func(text string) (int, error) // nil estimates
	reader *Reader                        // nil for a message that is new
	rough  bool                           // it only matters whether there are tokens, and nobody asks for a judgement
}

func (s *scanner) finish() Facts {
	m := &s.facts
	m.Tokens += messageTokens
	if !s.filled {
		m.Flags |= FlagEmpty
	}
	return *m
}

// add appends a part and numbers it.
func (s *scanner) add(p Part) {
	m := &s.facts
	p.Index = len(m.Parts)
	m.Parts = append(m.Parts, p)
	m.Tokens += p.Tokens
	switch p.Kind {
	case Image, File:
		m.Flags |= FlagImage
	case Reasoning:
		m.Flags |= FlagReasoning
	case Text:
		s.filled = s.filled || p.Tokens > 0
		return
	}
	s.filled = true
}

// role reads the role, which every format has.
func (s *scanner) role(at Span) {
	switch {
	case at == Span{}:
		s.fail("/role", "a message needs a role, for example \"user\"")
	case !s.is(at, '"'):
		s.fail("/role", "role is a string, this is %s", s.describe(at.Start))
	case at.End-at.Start == 2:
		s.fail("/role", "role is empty, it should be for example \"user\"")
	case at.End-at.Start-2 > maxRoleBytes:
		s.fail("/role", "role has %d bytes, at most %d are possible", at.End-at.Start-2, maxRoleBytes)
	}
	if s.err != nil {
		return
	}
	s.facts.Role = s.name(at)
	if s.facts.Role == "system" || s.facts.Role == "developer" {
		s.facts.Flags |= FlagPinned
	}
}

// callID reads the id of a call. One that is missing or null is "": providers of old formats have none.
func (s *scanner) callID(at Span, pointer func() string) string {
	if s.absent(at) {
		return ""
	}
	if !s.is(at, '"') {
		s.fail(pointer(), "the id of a call is a string, this is %s", s.describe(at.Start))
		return ""
	}
	id := s.identifier(at, intern)
	if len(id) > session.MaxCallIDBytes {
		s.fail(pointer(), "the id of a call has %d bytes, at most %d are possible", len(id), session.MaxCallIDBytes)
	}
	return id
}

// name returns the text of a string literal that becomes an identifier or a column. One that no database text can
// hold (NUL, lone surrogates) stands for itself as it is written, escapes and all. Anything but a string is "".
func (s *scanner) name(at Span) string {
	if s.reader != nil {
		return s.identifier(at, s.reader.known)
	}
	return s.identifier(at, intern)
}

func (s *scanner) identifier(at Span, share func(text []byte) string) string {
	if !s.is(at, '"') {
		return ""
	}
	inner := s.body[at.Start+1 : at.End-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return share(inner)
	}
	text, ok := rawjson.Unquote(nil, at.Of(s.body))
	if !ok || bytes.IndexByte(text, 0) >= 0 {
		text = inner
	}
	return string(text)
}

// intern spares the allocation for the roles that nearly every message has.
func intern(text []byte) string {
	switch string(text) {
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "tool":
		return "tool"
	case "system":
		return "system"
	}
	return string(text)
}

func (s *scanner) fail(pointer, format string, args ...any) {
	if s.err == nil {
		s.err = session.Invalid(pointer, "invalid_message", format, args...)
	}
}

// is reports whether the value at begins with b: '"', '{' or '['.
func (s *scanner) is(at Span, b byte) bool { return at != Span{} && s.body[at.Start] == b }

// absent reports whether a member is missing or null.
func (s *scanner) absent(at Span) bool { return at == Span{} || s.body[at.Start] == 'n' }

// says reports whether the value at is the string literal of text.
func (s *scanner) isText(at Span, text string) bool {
	return s.is(at, '"') && rawjson.KeyIs(s.body, at, text)
}

// empty reports whether there is no text at: nothing, null or "".
func (s *scanner) empty(at Span) bool { return s.absent(at) || string(at.Of(s.body)) == `""` }

// tokens estimates what the model sees of the value at: a string decoded, anything else as it is written.
func (s *scanner) tokens(at Span) int {
	switch {
	case s.absent(at):
		return 0
	case s.count != nil:
		return s.counted(at)
	case s.rough && s.empty(at):
		return 0
	case s.rough:
		return 1
	case s.body[at.Start] == '"':
		return tokens.EstimateLiteral(at.Of(s.body))
	}
	return tokens.Estimate(at.Of(s.body))
}

// counted counts what tokens estimates.
func (s *scanner) counted(at Span) int {
	text := at.Of(s.body)
	if text[0] == '"' {
		text, _ = rawjson.Unquote(nil, text)
	}
	n, err := s.count(string(text))
	if s.err == nil {
		s.err = err
	}
	return n
}

// describe names the type of the value that starts at i.
func (s *scanner) describe(i int) string {
	if i == len(s.body) {
		return "nothing"
	}
	switch s.body[i] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
