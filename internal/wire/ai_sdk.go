package wire

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

const (
	uiRole = iota
	uiParts
	uiContent
	uiInvocations
	uiMessageMembers
)

var uiNames = []string{"role", "parts", "content", "toolInvocations"}

// aiSDK reads a UIMessage. One of the versions before 5 may have its text in content, beside parts or without; then its
// calls are in toolInvocations, which stay Opaque.
func (s *scanner) aiSDK(top int) {
	var v [uiMessageMembers]Span
	s.pick(top, uiNames, v[:])
	s.role(v[uiRole])
	s.facts.StartsUnit = true
	i := 0
	add := func(part Span) {
		s.uiPart(i, part)
		i++
	}
	if s.is(v[uiParts], '[') {
		s.content(v[uiParts], add)
		return
	}
	s.content(v[uiContent], add)
	if s.is(v[uiInvocations], '[') {
		for invocation := range rawjson.Elements(s.body, v[uiInvocations].Start) {
			s.opaque(invocation)
		}
	}
}

// The members of a part that Varve gives a meaning to.
const (
	uiType = iota
	uiText
	uiMediaType
	uiURL
	uiFilename
	uiMetadata
	uiCallID
	uiToolName
	uiState
	uiInput
	uiRawInput
	uiOutput
	uiError
	uiApproval
	uiProviderExecuted
	uiCallMetadata
	uiMembers
)

var uiPartNames = []string{
	"type", "text", "mediaType", "url", "filename", "providerMetadata", "toolCallId", "toolName", "state", "input", "rawInput",
	"output", "errorText", "approval", "providerExecuted", "callProviderMetadata",
}

type uiBlock [uiMembers]Span

// uiPart reads one part. A tool part is two: its call, whose Raw is the input, and, once the tool is done, its result,
// whose Raw is the output or the errorText. A step-start has no tokens: the model sees none of it.
func (s *scanner) uiPart(i int, raw Span) {
	kind, v := s.uiBlock(raw)
	switch kind {
	case Text:
		s.text(raw, v[uiText])
	case Reasoning:
		s.add(Part{Kind: Reasoning, Raw: raw, Value: v[uiText], Tokens: s.later(v[uiText])})
	case Image, File:
		s.add(Part{Kind: kind, Raw: raw, Tokens: s.uiFileTokens(kind, v[uiURL])})
	case Call:
		s.uiTool(i, &v)
	default:
		if s.isText(v[uiType], stepStart) {
			s.add(Part{Kind: Opaque, Raw: raw})
			return
		}
		s.opaque(raw)
	}
}

// uiBlock reads a part. Tools that the provider runs itself are Opaque, as they are in its own format.
func (s *scanner) uiBlock(raw Span) (kind Kind, v uiBlock) {
	if !s.is(raw, '{') {
		return Opaque, v
	}
	s.pick(raw.Start, uiPartNames, v[:])
	switch at := v[uiType]; {
	case s.isText(at, "text") && s.is(v[uiText], '"'):
		return Text, v
	case s.isText(at, "reasoning") && s.is(v[uiText], '"'):
		return Reasoning, v
	case s.isText(at, "file") && s.is(v[uiURL], '"'):
		return s.mediaKind(v[uiMediaType]), v
	case s.isTool(&v) && !s.is(v[uiProviderExecuted], 't') && s.facts.Role == "assistant":
		return Call, v
	}
	return Opaque, v
}

// stepStart is the type of the part that a step begins with.
const stepStart = "step-start"

// The types of tool parts: dynamicTool, or toolPrefix and the tool's name.
const (
	dynamicTool = "dynamic-tool"
	toolPrefix  = "tool-"
)

// isTool reports whether a part is that of a tool. The tool-invocation of version 4 has its members in another object.
func (s *scanner) isTool(v *uiBlock) bool {
	at := v[uiType]
	switch {
	case !s.is(at, '"') || s.isText(at, "tool-invocation") && v[uiCallID] == Span{}:
		return false
	case s.isText(at, dynamicTool):
		return true
	}
	return bytes.HasPrefix(s.plain(at), []byte(toolPrefix))
}

