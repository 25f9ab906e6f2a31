package wire

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// AI SDK UIMessages, as ui-messages.ts of the package ai (vercel/ai) has them, and read as its
// convert-to-model-messages.ts reads them: the parts of a message of the assistant between two step-start are one
// message of a model, and the results of its tools follow that message.
//
//	role user, system        User, System
//	role assistant           for every step an Assistant, then a Tool if its tools are done
//	text, reasoning          Text, Reasoning; its providerMetadata is the Signature
//	file                     Image if its mediaType begins with image/, else File
//	tool-NAME, dynamic-tool  Call; in the states output-available, output-error and output-denied a Result, too. An
//	                         input that is a string is that of a custom tool. The signature of Google that is in
//	                         callProviderMetadata is the Signature
//	output                   a text, or what {"type":"content","value":[…]} holds (LanguageModelV2ToolResultOutput);
//	                         of any other value its JSON as a text
//	step-start               nothing: a step begins
//	a tool that the
//	provider ran,
//	source-url,
//	source-document,
//	data-*, version 4,
//	anything else            Opaque
//
// What other formats can express and a UIMessage cannot:
//
//	messages of one turn           one message of the assistant, its steps after step-start; its id is made of its
//	                               position and its first message
//	reasoning that is sealed       its providerMetadata, as that provider's package of the AI SDK expects it
//	a result of several blocks     {"type":"content","value":[…]}, with text, media, image-url and file-url
//	images of a failed result      a note in its errorText
//	an image or a file by its id   a note
//	a speaker's name               a note in front
//	anything that is Opaque        its JSON as a text

// The members of a UIMessage.
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
	s.pickMessage(top, uiNames, v[:])
	s.role(v[uiRole])
	s.setRole(v[uiRole])
	s.facts.StartsUnit = true
	i := 0
	add := func(part Span) {
		s.uiPart(i, part)
		i++
	}
	if s.is(v[uiParts], '[') {
		s.keepOthers(top, uiNames[:uiContent])
		s.content(v[uiParts], add)
	} else {
		s.content(v[uiContent], add)
		s.uiInvocations(v[uiInvocations])
	}
	if s.ir != nil {
		s.ir.endStep()
	}
}

func (s *scanner) uiInvocations(at Span) {
	if !s.is(at, '[') {
		return
	}
	for invocation := range rawjson.Elements(s.body, at.Start) {
		s.opaque(invocation)
	}
}

