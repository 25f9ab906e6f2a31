package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
)

// AI SDK UIMessages, as ui-messages.ts of the package ai (vercel/ai) has them, and read as its
// convert-to-model-messages.ts reads them: what a message of the assistant says between two step-start is one message of
// a model, and the results of its tools come behind it.
//
//	role user, system            User, System
//	role assistant               for every step an Assistant, then a Tool if its tools are done
//	text, reasoning              Text, Reasoning; its providerMetadata is the Signature
//	file                         Image if its mediaType begins with image/, else File
//	tool-NAME, dynamic-tool      Call; in the states output-available, output-error and output-denied a Result, too.
//	                             An input that is a string is that of a custom tool. The signature of Google that is
//	                             in callProviderMetadata is the Signature
//	output                       a text, or what {"type":"content","value":[…]} holds (LanguageModelV2ToolResultOutput);
//	                             of any other value its JSON as a text
//	step-start                   nothing: a step begins
//	a tool that the provider ran, source-url, source-document, data-*, version 4, anything else    Opaque
//
// What other formats say and a UIMessage cannot:
//
//	messages of one turn           one message of the assistant, its steps behind step-start; its id is made of its
//	                               position and its first message
//	reasoning that is sealed       its providerMetadata, as that provider's package of the AI SDK wants it
//	a result of several blocks     {"type":"content","value":[…]}, with text, media, image-url and file-url
//	images of a failed result      a note in its errorText
//	an image or a file by its id   a note
//	a speaker's name               a note in front
//	anything that is Opaque        its JSON as a text

func decodeAISDK(body []byte) []Message {
	s := &scanner{body: body}
	var v [uiMessageMembers]Span
	s.pick(rawjson.Start(body), uiNames, v[:])
	s.facts.Role = s.name(v[uiRole])
	names := uiNames
	if s.is(v[uiParts], '[') {
		names = uiNames[:uiContent]
	}
	d := uiDecoder{scanner: s, list: []Message{{Extra: s.members(rawjson.Start(body), names, v[:])}}}
	d.role(v[uiRole])
	if s.is(v[uiParts], '[') {
		d.parts(v[uiParts])
	} else {
		d.parts(v[uiContent])
		d.invocations(v[uiInvocations])
	}
	d.step()
	return d.list
}

// uiDecoder collects the Messages of one message. The last one of list is what is said; results are those of its calls.
type uiDecoder struct {
	*scanner
	list    []Message
	results []Block
	over    bool // the step is: what is said next belongs to another
}

func (d *uiDecoder) role(at Span) {
	n := &d.list[0]
	switch d.facts.Role {
	case "user":
		n.Role = User
	case "assistant":
		n.Role = Assistant
	case "system", "developer":
		n.Role = System
	default:
		n.Role, n.Name = Other, at.Of(d.body)
	}
}

func (d *uiDecoder) add(p Block) {
	if d.over {
		d.list, d.over = append(d.list, Message{Role: Assistant}), false
	}
	n := &d.list[len(d.list)-1]
	n.Blocks = append(n.Blocks, p)
}

// step ends a step: the results of its tools come behind what was said.
func (d *uiDecoder) step() {
	d.over = d.over || len(d.list[len(d.list)-1].Blocks) > 0
	if len(d.results) > 0 {
		d.list = append(d.list, Message{Role: Tool, Blocks: d.results})
		d.results = nil
	}
}

func (d *uiDecoder) parts(at Span) {
	if !d.is(at, '[') {
		for _, p := range d.pieces(nil, at, nil) {
			d.add(p)
		}
		return
	}
	for element := range rawjson.Elements(d.body, at.Start) {
		d.part(element)
	}
}

func (d *uiDecoder) invocations(at Span) {
	if !d.is(at, '[') {
		return
	}
	for element := range rawjson.Elements(d.body, at.Start) {
		d.add(Block{Kind: Opaque, Raw: element.Of(d.body)})
	}
}

func (d *uiDecoder) part(raw Span) {
	kind, v := d.uiBlock(raw)
	if d.isText(v[uiType], stepStart) && d.facts.Role == "assistant" {
		d.step()
		return
	}
	p := Block{Kind: kind, Raw: raw.Of(d.body)}
	switch kind {
	case Text:
		p.Text, p.Signature = d.value(v[uiText]), d.googleSignature(v[uiMetadata])
	case Reasoning:
		p.Text, p.Signature = d.value(v[uiText]), d.value(v[uiMetadata])
	case Image, File:
		p.Media = d.uiMedia(&v)
	case Call:
		d.tool(&p, &v)
	}
	d.add(p)
}