func (s *scanner) uiTool(i int, v *uiBlock) {
	at, input := v[uiToolName], s.uiInput(v)
	call := Part{Kind: Call, Raw: input, Value: input, Name: s.name(at)}
	if !s.isText(v[uiType], dynamicTool) {
		at = v[uiType]
		call.Name = strings.TrimPrefix(s.name(at), toolPrefix)
	}
	call.CallID = s.callID(v[uiCallID], func() string { return fmt.Sprintf("/parts/%d/toolCallId", i) })
	call.Tokens = s.tokens(at) + s.tokens(call.Value)
	s.add(call)
	if value, failed, done := s.uiOutput(v); done {
		s.uiResult(Part{Raw: value, Value: value, CallID: call.CallID, Name: call.Name, IsError: failed})
	}
}

// uiResult adds a result, whose images and files do not cost what their bytes would as a text.
func (s *scanner) uiResult(p Part) {
	list, ok := s.outputList(p.Value)
	if !ok {
		s.result(p)
		return
	}
	p.Kind = Result
	for element := range rawjson.Elements(s.body, list.Start) {
		v := s.outputMembers(element)
		switch {
		case s.isText(v[outputType], "text"):
			p.Tokens += s.tokens(v[outputText])
		case s.isText(v[outputType], "media"), s.isText(v[outputType], "image-url"), s.isText(v[outputType], "file-url"):
			p.Tokens += s.outputMediaTokens(&v)
			s.facts.Flags |= FlagImage
		default:
			p.Tokens += s.tokens(element)
		}
	}
	s.facts.Flags |= FlagResultNotText
	s.add(p)
}

func (s *scanner) outputMediaTokens(v *[outputMembers]Span) int {
	if s.mediaKind(v[outputMediaType]) == Image && s.is(v[outputData], '"') {
		return tokens.AreaImage(tokens.Measure(s.plain(v[outputData])))
	}
	return tokens.Unknown
}

// outputList is the list of an output that is {"type":"content","value":[…]}: texts, images and files.
func (s *scanner) outputList(at Span) (list Span, ok bool) {
	if !s.is(at, '{') || !s.isText(s.inner(at, "type"), "content") {
		return Span{}, false
	}
	list = s.inner(at, "value")
	return list, s.is(list, '[')
}

// The members of an element of such a list.
const (
	outputType = iota
	outputText
	outputData
	outputMediaType
	outputURL
	outputFilename
	outputMembers
)

var outputNames = []string{"type", "text", "data", "mediaType", "url", "filename"}

func (s *scanner) outputMembers(at Span) (v [outputMembers]Span) {
	if s.is(at, '{') {
		s.pick(at.Start, outputNames, v[:])
	}
	return v
}

// uiInput is what a tool was called with; input that could not be parsed is in rawInput.
func (s *scanner) uiInput(v *uiBlock) Span {
	if v[uiInput] == (Span{}) {
		return v[uiRawInput]
	}
	return v[uiInput]
}

// The states of a tool part that is done.
const (
	outputAvailable = "output-available"
	outputError     = "output-error"
	outputDenied    = "output-denied"
)

// uiOutput is what a tool part says that the tool returned. A tool that returned nothing has no output; of one that the
// user refused the reason is not the tool's to replace.
func (s *scanner) uiOutput(v *uiBlock) (value Span, failed, done bool) {
	switch state := v[uiState]; {
	case s.isText(state, outputAvailable):
		return v[uiOutput], false, true
	case s.isText(state, outputError):
		return v[uiError], true, true
	case s.isText(state, outputDenied):
		return Span{}, true, true
	}
	return Span{}, false, false
}

func (s *scanner) uiFileTokens(kind Kind, url Span) int {
	if kind != Image {
		return tokens.Unknown
	}
	if _, data, ok := dataURL(s.plain(url)); ok {
		return tokens.AreaImage(tokens.Measure(data))
	}
	return tokens.Unknown
}
