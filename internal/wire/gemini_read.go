package wire

import (
	"bytes"
	"fmt"
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
// What other formats can express and a content cannot:
//
//	arguments that are no object       {"input": …}, also the free text of a custom tool
//	texts of a result                  one text, a line each: {"output": "…"}, or {"error": "…"} if the tool failed
//	images and files of a result       a content of the user after the results; only newer models take them inside
//	results before what the user says  a separate content, all results of a turn in one
//	reasoning of other providers       a thought without signature; of one that is sealed a note
//	a speaker's name, a file's name    a note in front
//	anything that is Opaque            its JSON as a text
//
// {"input": …} stays an object when it is read again: many tools have a parameter of that name.

// The members of a content.
const (
	geminiRole = iota
	geminiParts
	contentMembers
)

var geminiNames = []string{"role", "parts"}

// gemini reads a content. Its role is what was sent, "model" for the assistant; one without a role is the user's.
func (s *scanner) gemini(top int) {
	var v [contentMembers]Span
	s.pickMessage(top, geminiNames, v[:])
	if s.absent(v[geminiRole]) {
		s.facts.Role = "user"
	} else {
		s.role(v[geminiRole])
	}
	s.facts.StartsUnit = true
	r := geminiReader{scanner: s, ids: functionIDs{}}
	if parts := v[geminiParts]; s.is(parts, '{') { // a single part may come without its array
		r.part(parts)
		if s.ir != nil {
			s.ir.message().Blocks[0].Edited = true
		}
	} else {
		s.content(parts, r.part)
	}
	s.setGeminiRole(v[geminiRole])
}

func (s *scanner) setGeminiRole(at Span) {
	s.setRole(at)
	if s.ir == nil {
		return
	}
	n := s.ir.message()
	switch s.facts.Role {
	case "model":
		n.Role = Assistant
		n.Name = nil
	case "function":
		n.Role = User
		n.Name = nil
	}
	s.setResultRole()
}

// geminiReader reads the parts of a content, one after another.
type geminiReader struct {
	*scanner
	i   int // the number of the part
	ids functionIDs
}

// The members of a part that Varve gives a meaning to. Google's own clients write them either way.
const (
	geminiText = iota
	geminiThought
	geminiCall
	geminiResponse
	geminiInline
	geminiFile
	geminiSignature
	geminiMembers
)

var geminiPartNames = []string{
	"text", "thought", "functionCall", "functionResponse", "inlineData", "fileData", "thoughtSignature",
	"text", "thought", "function_call", "function_response", "inline_data", "file_data", "thought_signature",
}

type geminiValues = [geminiMembers]Span

// part reads a part. A block of one that the API would refuse is Edited from the beginning, so that it is written as
// the API requires it if its content must be written again.
func (r *geminiReader) part(raw Span) {
	kind, v := r.geminiBlock(raw)
	beside := r.ir != nil && kind != Text && kind != Reasoning && r.is(v[geminiText], '"')
	if beside {
		text := r.ir.add(Text)
		text.Text = r.value(v[geminiText])
		text.Edited = true
	}
	var b *Block
	switch kind {
	case Text:
		b = r.text(raw, v[geminiText])
	case Reasoning:
		b = r.add(Part{Kind: Reasoning, Raw: raw, Value: v[geminiText], Tokens: r.later(v[geminiText])})
	case Call:
		b = r.call(raw, v[geminiCall])
	case Result:
		b = r.response(raw, v[geminiResponse])
	case Image, File:
		b = r.add(Part{Kind: kind, Raw: raw, Tokens: r.blobTokens(v[geminiInline])})
		r.geminiMedia(b, &v)
	default:
		b = r.opaque(raw)
		r.bareText(b, raw)
	}
	if b != nil {
		b.Signature = r.value(v[geminiSignature])
		b.Thought = r.is(v[geminiThought], 't')
		b.Edited = b.Edited || beside
	}
	r.i++
}

// geminiBlock reads a part. A part has one member of data; if it has two, the first of those that are looked for here
// counts.
func (s *scanner) geminiBlock(raw Span) (Kind, geminiValues) {
	var v geminiValues
	if !s.is(raw, '{') {
		return Opaque, v
	}
	s.pickEither(raw.Start, geminiPartNames, v[:])
	switch {
	case s.is(v[geminiCall], '{'):
		return Call, v
	case s.is(v[geminiResponse], '{'):
		return Result, v
	case s.is(v[geminiInline], '{'):
		return s.blobKind(v[geminiInline]), v
	case s.is(v[geminiFile], '{'):
		return s.blobKind(v[geminiFile]), v
	case !s.is(v[geminiText], '"'):
		return Opaque, v
	case s.is(v[geminiThought], 't'):
		return Reasoning, v
	}
	return Text, v
}

// pickEither looks up members that have two names, one in each half of names, as pick does.
func (s *scanner) pickEither(start int, names []string, values []Span) {
	var both [2 * geminiMembers]Span
	s.pick(start, names, both[:len(names)])
	for i := range values {
		if values[i] = both[i]; values[i] == (Span{}) {
			values[i] = both[len(values)+i]
		}
	}
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

// The members of a functionCall and a functionResponse.
const (
	functionID = iota
	functionName
	functionArgs
	functionResult
	functionParts
	functionMembers
)

var geminiFunctionNames = []string{"id", "name", "args", "response", "parts"}

func (s *scanner) geminiFunction(at Span) (v [functionMembers]Span) {
	s.pick(at.Start, geminiFunctionNames, v[:])
	return v
}

func (r *geminiReader) call(raw, at Span) *Block {
	f := r.geminiFunction(at)
	part := Part{Kind: Call, Raw: raw, Value: f[functionArgs], Name: r.toolName(f[functionName])}
	part.CallID = r.functionID("functionCall", &f)
	part.Tokens = r.tokens(f[functionName]) + r.tokens(part.Value)
	b := r.add(part)
	if b == nil {
		return nil
	}
	b.Name = r.literal(f[functionName])
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
func (r *geminiReader) functionID(member string, f *[functionMembers]Span) string {
	pointer := func(of string) string { return fmt.Sprintf("/parts/%d/%s/%s", r.i, member, of) }
	if id := r.callID(f[functionID], func() string { return pointer("id") }); id != "" || r.err != nil {
		return id
	}
	id := r.functionCallID(r.name(f[functionName]), pointer("name"))
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
	f := r.geminiFunction(at)
	part := Part{Kind: Result, Raw: raw, Name: r.toolName(f[functionName])}
	part.Value, part.IsError = r.responseValue(f[functionResult])
	part.CallID = r.functionID("functionResponse", &f)
	r.facts.StartsUnit = r.facts.StartsUnit && r.facts.Role != "user" && r.facts.Role != "function"
	parts := f[functionParts]
	switch {
	case r.ir != nil:
		return r.responseBlock(part, &f)
	case r.is(parts, '['):
		part.Tokens = r.tokens(part.Value)
		r.facts.Flags |= FlagImage | FlagResultNotText
		return r.result(part, parts, r.shownPart)
	}
	return r.result(part, part.Value, r.shownPart)
}

// responseBlock adds the block of what a tool returned: a text, and the images and files that are its parts.
func (r *geminiReader) responseBlock(part Part, f *[functionMembers]Span) *Block {
	b := r.add(part)
	b.Name = r.literal(f[functionName])
	b.Edited = !r.absent(f[functionResult]) && !r.is(f[functionResult], '{')
	if text := r.responseText(f[functionResult]); text != nil {
		b.Content = append(b.Content, Block{Format: b.Format, Kind: Text, Text: text})
	}
	if r.is(f[functionParts], '[') {
		r.resultContent(b, f[functionParts], r.shownPart)
	}
	return b
}

// shownPart reads a part of a functionResponse, which is an image or a file.
func (r *geminiReader) shownPart(raw Span) {
	kind, v := r.geminiBlock(raw)
	if kind != Image && kind != File {
		r.opaque(raw)
		return
	}
	b := r.add(Part{Kind: kind, Raw: raw, Tokens: r.blobTokens(v[geminiInline])})
	r.geminiMedia(b, &v)
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
	switch {
	case s.empty(at) || string(at.Of(s.body)) == "{}":
		return nil
	case s.is(at, '"'):
		return at.Of(s.body)
	case !s.is(at, '{'):
		return rawjson.Quote(nil, at.Of(s.body))
	}
	only := Span{}
	members := 0
	for key, value := range rawjson.Members(s.body, at.Start) {
		if members++; members == 1 && keyIndex(s.body, key, responseNames) >= 0 {
			only = value
		}
	}
	switch {
	case members > 1 || only == Span{}:
		return rawjson.Quote(nil, at.Of(s.body))
	case s.empty(only):
		return nil
	case s.is(only, '"'):
		return only.Of(s.body)
	}
	return rawjson.Quote(nil, only.Of(s.body))
}

// The members of inlineData and fileData.
const (
	blobType = iota
	blobData
	blobURI
	blobName
	blobMembers
)

var blobNames = []string{"mimeType", "data", "fileUri", "displayName", "mime_type", "data", "file_uri", "display_name"}

func (s *scanner) blob(at Span) (v [blobMembers]Span) {
	if s.is(at, '{') {
		s.pickEither(at.Start, blobNames, v[:])
	}
	return v
}

func (s *scanner) blobKind(at Span) Kind { return s.mediaKind(s.blob(at)[blobType]) }

// geminiMedia reads inlineData or fileData. It does nothing if b is nil.
func (s *scanner) geminiMedia(b *Block, v *geminiValues) {
	if b == nil {
		return
	}
	at := v[geminiInline]
	if !s.is(at, '{') {
		at = v[geminiFile]
	}
	blob := s.blob(at)
	m := Media{Type: s.literal(blob[blobType]), URL: s.literal(blob[blobURI]), Name: s.literal(blob[blobName])}
	if m.Data = s.literal(blob[blobData]); m.Data != nil {
		if data := standardBase64(s.plain(blob[blobData])); !bytes.Equal(data, m.Data[1:len(m.Data)-1]) {
			m.Data = rawjson.Quote(nil, data)
		}
	}
	b.Media = m
}

// blobTokens returns the cost of an image or a file of inlineData: by its size if it is an image, and in the message.
func (s *scanner) blobTokens(at Span) int {
	if s.ir != nil {
		return tokens.Unknown
	}
	v := s.blob(at)
	if s.mediaKind(v[blobType]) != Image || !s.is(v[blobData], '"') {
		return tokens.Unknown
	}
	return geminiImage(tokens.Measure(standardBase64(s.plain(v[blobData]))))
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
