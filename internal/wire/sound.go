package wire

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/session"
)

// judge sets the flags that tell a Walk what it must know of a message besides its role and calls.
func (s *scanner) judge(f session.Format) {
	m := &s.message
	m.Flags |= FlagJudged
	if s.odd(f) {
		m.Flags |= FlagOdd
	}
	if f == session.Gemini && s.unsigned() {
		m.Flags |= FlagUnsigned
	}
	if mixed(m.Parts) {
		m.Flags |= FlagMixed
	}
}

// odd reports whether a message, alone, may need a repair in its own format. It may err on that side.
func (s *scanner) odd(f session.Format) bool {
	m := &s.message
	if !rolesOf[f][m.Role] || s.loose || s.strange(f) || m.Flags&(FlagEmpty|FlagEmptyText|FlagEmptyArray) != 0 && s.emptiness(f) {
		return true
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; s.oddPart(f, p, i == len(m.Parts)-1) {
			return true
		}
	}
	switch f {
	case session.OpenAIChat:
		return m.Flags&FlagResultNotText != 0
	case session.Gemini:
		return !s.listed()
	case session.Anthropic:
		return s.marked() || !resultsFirst(m.Parts) || thoughtsLate(m.Parts)
	}
	return false
}

// listed reports whether the parts stand in an array. There is one: a message without any is empty.
func (s *scanner) listed() bool {
	before := bytes.TrimRight(s.body[:s.message.Parts[0].Raw.Start], " \t\r\n")
	return before[len(before)-1] == '['
}

// marked reports whether a block has a mark for the provider's cache, or one inside it. Texts and arguments, nearly all of
// the message, are not searched.
func (s *scanner) marked() bool {
	mark := []byte("cache_control")
	for i := range s.message.Parts {
		p := &s.message.Parts[i]
		skip := p.Value
		if skip == (Span{}) || p.Kind == Result && s.body[skip.Start] == '[' {
			skip = Span{Start: p.Raw.End, End: p.Raw.End}
		}
		if bytes.Contains(s.body[p.Raw.Start:skip.Start], mark) || bytes.Contains(s.body[skip.End:p.Raw.End], mark) {
			return true
		}
	}
	return false
}

// rolesOf are the roles that a format knows.
var rolesOf = map[session.Format]map[string]bool{
	session.OpenAIChat:      {"system": true, "developer": true, "user": true, "assistant": true, "tool": true, "function": true},
	session.OpenAIResponses: {"system": true, "developer": true, "user": true, "assistant": true, "tool": true},
	session.Anthropic:       {"system": true, "user": true, "assistant": true},
	session.Gemini:          {"system": true, "user": true, "model": true},
	session.AISDK:           {"system": true, "user": true, "assistant": true},
}

// emptiness reports whether a format minds that a message is empty or holds what is.
func (s *scanner) emptiness(f session.Format) bool {
	switch f {
	case session.OpenAIChat:
		return s.message.Flags&(FlagEmptyArray|FlagEmpty) != 0
	case session.Anthropic, session.Gemini:
		return true
	}
	return false
}

// lossy reports whether an id with this character may be taken for another one by a Walk: some characters separate ids
// there, and the database has U+FFFD for those that its texts cannot hold.
func lossy(c rune) bool { return c < ' ' || c == utf8.RuneError }

func (s *scanner) oddPart(f session.Format, p *Part, last bool) bool {
	m := &s.message
	if strings.IndexFunc(p.CallID, lossy) >= 0 {
		return true
	}
	switch p.Kind {
	case Call:
		return m.Role != "assistant" && m.Role != "model" || f != session.Gemini && !idRules[f].fits(p.CallID)
	case Result:
		return p.CallID == "" || f == session.Gemini && p.Name == "unknown" || f == session.Anthropic && s.oddContent(p) || f == session.OpenAIChat && p.Value == (Span{}) || f == session.OpenAIResponses && p.Name == "" && s.oddOutput(p) || f != session.AISDK && m.Role == "assistant"
	case Text:
		return f == session.Anthropic && s.oddText(p, last && m.Role == "assistant")
	case Reasoning:
		return f == session.Anthropic && s.unsealed(p)
	}
	return false
}

// oddContent reports whether a result's content is neither a text nor an array.
func (s *scanner) oddContent(p *Part) bool {
	return p.Value != (Span{}) && s.body[p.Value.Start] != '"' && s.body[p.Value.Start] != '['
}

// oddOutput reports whether a function's result is neither a text nor an array; it has to be there.
func (s *scanner) oddOutput(p *Part) bool { return p.Value == (Span{}) || s.oddContent(p) }

// oddText reports whether a text has nothing but white space, or ends with it where that may matter.
func (s *scanner) oddText(p *Part, end bool) bool {
	literal := p.Value.Of(s.body)
	if len(literal) < 3 {
		return true
	}
	before := literal[len(literal)-2]
	space := before == ' ' || len(literal) > 3 && literal[len(literal)-3] == '\\' && (before == 'n' || before == 't' || before == 'r') || escaped(literal[1:len(literal)-1], 6)
	return space && (end || blank(literal))
}

func (s *scanner) unsealed(p *Part) bool {
	raw := p.Raw.Of(s.body)
	for _, name := range [...]string{"signature", "data"} {
		if at := member(raw, name); at != (Span{}) && sealed(at.Of(raw)) {
			return false
		}
	}
	return true
}

func thoughtsLate(parts []Part) bool {
	called := false
	for i := range parts {
		called = called || parts[i].Kind == Call
		if called && parts[i].Kind == Reasoning {
			return true
		}
	}
	return false
}

func mixed(parts []Part) bool {
	results := 0
	for i := range parts {
		if parts[i].Kind == Result {
			results++
		}
	}
	return results > 0 && results < len(parts)
}

func resultsFirst(parts []Part) bool {
	others := false
	for i := range parts {
		if parts[i].Kind != Result {
			others = true
		} else if others {
			return false
		}
	}
	return true
}

// unsigned reports whether a Gemini content has calls of which the first has no signature.
func (s *scanner) unsigned() bool {
	for i := range s.message.Parts {
		if p := &s.message.Parts[i]; p.Kind == Call {
			return signatureOf(p.Raw.Of(s.body)) == ""
		}
	}
	return false
}

// Fact is what a Walk must know of a message; all of it is known since the message was appended.
type Fact struct {
	Format  session.Format
	Role    string
	Flags   Flags
	Calls   []string
	Answers []string
}

// FactOf is the fact of a message that was inspected.
func FactOf(f session.Format, m *Message) Fact {
	fact := Fact{Format: f, Role: m.Role, Flags: m.Flags}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case Call:
			fact.Calls = append(fact.Calls, p.CallID)
		case Result:
			fact.Answers = append(fact.Answers, p.CallID)
		}
	}
	return fact
}

// FactOfBody is the fact of a message; one that cannot be inspected is of no format.
func FactOfBody(f session.Format, body []byte) Fact {
	m, err := Inspect(f, body)
	if err != nil {
		return Fact{}
	}
	return FactOf(f, &m)
}
