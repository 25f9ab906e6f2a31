package wire

import "github.com/varve-dev/varve/internal/rawjson"

// The members of items that the model has words for.
var (
	messageWords  = []string{"type", "role", "content"}
	functionWords = []string{"type", "call_id", "name", "arguments"}
	customWords   = []string{"type", "call_id", "name", "input"}
	resultWords   = []string{"type", "call_id", "output"}
)

func decodeResponses(body []byte) []Message {
	s := &scanner{body: body}
	at := rawjson.Value(body)
	var v itemValues
	s.pick(at.Start, itemNames, v[:])
	if s.isMessage(&v) {
		n := Message{Extra: s.others(at.Start, messageWords)}
		n.Role, n.Name = s.openAIRole(v[itemRole], nil)
		n.Blocks = s.pieces(nil, v[itemContent], s.responsesPiece)
		return []Message{n}
	}
	kind := s.name(v[itemType])
	form := itemForms[kind]
	n, p := Message{Role: Assistant}, Block{Kind: form.kind, Raw: at.Of(body)}
	switch form.kind {
	case Call:
		n.Extra = s.itemCallPiece(&p, at, form, &v)
	case Result:
		n.Role = Tool
		n.Extra = s.itemResultPiece(&p, at, form, &v)
	case Reasoning:
		s.itemThought(&p, &v)
	default:
		n.Role, n.Name = s.opaqueRole(kind, v[itemRole])
	}
	n.Blocks = []Block{p}
	return []Message{n}
}

// opaqueRole is the role of an item that the model has no words for.
func (s *scanner) opaqueRole(kind string, role Span) (Role, []byte) {
	switch {
	case kind == approvalResponse:
		return User, nil
	case s.is(role, '"') && !s.empty(role):
		return s.openAIRole(role, nil)
	}
	return Assistant, nil
}

// itemCallPiece reads a call, and returns its other members unless only its own type of item can have them.
func (s *scanner) itemCallPiece(p *Block, at Span, form itemForm, v *itemValues) (extra []byte) {
	p.CallID = s.callID(v[itemCallID], nil)
	value := s.itemArguments(form, v)
	switch {
	case form.tool != "":
		p.Name, p.Value = rawjson.Quote(nil, []byte(form.tool)), s.value(value)
		return nil
	case form.value == itemInput:
		p.Name, p.Value, p.Custom = s.literal(v[itemName]), []byte(`""`), true
		if !s.absent(value) {
			p.Value = s.freeText(value)
		}
		return s.others(at.Start, customWords)
	}
	p.Name = s.literal(v[itemName])
	if !s.absent(value) {
		p.Value = s.arguments(value)
	}
	return s.others(at.Start, functionWords)
}

func (s *scanner) itemResultPiece(p *Block, at Span, form itemForm, v *itemValues) (extra []byte) {
	p.CallID, p.IsError = s.itemResultID(v), s.isText(v[itemStatus], "failed")
	p.Custom = s.isText(v[itemType], "custom_tool_call_output")
	output := v[itemOutput]
	switch {
	case form.tool == "":
		p.Content = s.pieces(nil, output, s.responsesPiece)
		return s.others(at.Start, resultWords)
	case form.tool == "computer" && s.is(output, '{'):
		p.Content = []Block{s.responsesPiece(output)}
	case s.is(output, '"'):
		p.Content = s.pieces(nil, output, nil)
	case !s.absent(output):
		p.Content = []Block{{Kind: Text, Text: rawjson.Quote(nil, output.Of(s.body))}}
	}
	return nil
}

// itemThought reads reasoning.
func (s *scanner) itemThought(p *Block, v *itemValues) {
	var texts [][]byte
	for _, array := range [...]Span{v[itemSummary], v[itemContent]} {
		if !s.is(array, '[') {
			continue
		}
		for element := range rawjson.Elements(s.body, array.Start) {
			if text := s.responsesValues(element)[responsesText]; s.is(text, '"') {
				texts = append(texts, text.Of(s.body))
			}
		}
	}
	if len(texts) > 0 {
		p.Text = joinLines(texts)
	}
	if encrypted := v[itemEncrypted]; !s.empty(encrypted) {
		p.Signature = encrypted.Of(s.body)
	}
}

// responsesPiece reads a block of a message or of an output.
func (s *scanner) responsesPiece(block Span) Block {
	v := s.responsesValues(block)
	p := Block{Kind: s.responsesKind(&v), Raw: block.Of(s.body)}
	switch p.Kind {
	case Text:
		p.Text, p.Refusal = s.words(&v).Of(s.body), s.isText(v[responsesType], "refusal")
	case Image:
		p.Media = Media{ID: s.literal(v[responsesFileID]), Detail: s.literal(v[responsesDetail])}
		s.openAIURL(&p.Media, v[responsesImageURL])
	case File:
		p.Media = s.responsesFile(&v)
	}
	return p
}

func (s *scanner) responsesFile(v *[responsesMembers]Span) Media {
	if s.isText(v[responsesType], "input_audio") {
		return s.audio(v[responsesAudio])
	}
	m := Media{ID: s.literal(v[responsesFileID]), Name: s.literal(v[responsesFilename]), URL: s.literal(v[responsesFileURL])}
	if !s.openAIData(&m, v[responsesFileData]) {
		m.Data = s.literal(v[responsesFileData])
	}
	return m
}
