package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

// Gemini contents, as the types Content, Part, FunctionCall, FunctionResponse and Blob of Google's Gen AI SDKs
// (googleapis/go-genai, types.go) have them; snake_case is read, too.
//
//	role user, function, none  User; Tool if there is nothing but functionResponse
//	role model, assistant      Assistant
//	role system, developer     System: the API has a separate systemInstruction; in a log it is
//	                           {"role":"system","parts":[…]}
//	text                       Text; with thought, Reasoning
//	inlineData, fileData       Image if its type begins with image/, else File
//	functionCall               Call; one without an id gets one of its name, and goes out without
//	functionResponse           Result: the text of a response of one member output, result, content, return_value or
//	                           error; of any other response its JSON as a text. Its parts are images and files
//	thoughtSignature           Signature
//	anything else              Opaque
//
// docs/formats.md has what becomes of what other formats can express and this one cannot.

// gemini reads a content. Its role is what was sent, "model" for the assistant; one without a role is the user's.
func (s *scanner) gemini(top Span) {
	s.top = s.object(top)
	v := &s.top
	s.keepOthers(v, "role", "parts")
	if s.absent(v.at("role")) {
		s.facts.Role = "user"
	} else {
		s.role(v.at("role"))
	}
	s.facts.StartsUnit = true
	r := geminiReader{scanner: s, ids: functionIDs{}}
	if parts := v.at("parts"); s.is(parts, '{') { // a single part may come without its array
		r.part(parts)
		if s.ir != nil {
			s.ir.message().Blocks[0].Edited = true
		}
	} else {
		s.content(parts, r.part)
	}
	if s.ir != nil {
		s.setGeminiRole(s.ir.message())
	}
}

func (s *scanner) setGeminiRole(n *Message) {
	switch s.facts.Role {
	case "model":
		n.Role = Assistant
		n.Name = nil
	case "function":
		n.Role = User
		n.Name = nil
	}
	n.setResultRole()
}

// geminiReader reads the parts of a content, one after another.
type geminiReader struct {
	*scanner
	i   int // the number of the part
	ids functionIDs
}

// geminiPart is a part of a content. It has one member of data; if it has two, the first of those that are looked for
// here counts. Google's own clients write the members' names either way.
type geminiPart struct {
	kind      Kind
	data      Span // what the part is: a call, a response, an image, a file; zero for a text
	inline    bool // the data is inlineData
	text      Span
	thought   bool
	signature Span
}

func (s *scanner) geminiPart(raw Span) (p geminiPart) {
	v := s.object(raw)
	p.text = v.at("text")
	p.thought = s.is(v.at("thought"), 't')
	p.signature = v.either("thoughtSignature", "thought_signature")
	inline, file := v.either("inlineData", "inline_data"), v.either("fileData", "file_data")
	call, response := v.either("functionCall", "function_call"), v.either("functionResponse", "function_response")
	switch {
	case s.is(call, '{'):
		p.kind, p.data = Call, call
	case s.is(response, '{'):
		p.kind, p.data = Result, response
	case s.is(inline, '{'):
		p.kind, p.data = s.blobKind(inline), inline
		p.inline = true
	case s.is(file, '{'):
		p.kind, p.data = s.blobKind(file), file
	case !s.is(p.text, '"'):
		p.kind = Opaque
	case p.thought:
		p.kind = Reasoning
	default:
		p.kind = Text
	}
	return p
}

// part reads a part. A block of one that the API would refuse is Edited from the beginning, so that it is written as
// the API requires it if its content must be written again.
func (r *geminiReader) part(raw Span) {
	p := r.geminiPart(raw)
	beside := r.ir != nil && p.kind != Text && p.kind != Reasoning && r.is(p.text, '"')
	if beside {
		text := r.ir.add(Text, false)
		text.Text = r.value(p.text)
		text.Edited = true
	}
	var b *Block
	switch p.kind {
	case Text:
		b = r.text(raw, p.text)
	case Reasoning:
		b = r.reasoning(raw, p.text)
	case Call:
		b = r.functionCall(raw, p.data)
	case Result:
		b = r.response(raw, p.data)
	case Image, File:
		b = r.blob(raw, &p)
	default:
		b = r.opaque(raw)
		r.bareText(b, raw)
	}
	if b != nil {
		b.Signature = r.value(p.signature)
		b.Thought = p.thought
		b.Edited = b.Edited || beside
	}
	r.i++
}