// endStep ends a step: the results of its tools follow the message of the assistant.
func (c *collector) endStep() {
	c.stepEnd = c.stepEnd || len(c.message().Blocks) > 0
	if len(c.results) > 0 {
		c.list = append(c.list, Message{Role: Tool, Blocks: c.results})
		c.results = nil
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
	"type", "text", "mediaType", "url", "filename", "providerMetadata", "toolCallId", "toolName", "state", "input",
	"rawInput", "output", "errorText", "approval", "providerExecuted", "callProviderMetadata",
}

type uiBlock [uiMembers]Span

// uiPart reads part i. The facts of a tool part are two parts: its call, whose Raw is the input, and, once the tool is
// done, its result, whose Raw is the output or the errorText. A step-start has no tokens: the model sees none of it.
func (s *scanner) uiPart(i int, raw Span) {
	kind, v := s.uiBlock(raw)
	var b *Block
	switch kind {
	case Text:
		if b = s.text(raw, v[uiText]); b != nil {
			b.Signature = s.googleSignature(v[uiMetadata])
		}
	case Reasoning:
		b = s.add(Part{Kind: Reasoning, Raw: raw, Value: v[uiText], Tokens: s.later(v[uiText])})
		if b != nil {
			b.Signature = s.value(v[uiMetadata])
		}
	case Image, File:
		b = s.add(Part{Kind: kind, Raw: raw, Tokens: s.uiFileTokens(kind, v[uiURL])})
		if b != nil {
			b.Media = s.uiMedia(&v)
		}
	case Call:
		s.uiTool(i, raw, &v)
	default:
		s.uiOther(raw, v[uiType])
	}
}

func (s *scanner) uiOther(raw, kind Span) {
	switch {
	case !s.equals(kind, stepStart):
		s.opaque(raw)
	case s.ir != nil && s.facts.Role == "assistant":
		s.ir.endStep()
	default:
		s.add(Part{Kind: Opaque, Raw: raw})
	}
}

// uiBlock reads the members of a part. Tools that the provider runs itself are Opaque, as they are in its own format.
func (s *scanner) uiBlock(raw Span) (kind Kind, v uiBlock) {
	if !s.is(raw, '{') {
		return Opaque, v
	}
	s.pick(raw.Start, uiPartNames, v[:])
	at := v[uiType]
	switch {
	case s.equals(at, "text") && s.is(v[uiText], '"'):
		return Text, v
	case s.equals(at, "reasoning") && s.is(v[uiText], '"'):
		return Reasoning, v
	case s.equals(at, "file") && s.is(v[uiURL], '"'):
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
	case !s.is(at, '"') || s.equals(at, "tool-invocation") && v[uiCallID] == Span{}:
		return false
	case s.equals(at, dynamicTool):
		return true
	}
	return bytes.HasPrefix(s.plain(at), []byte(toolPrefix))
}

func (s *scanner) uiTool(i int, raw Span, v *uiBlock) {
	at := v[uiToolName]
	input := s.uiInput(v)
	call := Part{Kind: Call, Raw: input, Value: input, Name: s.name(at)}
	if !s.equals(v[uiType], dynamicTool) {
		at = v[uiType]
		call.Name = strings.TrimPrefix(s.name(at), toolPrefix)
	}
	call.CallID = s.callID(v[uiCallID], func() string { return fmt.Sprintf("/parts/%d/toolCallId", i) })
	call.Tokens = s.tokens(at) + s.tokens(call.Value)
	if b := s.add(call); b != nil {
		s.uiCall(b, raw, v)
	}
	if value, failed, done := s.uiOutput(v); done {
		result := Part{Raw: value, Value: value, CallID: call.CallID, Name: call.Name, IsError: failed}
		s.uiResult(result, raw, v)
	}
}

// uiCall completes the block of a call.
func (s *scanner) uiCall(b *Block, raw Span, v *uiBlock) {
	b.Raw = raw.Of(s.body)
	b.Name = s.uiToolName(v)
	b.Signature = s.googleSignature(v[uiCallMetadata])
	if b.Value == nil {
		b.Value = []byte("{}")
	}
	b.Custom = b.Value[0] == '"'
}

// uiResult adds the result that is in the part of its call.
func (s *scanner) uiResult(part Part, raw Span, v *uiBlock) {
	var b *Block
	if list, ok := s.outputList(part.Value); ok {
		s.facts.Flags |= FlagResultNotText
		b = s.result(part, list, s.outputElement)
	} else {
		b = s.jsonResult(part, part.Value)
	}
	if b == nil {
		return
	}
	b.Raw = raw.Of(s.body)
	b.Name = s.uiToolName(v)
	if s.equals(v[uiState], outputDenied) {
		b.Content = []Block{{Format: b.Format, Kind: Text, Text: s.denial(v[uiApproval])}}
	}
}

// uiToolName returns the name of a tool, as a string literal.
func (s *scanner) uiToolName(v *uiBlock) []byte {
	if s.equals(v[uiType], dynamicTool) {
		return s.literal(v[uiToolName])
	}
	if inner := s.body[v[uiType].Start+1 : v[uiType].End]; bytes.HasPrefix(inner, []byte(toolPrefix)) {
		return append([]byte{'"'}, inner[len(toolPrefix):]...)
	}
	return rawjson.Quote(nil, s.plain(v[uiType])[len(toolPrefix):])
}

// denial returns why the user refused a call.
func (s *scanner) denial(approval Span) []byte {
	if reason := s.inner(approval, "reason"); s.is(reason, '"') {
		return reason.Of(s.body)
	}
	return []byte(`"Tool execution denied."`)
}

// outputElement reads an element of an output that is a list.
func (s *scanner) outputElement(raw Span) {
	v := s.outputMembers(raw)
	kind := v[outputType]
	var b *Block
	switch {
	case s.equals(kind, "text") && s.is(v[outputText], '"'):
		b = s.text(raw, v[outputText])
	case s.equals(kind, "media") && s.is(v[outputData], '"'):
		b = s.outputMedia(raw, &v)
	case s.equals(kind, "image-url") && s.is(v[outputURL], '"'):
		b = s.outputLink(raw, Image, &v)
	case s.equals(kind, "file-url") && s.is(v[outputURL], '"'):
		b = s.outputLink(raw, File, &v)
	default:
		b = s.opaque(raw)
	}
	if b != nil {
		b.Media.Name = s.literal(v[outputFilename])
	}
}

// outputMedia adds an image or a file that is in the output itself.
func (s *scanner) outputMedia(raw Span, v *outputValues) *Block {
	part := Part{Kind: s.mediaKind(v[outputMediaType]), Raw: raw, Tokens: tokens.Unknown}
	if part.Kind == Image {
		part.Tokens = tokens.AreaImage(s.measure(v[outputData]))
	}
	b := s.add(part)
	if b != nil {
		b.Media = Media{Type: s.literal(v[outputMediaType]), Data: v[outputData].Of(s.body)}
	}
	return b
}

// outputLink adds an image or a file that a URL leads to.
func (s *scanner) outputLink(raw Span, kind Kind, v *outputValues) *Block {
	b := s.add(Part{Kind: kind, Raw: raw, Tokens: tokens.Unknown})
	if b != nil {
		b.Media = s.urlMedia(v[outputMediaType], v[outputURL])
	}
	return b
}

// outputList returns the list of an output that is {"type":"content","value":[…]}: texts, images and files.
func (s *scanner) outputList(at Span) (list Span, ok bool) {
	if !s.is(at, '{') || !s.equals(s.inner(at, "type"), "content") {
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

type outputValues = [outputMembers]Span

func (s *scanner) outputMembers(at Span) (v outputValues) {
	if s.is(at, '{') {
		s.pick(at.Start, outputNames, v[:])
	}
	return v
}

// uiInput returns the arguments of a call. Those that could not be parsed are in rawInput.
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

var finalStates = []string{outputAvailable, outputError, outputDenied}

// uiOutput returns what a tool returned according to its part. A tool that returned nothing has no output, and the
// reason of a user to refuse a call is not the tool's to replace.
func (s *scanner) uiOutput(v *uiBlock) (value Span, failed, done bool) {
	state := v[uiState]
	switch {
	case s.equals(state, outputAvailable):
		return v[uiOutput], false, true
	case s.equals(state, outputError):
		return v[uiError], true, true
	case s.equals(state, outputDenied):
		return Span{}, true, true
	}
	return Span{}, false, false
}

func (s *scanner) uiFileTokens(kind Kind, url Span) int {
	if kind != Image || s.ir != nil {
		return tokens.Unknown
	}
	if _, data, ok := dataURL(s.plain(url)); ok {
		return tokens.AreaImage(tokens.Measure(data))
	}
	return tokens.Unknown
}

func (s *scanner) googleSignature(metadata Span) []byte {
	return s.literal(s.inner(metadata, "google", "thoughtSignature"))
}

// uiMedia reads a file part.
func (s *scanner) uiMedia(v *uiBlock) Media {
	m := s.urlMedia(v[uiMediaType], v[uiURL])
	m.Name = s.literal(v[uiFilename])
	m.Detail = s.literal(s.inner(v[uiMetadata], "openai", "imageDetail"))
	return m
}

// urlMedia reads what a URL leads to or holds. A media type that is a pattern counts as unknown.
func (s *scanner) urlMedia(mediaType, url Span) (m Media) {
	if m.Type = s.literal(mediaType); bytes.HasSuffix(m.Type, []byte(`*"`)) {
		m.Type = nil
	}
	kind, data, ok := dataURL(s.plain(url))
	if !ok {
		m.URL = url.Of(s.body)
		return m
	}
	if m.Type == nil && len(kind) > 0 {
		m.Type = rawjson.Quote(nil, kind)
	}
	m.Data = rawjson.Quote(nil, data)
	return m
}
