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
// docs/formats.md has what becomes of what other formats can express and this one cannot.

// aiSDK reads a UIMessage. One of the versions before 5 may have its text in content, beside parts or without; then its
// calls are in toolInvocations, which stay Opaque.
func (s *scanner) aiSDK(top Span) {
	s.top = s.object(top)
	v := &s.top
	s.role(v.at("role"))
	s.facts.StartsUnit = true
	s.loose = s.loose || !s.is(v.at("id"), '"')
	i := 0
	add := func(part Span) {
		s.uiPart(i, part)
		i++
	}
	parts := v.at("parts")
	switch {
	case s.is(parts, '['):
		s.keepOthers(v, "role", "parts")
		s.content(parts, add)
	case s.isModelMessage(v):
		s.state = true
		s.modelMessage(v)
	default:
		s.keepOthers(v, "role", "parts", "content", "toolInvocations")
		s.content(v.at("content"), add)
		for invocation := range s.elements(v.at("toolInvocations")) {
			s.opaque(invocation)
		}
		s.mendUI(0)
	}
	if s.ir != nil {
		s.ir.endStep()
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

// uiPart reads part i. The facts of a tool part are two parts: its call, whose Raw is the input, and, once the tool is
// done, its result, whose Raw is the output or the errorText. A step-start has no tokens: the model sees none of it.
func (s *scanner) uiPart(i int, raw Span) {
	v := s.object(raw)
	before := s.numbered()
	kind := s.uiKind(&v)
	s.state = s.state || kind == Opaque ||
		kind == Text && !(s.absent(v.at("providerMetadata")) && s.absent(v.at("providerOptions")))
	switch kind {
	case Text:
		if b := s.text(raw, v.at("text")); b != nil {
			b.Signature = s.googleSignature(v.at("providerMetadata"))
		}
	case Reasoning:
		if b := s.reasoning(raw, v.at("text")); b != nil {
			b.Signature = s.value(v.at("providerMetadata"))
		}
	case Image, File:
		s.uiFile(kind, raw, &v)
	case Call:
		s.uiTool(i, raw, &v)
	default:
		s.uiOther(raw, &v)
	}
	s.cites(&v, "citations", "annotations", "providerMetadata")
	if !s.uiFits(&v) {
		s.mendUI(before)
	}
}

func (s *scanner) uiOther(raw Span, v *object) {
	switch {
	case !s.equals(v.at("type"), stepStart):
		s.opaque(raw)
		s.cites(v, "type") // it may be a source
	case s.ir != nil && s.facts.Role == "assistant":
		s.ir.endStep()
		s.ir.numbers++ // a start is a part, and no block
	default:
		s.add(Part{Kind: Opaque, Raw: raw})
	}
}

// uiKind returns the kind of a part. Tools that the provider runs itself are Opaque, as they are in its own format.
func (s *scanner) uiKind(v *object) Kind {
	at := v.at("type")
	switch {
	case s.equals(at, "text") && s.is(v.at("text"), '"'):
		return Text
	case s.equals(at, "reasoning") && s.is(v.at("text"), '"'):
		return Reasoning
	case s.equals(at, "file") && s.is(v.at("url"), '"'):
		return s.mediaKind(v.at("mediaType"))
	case s.isTool(v) && !s.is(v.at("providerExecuted"), 't') && s.facts.Role == "assistant":
		return Call
	}
	return Opaque
}

// stepStart is the type of the part that a step begins with.
const stepStart = "step-start"

// The types of tool parts: dynamicTool, or toolPrefix and the tool's name.
const (
	dynamicTool = "dynamic-tool"
	toolPrefix  = "tool-"
)

// isTool reports whether a part is that of a tool. The tool-invocation of version 4 has its members in another object.
func (s *scanner) isTool(v *object) bool {
	at := v.at("type")
	switch {
	case !s.is(at, '"') || s.equals(at, "tool-invocation") && v.at("toolCallId") == Span{}:
		return false
	case s.equals(at, dynamicTool):
		return true
	}
	return bytes.HasPrefix(s.plain(at), []byte(toolPrefix))
}

// uiToolName returns the name of the tool of a part, if it is one of a call, be it of a tool that the provider runs.
func uiToolName(part []byte) (name string, ok bool) {
	kind := stringMember(part, "type")
	if kind == dynamicTool {
		return stringMember(part, "toolName"), true
	}
	name, ok = strings.CutPrefix(kind, toolPrefix)
	return name, ok && member(part, "toolCallId") != Span{}
}

func (s *scanner) uiTool(i int, raw Span, v *object) {
	at := v.at("toolName")
	input := v.at("input")
	if input == (Span{}) {
		input = v.at("rawInput") // arguments that could not be parsed
	}
	call := Part{Raw: input, Value: input, Name: s.name(at)}
	if !s.equals(v.at("type"), dynamicTool) {
		at = v.at("type")
		call.Name = strings.TrimPrefix(s.name(at), toolPrefix)
	}
	call.CallID = s.callID(v.at("toolCallId"), func() string { return fmt.Sprintf("/parts/%d/toolCallId", i) })
	if b := s.call(call, at); b != nil {
		s.uiCall(b, raw, v)
	}
	if value, failed, done := s.uiOutput(v); done {
		result := Part{Raw: value, Value: value, CallID: call.CallID, Name: call.Name, IsError: failed}
		s.uiResult(result, raw, v)
	}
}

// uiCall completes the block of a call.
func (s *scanner) uiCall(b *Block, raw Span, v *object) {
	b.Raw = raw.Of(s.body)
	b.Name = s.uiToolName(v)
	b.Signature = s.googleSignature(v.at("callProviderMetadata"))
	if b.Value == nil {
		b.Value = []byte("{}")
	}
	b.Custom = b.Value[0] == '"'
	b.waits = s.approval(v)
}

// The states of a tool part that is about the user's approval.
const (
	approvalRequested = "approval-requested"
	approvalResponded = "approval-responded"
)

// deniedCall begins what is said of a call that the user denied: its result will never come.
const deniedCall = "not there: the user denied the call"

// approval says what a call waits for that the user has to approve, "" for any other.
func (s *scanner) approval(v *object) string {
	state := v.at("state")
	switch {
	case s.equals(state, approvalRequested):
		return "not there: the call waits for the user's approval"
	case s.equals(state, approvalResponded) && s.is(s.inner(v.at("approval"), "approved"), 'f'):
		if reason := s.inner(v.at("approval"), "reason"); s.isSaid(reason) {
			return deniedCall + ": " + s.name(reason)
		}
		return deniedCall
	case s.equals(state, approvalResponded):
		return "not there: the user approved the call, and it has not run since"
	}
	return ""
}

// uiResult adds the result that is in the part of its call.
func (s *scanner) uiResult(part Part, raw Span, v *object) {
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
	if s.equals(v.at("state"), outputDenied) {
		b.Content = []Block{{Format: b.Format, Kind: Text, Text: s.denial(v.at("approval"))}}
	}
}

// uiToolName returns the name of a tool, as a string literal.
func (s *scanner) uiToolName(v *object) []byte {
	kind := v.at("type")
	if s.equals(kind, dynamicTool) {
		return s.literal(v.at("toolName"))
	}
	if inner := s.body[kind.Start+1 : kind.End]; bytes.HasPrefix(inner, []byte(toolPrefix)) {
		return append([]byte{'"'}, inner[len(toolPrefix):]...)
	}
	return rawjson.Quote(nil, s.plain(kind)[len(toolPrefix):])
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
	v := s.object(raw)
	kind := v.at("type")
	switch {
	case s.equals(kind, "text") && s.is(v.at("text"), '"'):
		s.text(raw, v.at("text"))
	case s.isOutputData(kind) && s.is(v.at("data"), '"'):
		s.outputMedia(raw, v.at("data"), &v)
	case s.equals(kind, "file") && s.is(v.at("data"), '{'):
		s.outputFile(raw, &v)
	case s.equals(kind, "image-url") && s.is(v.at("url"), '"'):
		s.media(Image, raw, tokens.Unknown, func() Media { return s.urlMedia(&v) })
	case s.equals(kind, "file-url") && s.is(v.at("url"), '"'):
		s.media(File, raw, tokens.Unknown, func() Media { return s.urlMedia(&v) })
	default:
		s.state = true
		s.opaque(raw)
	}
}

// isOutputData reports whether the element of an output has an image or a file in base64, of which version 6 has other
// names than version 5.
func (s *scanner) isOutputData(kind Span) bool {
	return s.equals(kind, "media") || s.equals(kind, "image-data") || s.equals(kind, "file-data")
}

// outputFile adds a file of version 7, whose data is an object that tells what it is.
func (s *scanner) outputFile(raw Span, v *object) {
	at := v.at("data")
	data := s.tagged(at)
	of := s.name(s.inner(at, "type"))
	switch {
	case of == "data" && s.is(data, '"'):
		s.outputMedia(raw, data, v)
	case of == "url" && s.is(data, '"'):
		s.media(s.mediaKind(v.at("mediaType")), raw, tokens.Unknown, func() Media {
			m := Media{Type: s.literal(v.at("mediaType")), Name: s.literal(v.at("filename"))}
			s.readURL(&m, data)
			return m
		})
	case of == "text" && s.is(data, '"'):
		s.text(raw, data)
	default:
		s.opaque(raw)
	}
}

// tagged returns what an object has in the member that its type names.
func (s *scanner) tagged(at Span) Span { return s.inner(at, s.name(s.inner(at, "type"))) }

// outputMedia adds an image or a file that is in the output itself.
func (s *scanner) outputMedia(raw, data Span, v *object) {
	mediaType := v.at("mediaType")
	kind := s.mediaKind(mediaType)
	cost := s.fileTokens(data, s.name(mediaType), tokens.CostsOfAnthropic)
	if kind == Image {
		cost = tokens.AreaImage(s.measure(data))
	}
	s.media(kind, raw, cost, func() Media {
		return Media{Type: s.literal(mediaType), Data: s.literal(data), Name: s.literal(v.at("filename"))}
	})
}

// outputList returns the list of an output that is {"type":"content","value":[…]}: texts, images and files.
func (s *scanner) outputList(at Span) (list Span, ok bool) {
	if !s.is(at, '{') || !s.equals(s.inner(at, "type"), "content") {
		return Span{}, false
	}
	list = s.inner(at, "value")
	return list, s.is(list, '[')
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
func (s *scanner) uiOutput(v *object) (value Span, failed, done bool) {
	state := v.at("state")
	switch {
	case s.equals(state, outputAvailable):
		return v.at("output"), false, true
	case s.equals(state, outputError):
		return v.at("errorText"), true, true
	case s.equals(state, outputDenied):
		return Span{}, true, true
	}
	return Span{}, false, false
}

func (s *scanner) googleSignature(metadata Span) []byte {
	return s.literal(s.inner(metadata, "google", "thoughtSignature"))
}

// uiFile adds an image or a file.
func (s *scanner) uiFile(kind Kind, raw Span, v *object) {
	cost := s.fileTokens(v.at("url"), s.name(v.at("mediaType")), tokens.CostsOfAnthropic)
	if kind == Image {
		cost = tokens.AreaImage(s.measureURL(v.at("url")))
	}
	s.media(kind, raw, cost, func() Media {
		m := s.urlMedia(v)
		m.Detail = s.literal(s.inner(v.at("providerMetadata"), "openai", "imageDetail"))
		return m
	})
}

// urlMedia reads what a URL leads to or holds. A media type that is a pattern counts as unknown.
func (s *scanner) urlMedia(v *object) Media {
	m := Media{Type: s.literal(v.at("mediaType")), Name: s.literal(v.at("filename"))}
	if bytes.HasSuffix(m.Type, []byte(`*"`)) {
		m.Type = nil
	}
	s.readURL(&m, v.at("url"))
	return m
}