// bareText turns a part that is a bare string into a text, and a part without data into an empty text. It leaves all
// others Opaque.
func (s *scanner) bareText(b *Block, raw Span) {
	switch {
	case b == nil:
	case s.is(raw, '"'):
		b.Kind = Text
		b.Text = raw.Of(s.body)
		b.Edited = true
	case !s.is(raw, '{'):
		b.Edited = true
	default:
		for key := range rawjson.Members(s.body, raw.Start) {
			if !partFacts[string(unquoted(key.Of(s.body)))] {
				return
			}
		}
		b.Kind = Text
		b.Text = []byte(`""`)
		b.Edited = true
	}
}

func (r *geminiReader) functionCall(raw, at Span) *Block {
	v := r.object(at)
	part := Part{Raw: raw, Value: v.at("args"), Name: r.toolName(v.at("name"))}
	part.CallID = r.functionID("functionCall", &v)
	b := r.call(part, v.at("name"))
	if b == nil {
		return nil
	}
	if b.Value == nil {
		b.Value = []byte("{}")
	}
	b.Edited = b.Value[0] != '{'
	return b
}

// functionIDs counts the calls, and the results, of one content that have no id, by the id that replaces it.
type functionIDs map[string]int

// functionID reads an id. Most models before Gemini 3 send none: then it is made as functionCallID does. Google pairs
// calls of one name in one content by their order: from the second on, its number is a part of the id.
func (r *geminiReader) functionID(member string, v *object) string {
	pointer := func(of string) string { return fmt.Sprintf("/parts/%d/%s/%s", r.i, member, of) }
	if id := r.callID(v.at("id"), func() string { return pointer("id") }); id != "" || r.err != nil {
		return id
	}
	id := r.functionCallID(r.name(v.at("name")), pointer("name"))
	key := member + id
	r.ids[key]++
	if n := r.ids[key]; n > 1 {
		id += "#" + strconv.Itoa(n)
	}
	if len(id) > session.MaxCallIDBytes {
		r.fail(pointer("name"), "the id of a call that is made of its name must have at most %d bytes, this one has %d",
			session.MaxCallIDBytes, len(id))
	}
	return id
}

func (r *geminiReader) response(raw, at Span) *Block {
	v := r.object(at)
	part := Part{Kind: Result, Raw: raw, Name: r.toolName(v.at("name"))}
	part.Value, part.IsError = r.responseValue(v.at("response"))
	part.CallID = r.functionID("functionResponse", &v)
	r.facts.StartsUnit = r.facts.StartsUnit && r.facts.Role != "user" && r.facts.Role != "function"
	parts := v.at("parts")
	switch {
	case r.ir != nil:
		return r.responseBlock(part, &v)
	case r.is(parts, '['):
		part.Tokens = r.tokens(part.Value)
		r.facts.Flags |= FlagImage | FlagResultNotText
		return r.result(part, parts, r.shownPart)
	}
	return r.result(part, part.Value, r.shownPart)
}

// responseBlock adds the block of what a tool returned: a text, and the images and files that are its parts.
func (r *geminiReader) responseBlock(part Part, v *object) *Block {
	b := r.resultOf(part, func() {
		if text := r.responseText(v.at("response")); text != nil {
			r.ir.add(Text, true).Text = text
		}
		for shown := range r.elements(v.at("parts")) {
			r.shownPart(shown)
		}
	})
	b.Name = r.literal(v.at("name"))
	b.Edited = !r.absent(v.at("response")) && !r.is(v.at("response"), '{')
	return b
}

// shownPart reads a part of a functionResponse, which is an image or a file.
func (r *geminiReader) shownPart(raw Span) {
	if p := r.geminiPart(raw); p.kind == Image || p.kind == File {
		r.blob(raw, &p)
	} else {
		r.opaque(raw)
	}
}

