package wire

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// judge sets the flags that tell a FastValidator what it must know of a message besides its role and calls.
func (s *scanner) assess(f session.Format) {
	m := &s.facts
	m.Flags |= FlagAssessed
	if s.mayNeedRepair(f) {
		m.Flags |= FlagMayNeedRepair
	}
	if f == session.Gemini && s.unsigned() {
		m.Flags |= FlagUnsigned
	}
	if mixed(m.Parts) {
		m.Flags |= FlagMixed
	}
}

// odd reports whether a message, alone, may need a repair in its own format. It may err on that side.
func (s *scanner) mayNeedRepair(f session.Format) bool {
	m := &s.facts
	if !s.knownRole(provider.Of(f)) || s.loose || s.isMendable(f) || m.Flags&(FlagEmpty|FlagEmptyText|FlagEmptyArray) != 0 && s.emptiness(f) {
		return true
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; s.partMayNeedRepair(f, p, i == len(m.Parts)-1) {
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
	before := bytes.TrimRight(s.body[:s.facts.Parts[0].Raw.Start], " \t\r\n")
	return before[len(before)-1] == '['
}

// marked reports whether a block has a mark for the provider's cache, or one inside it. Texts and arguments, nearly all of
// the message, are not searched.
func (s *scanner) marked() bool {
	mark := []byte("cache_control")
	for i := range s.facts.Parts {
		p := &s.facts.Parts[i]
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

// knownRole reports whether the provider takes the message's role, be it in the system prompt that is separate from the
// messages. Where a system message stands is looked at by the FastValidator.
func (s *scanner) knownRole(p *provider.Facts) bool {
	m := &s.facts
	return p.KnowsRole(m.Role) || p.ImpliedRole == m.Role || p.SeparateSystem && m.Flags&FlagPinned != 0
}

// emptiness reports whether a format minds that a message is empty or holds what is.
func (s *scanner) emptiness(f session.Format) bool {
	switch f {
	case session.OpenAIChat:
		return s.facts.Flags&(FlagEmptyArray|FlagEmpty) != 0
	case session.Anthropic, session.Gemini:
		return true
	}
	return false
}

// lossy reports whether an id with this character may be taken for another one by a FastValidator: some characters separate ids
// there, and the database has U+FFFD for those that its texts cannot hold.
func isAmbiguous(c rune) bool { return c < ' ' || c == utf8.RuneError }

func (s *scanner) partMayNeedRepair(f session.Format, p *Part, last bool) bool {
	m := &s.facts
	if strings.IndexFunc(p.CallID, isAmbiguous) >= 0 {
		return true
	}
	switch p.Kind {
	case Call:
		return m.Role != "assistant" && m.Role != "model" || !provider.Of(f).IDAny && !provider.Of(f).FitsID(p.CallID)
	case Result:
		return p.CallID == "" || f == session.Gemini && p.Name == "unknown" || f == session.Anthropic && s.hasLooseContent(p) || f == session.OpenAIChat && p.Value == (Span{}) || f == session.OpenAIResponses && p.Name == "" && s.lacksOutput(p) || f != session.AISDK && m.Role == "assistant"
	case Text:
		return f == session.Anthropic && s.textMayNeedRepair(p, last && m.Role == "assistant")
	case Reasoning:
		return f == session.Anthropic && s.lacksSignature(p)
	}
	return false
}

// oddContent reports whether a result's content is neither a text nor an array.
func (s *scanner) hasLooseContent(p *Part) bool {
	return p.Value != (Span{}) && s.body[p.Value.Start] != '"' && s.body[p.Value.Start] != '['
}

// oddOutput reports whether a function's result is neither a text nor an array; it has to be there.
func (s *scanner) lacksOutput(p *Part) bool { return p.Value == (Span{}) || s.hasLooseContent(p) }

// oddText reports whether a text has nothing but white space, or ends with it where that may matter.
func (s *scanner) textMayNeedRepair(p *Part, end bool) bool {
	literal := p.Value.Of(s.body)
	if len(literal) < 3 {
		return true
	}
	before := literal[len(literal)-2]
	space := before == ' ' || len(literal) > 3 && literal[len(literal)-3] == '\\' && (before == 'n' || before == 't' || before == 'r') || escaped(literal[1:len(literal)-1], 6)
	return space && (end || blank(literal))
}

func (s *scanner) lacksSignature(p *Part) bool {
	raw := p.Raw.Of(s.body)
	for _, name := range [...]string{"signature", "data"} {
		if at := member(raw, name); at != (Span{}) && isSigned(at.Of(raw)) {
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
	for i := range s.facts.Parts {
		if p := &s.facts.Parts[i]; p.Kind == Call {
			return signatureOf(p.Raw.Of(s.body)) == ""
		}
	}
	return false
}

// Fact is what a FastValidator must know of a message; all of it is known since the message was appended.
type MessageShape struct {
	Format  session.Format
	Role    string
	Flags   Flags
	Calls   []string
	Answers []string
}

// FactOf is the fact of a message that was inspected.
func ShapeOf(f session.Format, m *Facts) MessageShape {
	fact := MessageShape{Format: f, Role: m.Role, Flags: m.Flags}
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
func ShapeOfBody(f session.Format, body []byte) MessageShape {
	m, err := Inspect(f, body)
	if err != nil {
		return MessageShape{}
	}
	return ShapeOf(f, &m)
}
