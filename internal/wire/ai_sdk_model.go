package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

// AI SDK ModelMessages, as content-part.ts of @ai-sdk/provider-utils has them: what convertToModelMessages returns, and
// generateText as its messages. Views have them as the UIMessages that they would have been made of: results, and what
// the user said of an approval, are in the part of their call.
//
//	content                  a text, or a list of parts
//	text, reasoning          as in a UIMessage; providerOptions are its metadata
//	file, image              Image or File; data and image are base64 or a URL
//	tool-call                Call; of a tool that the provider runs the part of a UIMessage, which is Opaque
//	tool-result              Result; of version 4 with result instead of output
//	tool-approval-request    the state of its call
//	tool-approval-response   the state of the call that was asked for: see settleApprovals
//	anything else            as in a UIMessage

// isModelMessage reports whether a message is a ModelMessage that no UIMessage is like.
func (s *scanner) isModelMessage(v *object) bool {
	return s.facts.Role == "tool" || s.is(v.at("content"), '[')
}

// modelMessage reads a ModelMessage.
func (s *scanner) modelMessage(v *object) {
	s.loose = true
	if s.facts.Role == "tool" {
		s.facts.StartsUnit = false
	}
	if s.ir != nil {
		s.ir.model = true
		if n := s.ir.message(); s.facts.Role == "tool" {
			n.Role, n.Name = Tool, nil
		}
	}
	s.keepOthers(v, "role", "content", "providerOptions")
	i := 0
	s.content(v.at("content"), func(part Span) {
		s.modelPart(i, part, v.at("content"))
		i++
	})
	s.mendModel()
}

// mendModel marks what was read of a ModelMessage as to be written anew, but for what has the bytes of the part of a
// UIMessage already.
func (s *scanner) mendModel() {
	if s.ir == nil {
		return
	}
	for _, blocks := range [][]Block{s.ir.message().Blocks, s.ir.results} {
		for i := range blocks {
			blocks[i].Edited = blocks[i].Kind != Result && !blocks[i].executed
		}
	}
}

func (s *scanner) modelPart(i int, raw, content Span) {
	v := s.object(raw)
	kind := s.name(v.at("type"))
	if (kind == "text" || kind == "reasoning") && !s.is(v.at("text"), '"') {
		kind = "" // it says nothing
	}
	switch kind {
	case "text":
		if b := s.text(raw, v.at("text")); b != nil {
			b.Signature = s.googleSignature(v.at("providerOptions"))
			s.asUIPart(b, &v)
		}
	case "custom":
		if b := s.opaque(raw); b != nil {
			s.asUIPart(b, &v)
		}
	case "reasoning":
		if b := s.reasoning(raw, v.at("text")); b != nil {
			b.Signature = s.value(v.at("providerOptions"))
		}
	case "image", "file":
		s.modelFile(kind, raw, &v)
	case "tool-call":
		s.modelCall(i, raw, content, &v)
	case "tool-result":
		s.modelResult(i, raw, &v)
	case "tool-approval-request":
		s.modelApproval(raw, &v)
	case approvalAnswer:
		s.opaque(raw)
	default:
		s.uiPart(i, raw)
	}
}

// asUIPart gives a block what the part of a UIMessage keeps for the provider: a compaction is known by it.
func (s *scanner) asUIPart(b *Block, v *object) {
	if options := s.value(v.at("providerOptions")); options != nil {
		b.Raw = setMember(without(b.Raw, "providerOptions"), "providerMetadata", options)
		b.executed = true
	}
}

// modelFile reads an image or a file, whose data is base64 or a URL, or an object of one of them.
func (s *scanner) modelFile(kind string, raw Span, v *object) {
	at, mediaType := v.at("data"), v.at("mediaType")
	if s.is(at, '{') {
		at = s.tagged(at)
	}
	of := s.mediaKind(mediaType)
	if kind == "image" {
		at, of = v.at("image"), Image
	}
	cost := s.fileTokens(at, s.name(mediaType), tokens.CostsOfAnthropic)
	if of == Image {
		cost = tokens.AreaImage(s.measureURL(at))
	}
	s.media(of, raw, cost, func() Media {
		m := Media{Type: s.literal(mediaType), Name: s.literal(v.at("filename"))}
		switch {
		case s.readData(&m, at):
		case s.is(at, '"') && bytes.Contains(s.plain(at), []byte("://")):
			m.URL = s.literal(at)
		default:
			m.Data = s.literal(at)
		}
		return m
	})
}