// responseValue returns what can be replaced of a functionResponse's response: the text if it is an object of one
// member that is one ({"output": …}, {"result": …}), else all of it. An object is replaced by {"output": …}.
func (s *scanner) responseValue(at Span) (value Span, failed bool) {
	if s.absent(at) {
		return Span{}, false
	}
	if !s.is(at, '{') {
		return at, false
	}
	value = at
	problem := Span{}
	members := 0
	for key, inner := range rawjson.Members(s.body, at.Start) {
		if members++; members == 1 && s.is(inner, '"') {
			value = inner
		}
		if rawjson.KeyIs(s.body, key, "error") {
			problem = inner
		}
	}
	if members == 1 {
		return value, !s.absent(problem) && !s.is(problem, 'f')
	}
	return at, !s.empty(problem) && !s.is(problem, 'f')
}

// responseNames are the members that, alone in a response, have no meaning but that they hold the response.
var responseNames = []string{"output", "result", "content", "return_value", "error"}

// responseText returns what a tool returned as a text, nil for nothing.
func (s *scanner) responseText(at Span) []byte {
	if s.is(at, '{') && string(at.Of(s.body)) != "{}" {
		at = s.onlyResponse(at)
	} else if s.is(at, '{') {
		return nil
	}
	switch {
	case s.empty(at):
		return nil
	case s.is(at, '"'):
		return at.Of(s.body)
	}
	return rawjson.Quote(nil, at.Of(s.body))
}

// onlyResponse returns the only member of a response if it has no meaning but that it holds the response, else all of
// the response.
func (s *scanner) onlyResponse(at Span) Span {
	only := at
	members := 0
	for key, value := range rawjson.Members(s.body, at.Start) {
		is := func(name string) bool { return rawjson.KeyIs(s.body, key, name) }
		if members++; members == 1 && slices.ContainsFunc(responseNames, is) {
			only = value
		}
	}
	if members > 1 {
		return at
	}
	return only
}

func (s *scanner) blobKind(at Span) Kind {
	v := s.object(at)
	return s.mediaKind(v.either("mimeType", "mime_type"))
}

// blob adds the image or the file of a part. Its cost is by its size if it is an image, and in the message.
func (s *scanner) blob(raw Span, p *geminiPart) *Block {
	v := s.object(p.data)
	data := v.at("data")
	cost := tokens.Unknown
	if p.kind == Image && p.inline && s.ir == nil && s.is(data, '"') {
		cost = geminiImage(tokens.Measure(standardBase64(s.plain(data))))
	}
	if p.kind == File {
		cost = s.fileTokens(data, s.name(v.either("mimeType", "mime_type")), tokens.CostsOfGoogle)
	}
	return s.media(p.kind, raw, cost, func() Media {
		m := Media{
			Type: s.literal(v.either("mimeType", "mime_type")),
			Data: s.literal(data),
			URL:  s.literal(v.either("fileUri", "file_uri")),
			Name: s.literal(v.either("displayName", "display_name")),
		}
		if m.Data == nil {
			return m
		}
		if standard := standardBase64(s.plain(data)); !bytes.Equal(standard, m.Data[1:len(m.Data)-1]) {
			m.Data = rawjson.Quote(nil, standard)
		}
		return m
	})
}

// Gemini bills an image by tiles. A small one is one tile. A tile of a larger one has two thirds of the image's shorter
// side, within bounds, and a very large one is scaled down.
const (
	tileCost   = 258
	smallSide  = 384
	minTile    = 256
	maxTile    = 768
	tilesASide = 4
)

func geminiImage(size tokens.Pixels) int {
	w, h := size.Width, size.Height
	switch {
	case w <= 0 || h <= 0:
		return tokens.Unknown
	case w <= smallSide && h <= smallSide:
		return tileCost
	}
	tile := max(minTile, min(maxTile, min(w, h)*2/3))
	tiles := func(side int) int { return min(tilesASide, (side+tile-1)/tile) }
	return tiles(w) * tiles(h) * tileCost
}
