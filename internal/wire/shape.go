package wire

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// assess sets the flags of a message that a FastValidator needs besides its role and its calls.
func (s *scanner) assess(f session.Format) {
	m := &s.facts
	m.Flags |= FlagAssessed
	if s.mayNeedRepair(f) {
		m.Flags |= FlagMayNeedRepair
	}
	m.Flags |= s.idSum << nameShift
	if f == session.Gemini {
		m.Flags |= namesIn(m.Parts) << nameShift
		if s.firstCallUnsigned() {
			m.Flags |= FlagUnsigned
		}
	}
	if orderOf(m.Parts).mixed {
		m.Flags |= FlagMixed
	}
	if s.state && (Compacts(f, s.body) || len(LoadedTools(f, s.body)) > 0) {
		m.Flags |= FlagState
	}
	if m.Flags&FlagMayNeedRepair == 0 && s.isCommon(f) {
		m.Flags |= FlagCommon
	}
}

// isCommon reports what FlagCommon says.
func (s *scanner) isCommon(f session.Format) bool {
	switch f {
	case session.Anthropic:
		return !slices.ContainsFunc(s.facts.Parts, func(p Part) bool {
			return p.Kind == Call && !provider.TakenEverywhere(p.Name)
		})
	case session.AISDK:
		return s.isCommonUI()
	}
	return s.common
}

// namesIn returns a number that two messages of Gemini have in common if the one answers the calls of the other: a sum
// of the ids and names, in whatever order they are.
func namesIn(parts []Part) (sum Flags) {
	for i := range parts {
		if p := &parts[i]; p.Kind == Call || p.Kind == Result {
			sum += Flags(hashOf(p.CallID+"\x00"+p.Name) & (1<<nameBits - 1))
		}
	}
	return sum & (1<<nameBits - 1)
}

// mayNeedRepair reports whether a message, whatever is around it, may need a repair in its own format. It may
// report true for one that needs none.
func (s *scanner) mayNeedRepair(f session.Format) bool {
	m := &s.facts
	p := provider.Of(f)
	if !s.knownRole(p) || s.loose || s.misnamed || s.isEmptyFor(f) || s.hasHalf(f) ||
		len(s.shown) > 0 && s.showsFaults(&p.Media) {
		return true
	}
	for i := range m.Parts {
		if s.partMayNeedRepair(f, p, i) || s.isMendable(f, &m.Parts[i]) {
			return true
		}
	}
	switch f {
	case session.OpenAIChat:
		if m.Flags&FlagResultNotText != 0 {
			return true
		}
	case session.Gemini:
		if !s.isList() {
			return true
		}
	case session.Anthropic:
		order := orderOf(m.Parts)
		if s.hasCacheMark() || order.lateResult || s.serverToolsAlone() {
			return true
		}
	}
	return s.hasIntruders(f)
}

// knownRole reports whether the provider takes the message's role, be it in the system prompt that is separate from the
// messages. The FastValidator checks where a system message is.
func (s *scanner) knownRole(p *provider.Facts) bool {
	m := &s.facts
	return p.KnowsRole(m.Role) || p.ImpliedRole == m.Role || p.SeparateSystem && m.Flags&FlagPinned != 0
}

// isEmptyFor reports whether a message is empty, or holds something empty, in a way that its format does not take.
func (s *scanner) isEmptyFor(f session.Format) bool {
	flags := s.facts.Flags
	switch f {
	case session.OpenAIChat:
		return flags&(FlagEmptyArray|FlagEmpty) != 0
	case session.Anthropic, session.Gemini:
		return flags&(FlagEmptyArray|FlagEmpty|FlagEmptyText) != 0
	case session.AISDK:
		return len(s.facts.Parts) == 0
	}
	return false
}

// isList reports whether the parts are in an array. There is at least one: a message without any is empty.
func (s *scanner) isList() bool {
	before := bytes.TrimRight(s.body[:s.facts.Parts[0].Raw.Start], " \t\r\n")
	return before[len(before)-1] == '['
}