// modelCall reads a call. In the intermediate representation it has the bytes of the part of a UIMessage.
func (s *scanner) modelCall(i int, raw, content Span, v *object) {
	if s.is(v.at("providerExecuted"), 't') {
		s.modelExecuted(raw, content, v)
		return
	}
	input := v.at("input")
	if input == (Span{}) {
		input = v.at("args") // of version 4
	}
	call := Part{Raw: input, Value: input, Name: s.name(v.at("toolName"))}
	call.CallID = s.callID(v.at("toolCallId"), func() string { return fmt.Sprintf("/content/%d/toolCallId", i) })
	b := s.call(call, v.at("toolName"))
	if b == nil {
		return
	}
	if b.Value == nil {
		b.Value = []byte("{}")
	}
	b.Name = s.literal(v.at("toolName"))
	b.Custom = b.Value[0] == '"'
	b.Raw = s.uiPartOf(v, b.Value, `,"state":"input-available"`)
	b.Signature = s.googleSignature(v.at("providerOptions"))
}

// uiPartOf returns the part of a UIMessage of a call, in a state that is written as JSON.
func (s *scanner) uiPartOf(v *object, input []byte, state string) []byte {
	name := s.literal(v.at("toolName"))
	if name == nil {
		name = []byte(`""`)
	}
	part := appendToolName([]byte{'{'}, name)
	if id := s.literal(v.at("toolCallId")); id != nil {
		part = with(part, `,"toolCallId":`, id)
	}
	part = append(with(part, `,"input":`, input), state...)
	if options := s.value(v.at("providerOptions")); options != nil {
		part = with(part, `,"callProviderMetadata":`, options)
	}
	return append(part, '}')
}

// modelExecuted reads the call of a tool that the provider ran, with its result from the same content. The result is no
// part of its own in a UIMessage, but it is one here.
func (s *scanner) modelExecuted(raw, content Span, v *object) {
	b := s.opaque(raw)
	if b == nil {
		return
	}
	state := `,"state":"input-available","providerExecuted":true`
	for other := range s.elements(content) {
		result := s.object(other)
		if s.equals(result.at("type"), "tool-result") && s.literal(result.at("toolCallId")) != nil &&
			bytes.Equal(s.literal(result.at("toolCallId")), s.literal(v.at("toolCallId"))) {
			value, isError, _ := s.modelOutput(&result)
			state = string(outputState(s.outputJSON(&result, value), isError)) + `,"providerExecuted":true`
		}
	}
	input := s.value(v.at("input"))
	if input == nil {
		input = []byte("{}")
	}
	b.Raw, b.executed = s.uiPartOf(v, input, state), true
}

// modelOutput returns what a tool returned, whether it failed, and whether it is a list of texts, images and files.
func (s *scanner) modelOutput(v *object) (value Span, isError, list bool) {
	output := v.at("output")
	if output == (Span{}) {
		return v.at("result"), s.is(v.at("isError"), 't'), false // of version 4
	}
	kind := s.name(s.inner(output, "type"))
	switch kind {
	case "execution-denied":
		return s.inner(output, "reason"), true, false
	case "text", "json", "error-text", "error-json":
		return s.inner(output, "value"), kind[0] == 'e', false
	case "content":
		value = s.inner(output, "value")
		return value, false, s.is(value, '[')
	}
	return output, false, false
}

// outputJSON returns an output as that of a UIMessage.
func (s *scanner) outputJSON(v *object, value Span) []byte {
	switch {
	case s.equals(s.inner(v.at("output"), "type"), "content"):
		return v.at("output").Of(s.body)
	case s.absent(value):
		return []byte(`""`)
	}
	return value.Of(s.body)
}

// outputState returns the members of the part of a call that is done.
func outputState(output []byte, isError bool) []byte {
	if !isError {
		return with(nil, `,"state":"output-available","output":`, output)
	}
	if output[0] != '"' {
		output = rawjson.Quote(nil, output)
	}
	return with(nil, `,"state":"output-error","errorText":`, output)
}