func (d *uiDecoder) tool(p *Block, v *uiBlock) {
	p.CallID = d.callID(v[uiCallID], func() string { return "" })
	p.Name, p.Signature = d.toolName(v), d.googleSignature(v[uiCallMetadata])
	if p.Value = d.value(d.uiInput(v)); p.Value == nil {
		p.Value = []byte("{}")
	}
	p.Custom = p.Value[0] == '"'
	if value, failed, done := d.uiOutput(v); done {
		content := d.outputContent(value)
		if d.isText(v[uiState], outputDenied) {
			content = []Block{{Kind: Text, Text: d.denial(v[uiApproval])}}
		}
		d.results = append(d.results, Block{Kind: Result, Raw: p.Raw, CallID: p.CallID, Name: p.Name, Content: content, IsError: failed})
	}
}

func (d *uiDecoder) toolName(v *uiBlock) []byte {
	if d.isText(v[uiType], dynamicTool) {
		return d.literal(v[uiToolName])
	}
	if inner := d.body[v[uiType].Start+1 : v[uiType].End]; bytes.HasPrefix(inner, []byte(toolPrefix)) {
		return append([]byte{'"'}, inner[len(toolPrefix):]...)
	}
	return rawjson.Quote(nil, d.plain(v[uiType])[len(toolPrefix):])
}

// denial is why the user refused a call.
func (d *uiDecoder) denial(approval Span) []byte {
	if reason := d.inner(approval, "reason"); d.is(reason, '"') {
		return reason.Of(d.body)
	}
	return []byte(`"Tool execution denied."`)
}

// inner is the value of a member inside members, the zero Span if one of them is no object or not there.
func (s *scanner) inner(at Span, path ...string) Span {
	for _, name := range path {
		if !s.is(at, '{') {
			return Span{}
		}
		start := at.Start
		at = Span{}
		for key, value := range rawjson.Members(s.body, start) {
			if rawjson.KeyIs(s.body, key, name) {
				at = value
			}
		}
	}
	return at
}

func (s *scanner) googleSignature(metadata Span) []byte {
	return s.literal(s.inner(metadata, "google", "thoughtSignature"))
}

// uiMedia reads a file part. A media type that is a pattern is none.
func (s *scanner) uiMedia(v *uiBlock) Media {
	m := s.urlMedia(v[uiMediaType], v[uiURL])
	m.Name, m.Detail = s.literal(v[uiFilename]), s.literal(s.inner(v[uiMetadata], "openai", "imageDetail"))
	return m
}

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

// outputContent reads what a tool returned.
func (s *scanner) outputContent(at Span) []Block {
	switch {
	case s.empty(at):
		return nil
	case s.is(at, '"'):
		return []Block{{Kind: Text, Text: at.Of(s.body)}}
	}
	if list, ok := s.outputList(at); ok {
		var content []Block
		for element := range rawjson.Elements(s.body, list.Start) {
			content = append(content, s.outputPiece(element))
		}
		return content
	}
	return []Block{{Kind: Text, Text: rawjson.Quote(nil, at.Of(s.body))}}
}

func (s *scanner) outputPiece(raw Span) Block {
	p, v := Block{Kind: Opaque, Raw: raw.Of(s.body)}, s.outputMembers(raw)
	kind, mediaType := v[outputType], v[outputMediaType]
	isURL, isImage := s.isText(kind, "file-url"), s.isText(kind, "image-url")
	switch {
	case s.isText(kind, "text") && s.is(v[outputText], '"'):
		p.Kind, p.Text = Text, v[outputText].Of(s.body)
	case s.isText(kind, "media") && s.is(v[outputData], '"'):
		p.Kind, p.Media = s.mediaKind(mediaType), Media{Type: s.literal(mediaType), Data: v[outputData].Of(s.body)}
	case (isURL || isImage) && s.is(v[outputURL], '"'):
		p.Kind, p.Media = File, s.urlMedia(mediaType, v[outputURL])
		if isImage {
			p.Kind = Image
		}
	}
	p.Media.Name = s.literal(v[outputFilename])
	return p
}