// hasCacheMark reports whether a block has a mark for the provider's cache, or one inside it. It does not search
// texts and arguments, which are nearly all of the message.
func (s *scanner) hasCacheMark() bool {
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

// isAmbiguous reports whether a FastValidator may take an id with this character for another one: it separates ids by
// control characters, and the database has U+FFFD for what its texts cannot hold.
func isAmbiguous(c rune) bool { return c < ' ' || c == utf8.RuneError }

func (s *scanner) partMayNeedRepair(f session.Format, rules *provider.Facts, i int) bool {
	m := &s.facts
	p := &m.Parts[i]
	if strings.IndexFunc(p.CallID, isAmbiguous) >= 0 {
		return true
	}
	switch p.Kind {
	case Call:
		if f == session.OpenAIChat && strings.HasPrefix(p.CallID, functionPrefix) && s.isToolCall(p) {
			return true // it looks like a legacy call, whose answer has another form
		}
		byAssistant := m.Role == "assistant" || m.Role == "model"
		return !byAssistant || !rules.Tools.Take(p.Name) || !rules.IDAny && !rules.FitsID(p.CallID)
	case Result:
		return p.CallID == "" || f != session.AISDK && m.Role == "assistant" || s.resultMayNeedRepair(f, rules, p)
	case Text:
		atEnd := i == len(m.Parts)-1 && m.Role == "assistant"
		return f == session.Anthropic && s.isBlankText(p, atEnd)
	case Reasoning: // at the end of a view, none may be the last part
		return f == session.Anthropic && (i == len(m.Parts)-1 || !s.isSigned(p))
	case Opaque:
		if f == session.AISDK {
			name, ok := uiToolName(p.Raw.Of(s.body))
			return ok && !rules.Tools.Take(name)
		}
	}
	return false
}

func (s *scanner) resultMayNeedRepair(f session.Format, rules *provider.Facts, p *Part) bool {
	switch f {
	case session.OpenAIChat:
		return p.Value == Span{} || s.facts.Role == "tool" && strings.HasPrefix(p.CallID, functionPrefix)
	case session.OpenAIResponses:
		return p.Name == "" && (p.Value == Span{} || s.isLooseContent(p))
	case session.Anthropic:
		return s.isLooseContent(p)
	case session.Gemini:
		return !rules.Tools.Take(p.Name)
	}
	return false
}

// isToolCall reports whether a call of Chat Completions is one of tool_calls, not a function_call.
func (s *scanner) isToolCall(p *Part) bool {
	raw := p.Raw.Of(s.body)
	return member(raw, "function") != (Span{}) || member(raw, "custom") != (Span{})
}

// isLooseContent reports whether a result has a content that is neither a text nor an array.
func (s *scanner) isLooseContent(p *Part) bool {
	return p.Value != (Span{}) && s.body[p.Value.Start] != '"' && s.body[p.Value.Start] != '['
}

// isBlankText reports whether a text is nothing but white space, or ends with it at the end of the message.
func (s *scanner) isBlankText(p *Part, atEnd bool) bool {
	literal := p.Value.Of(s.body)
	return len(literal) <= len(`""`) || mayEndInSpace(literal) && (atEnd || blank(literal))
}

// mayEndInSpace reports whether the text of a literal may end in white space: in a space, or in an escape sequence that
// may be one.
func mayEndInSpace(literal []byte) bool {
	inner := literal[1 : len(literal)-1]
	last := inner[len(inner)-1]
	if last == ' ' || escaped(inner, len(`\u0020`)) {
		return true
	}
	return len(inner) > 1 && inner[len(inner)-2] == '\\' && (last == 'n' || last == 't' || last == 'r')
}

// isSigned reports whether Anthropic's reasoning has its signature or its encrypted data.
func (s *scanner) isSigned(p *Part) bool {
	raw := p.Raw.Of(s.body)
	return isSigned(valueOf(raw, "signature")) || isSigned(valueOf(raw, "data"))
}

// order is what is to be known of the order of a message's parts.
type order struct {
	mixed      bool // results and something else
	lateResult bool // a result after something else
}

func orderOf(parts []Part) (o order) {
	var results, others bool
	for i := range parts {
		kind := parts[i].Kind
		o.lateResult = o.lateResult || others && kind == Result
		results = results || kind == Result
		others = others || kind != Result
	}
	o.mixed = results && others
	return o
}

// firstCallUnsigned reports whether a Gemini content has calls, the first of them without a signature.
func (s *scanner) firstCallUnsigned() bool {
	for i := range s.facts.Parts {
		if p := &s.facts.Parts[i]; p.Kind == Call {
			return signatureOf(p.Raw.Of(s.body)) == ""
		}
	}
	return false
}

// isMendable reports whether mend may have something to do with a part.
func (s *scanner) isMendable(f session.Format, p *Part) bool {
	raw := p.Raw.Of(s.body)
	switch f {
	case session.Gemini:
		says := p.Kind == Text || p.Kind == Reasoning
		return faultOf(raw) != noFault || p.Kind == Call && signatureOf(raw) == standIn ||
			says && blank(p.Value.Of(s.body))
	case session.Anthropic:
		return p.Kind == Opaque && isType(raw, "compaction")
	case session.AISDK:
		return MayCompact(f, raw) && compactorOf(f, raw) != ""
	case session.OpenAIResponses:
		if p.Kind == Opaque {
			return isCompactionItem(raw) || isType(raw, approvalResponse) || searchID(raw) != ""
		}
		return p.Kind == Reasoning && byID(raw)
	}
	return false
}