func (s *scanner) modelResult(i int, raw Span, v *object) {
	id := s.callID(v.at("toolCallId"), func() string { return fmt.Sprintf("/content/%d/toolCallId", i) })
	if s.ir != nil && s.ir.hasExecuted(v, s) {
		s.ir.numbers++ // it is in the part of its call
		return
	}
	value, isError, list := s.modelOutput(v)
	part := Part{Raw: raw, Value: value, CallID: id, Name: s.name(v.at("toolName")), IsError: isError}
	var b *Block
	if list {
		s.facts.Flags |= FlagResultNotText
		b = s.result(part, value, s.outputElement)
	} else {
		b = s.jsonResult(part, value)
	}
	if b == nil {
		return
	}
	b.Name = s.literal(v.at("toolName"))
	if len(b.Content) == 0 && isError {
		b.Content = []Block{{Format: b.Format, Kind: Text, Text: s.denial(Span{})}}
	}
	output := s.outputJSON(v, value)
	if isError && string(output) == `""` {
		output = s.denial(Span{})
	}
	b.Raw = append(append([]byte(`{"type":"tool-result"`), outputState(output, isError)...), '}')
}

// hasExecuted reports whether a result is that of a tool that the provider ran, and in the part of its call.
func (c *collector) hasExecuted(v *object, s *scanner) bool {
	return slices.ContainsFunc(c.message().Blocks, func(p Block) bool {
		id := s.literal(v.at("toolCallId"))
		return p.executed && id != nil && bytes.Equal(valueOf(p.Raw, "toolCallId"), id)
	})
}

// modelApproval sets the state of the call that waits for an approval.
func (s *scanner) modelApproval(raw Span, v *object) {
	if s.ir == nil {
		s.add(Part{Kind: Opaque, Raw: raw})
		return
	}
	s.ir.numbers++ // it is in the part of its call
	id := s.literal(v.at("approvalId"))
	for i := range s.ir.message().Blocks {
		p := &s.ir.message().Blocks[i]
		if p.Kind == Call && id != nil && bytes.Equal(valueOf(p.Raw, "toolCallId"), s.literal(v.at("toolCallId"))) {
			p.setApproval(approvalRequested, wrap(nil, `{"id":`, id, "}"))
		}
	}
}

// setApproval sets what the part of a call says of its approval.
func (b *Block) setApproval(state string, approval []byte) {
	b.Raw = setMember(setMember(b.Raw, "state", rawjson.Quote(nil, []byte(state))), "approval", approval)
	s := scanner{body: b.Raw}
	v := s.object(Span{End: len(b.Raw)})
	b.waits = s.approval(&v)
}

// approvalAnswer is the type of the part in which the user says whether a call may run.
const approvalAnswer = "tool-approval-response"

// settleApprovals puts what the user said of calls of ModelMessages into the parts of these calls. What is said of a
// call that is not in the view becomes a note of the user.
func (r *repairer) settleApprovals(list []Message) []Message {
	asked := map[string]*Block{}
	each(list, Call, func(n *Message, p *Block) {
		if n.Format == session.AISDK {
			asked[stringMember(valueOf(p.Raw, "approval"), "id")] = p
		}
	})
	kept := list[:0]
	for i := range list {
		n := &list[i]
		if n.Format != session.AISDK || !slices.ContainsFunc(n.Blocks, isApproval) {
			kept = append(kept, *n)
			continue
		}
		r.repaired("V-U9", "approval_moved", n, "what the user says of a call is in the part of the call")
		n.Blocks = slices.DeleteFunc(n.Blocks, func(p Block) bool {
			call := asked[stringMember(p.Raw, "approvalId")]
			if !isApproval(p) || call == nil {
				return false
			}
			call.answerApproval(p.Raw)
			return true
		})
		if n.Edited = true; slices.ContainsFunc(n.Blocks, isApproval) {
			n.Role = User
		}
		if len(n.Blocks) > 0 {
			kept = append(kept, *n)
		}
	}
	return kept
}

func isApproval(p Block) bool {
	return p.Kind == Opaque && p.Format == session.AISDK && isType(p.Raw, approvalAnswer)
}

func (b *Block) answerApproval(answer []byte) {
	approval := with(nil, `{"id":`, valueOf(answer, "approvalId"))
	approved := valueOf(answer, "approved")
	if string(approved) != "true" {
		approved = []byte("false")
	}
	approval = with(approval, `,"approved":`, approved)
	if reason := stringLiteralAt(answer, "reason"); reason != nil {
		approval = with(approval, `,"reason":`, reason)
	}
	b.setApproval(approvalResponded, append(approval, '}'))
	b.Edited = true
}
