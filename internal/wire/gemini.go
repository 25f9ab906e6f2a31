package wire

import (
	"fmt"
	"strconv"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

var geminiNames = []string{"role", "parts"}

// gemini reads a content. Its role is what was sent, "model" for the assistant; one without a role is the user's.
func (s *scanner) gemini(top int) {
	var v [2]Span
	s.pick(top, geminiNames, v[:])
	if s.absent(v[0]) {
		s.facts.Role = "user"
	} else {
		s.role(v[0])
	}
	s.facts.StartsUnit = true
	ids := functionIDs{}
	i := 0
	s.geminiParts(v[1], func(part Span) {
		s.geminiPart(i, part, ids)
		i++
	})
}

// geminiParts is content, where a single part may stand without its array.
func (s *scanner) geminiParts(at Span, add func(part Span)) {
	if s.is(at, '{') {
		add(at)
		return
	}
	s.content(at, add)
}

func (s *scanner) geminiPart(i int, raw Span, ids functionIDs) {
	kind, v := s.geminiBlock(raw)
	switch kind {
	case Text:
		s.text(raw, v[geminiText])
	case Reasoning:
		s.add(Part{Kind: Reasoning, Raw: raw, Value: v[geminiText], Tokens: s.later(v[geminiText])})
	case Call:
		f := s.geminiFunction(v[geminiCall])
		part := Part{Kind: Call, Raw: raw, Value: f[functionArgs], Name: s.name(f[functionName])}
		part.CallID = s.geminiCallID(i, "functionCall", &f, ids)
		part.Tokens = s.tokens(f[functionName]) + s.tokens(part.Value)
		s.add(part)
	case Result:
		s.geminiResult(i, raw, v[geminiResponse], ids)
	case Image, File:
		s.add(Part{Kind: kind, Raw: raw, Tokens: s.blobTokens(v[geminiInline])})
	default:
		s.opaque(raw)
	}
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

// geminiBlock reads a part. A part has one member that says what it is; should it have two, the first of those that are
// looked for here counts.
func (s *scanner) geminiBlock(raw Span) (Kind, [geminiMembers]Span) {
	var v [geminiMembers]Span
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

// pickEither is pick of members that have two names: that of the first half of names, or that of the second.
func (s *scanner) pickEither(start int, names []string, values []Span) {
	var both [2 * geminiMembers]Span
	s.pick(start, names, both[:len(names)])
	for i := range values {
		if values[i] = both[i]; values[i] == (Span{}) {
			values[i] = both[len(values)+i]
		}
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

// functionPrefix begins the ids that are made of a function's name.
const functionPrefix = "function:"

// functionIDs counts the calls, and the results, of one content that have no id, by the id that stands for it.
type functionIDs map[string]int

// geminiCallID makes an id where there is none, which is so with most models before Gemini 3: that of a legacy
// function_call, "function:" and the name. Google pairs calls of one name in one content by their order: from the
// second on, its number is a part of the id.
func (s *scanner) geminiCallID(i int, member string, f *[functionMembers]Span, ids functionIDs) string {
	pointer := func(of string) string { return fmt.Sprintf("/parts/%d/%s/%s", i, member, of) }
	if id := s.callID(f[functionID], func() string { return pointer("id") }); id != "" || s.err != nil {
		return id
	}
	id := s.functionCallID(s.name(f[functionName]), pointer("name"))
	key := member + id
	ids[key]++
	if n := ids[key]; n > 1 {
		id += "#" + strconv.Itoa(n)
	}
	if len(id) > session.MaxCallIDBytes {
		s.fail(pointer("name"), "the id of a call that is made of its name has %d bytes, at most %d are possible", len(id), session.MaxCallIDBytes)
	}
	return id
}

func (s *scanner) geminiResult(i int, raw, at Span, ids functionIDs) {
	f := s.geminiFunction(at)
	part := Part{Kind: Result, Raw: raw, Name: s.name(f[functionName])}
	part.Value, part.IsError = s.response(f[functionResult])
	part.CallID = s.geminiCallID(i, "functionResponse", &f, ids)
	if s.is(f[functionParts], '[') {
		part.Tokens = s.tokens(part.Value)
		for element := range rawjson.Elements(s.body, f[functionParts].Start) {
			_, v := s.geminiBlock(element)
			part.Tokens += s.blobTokens(v[geminiInline])
		}
		s.facts.Flags |= FlagImage | FlagResultNotText
		s.add(part)
	} else {
		s.result(part)
	}
	s.facts.StartsUnit = s.facts.StartsUnit && s.facts.Role != "user" && s.facts.Role != "function"
}

// response finds what can be replaced of a functionResponse's response: the text, if it is an object of one member that
// is one ({"output": …}, {"result": …}), else the whole of it. Whoever puts a text in the place of an object writes
// {"output": …}.
func (s *scanner) response(at Span) (value Span, failed bool) {
	if s.absent(at) {
		return Span{}, false
	}
	if !s.is(at, '{') {
		return at, false
	}
	value = at
	members, says := 0, Span{}
	for key, inner := range rawjson.Members(s.body, at.Start) {
		if members++; members == 1 && s.is(inner, '"') {
			value = inner
		}
		if rawjson.KeyIs(s.body, key, "error") {
			says = inner
		}
	}
	if members == 1 {
		return value, !s.absent(says) && !s.is(says, 'f')
	}
	return at, !s.empty(says) && !s.is(says, 'f')
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

// blobTokens is the cost of an image or a file of inlineData: by its size if it is an image, and in the message.
func (s *scanner) blobTokens(at Span) int {
	v := s.blob(at)
	if s.mediaKind(v[blobType]) != Image || !s.is(v[blobData], '"') {
		return tokens.Unknown
	}
	return geminiImage(tokens.Measure(standardBase64(s.plain(v[blobData]))))
}

// Gemini's cost of a picture: so much a tile. A small one is a tile; the tiles of others have two thirds of their shorter
// side, within bounds, and a large one is scaled down.
const (
	tileCost   = 258
	smallSide  = 384
	tileLeast  = 256
	tileMost   = 768
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
	tile := max(tileLeast, min(tileMost, min(w, h)*2/3))
	tiles := func(side int) int { return min(tilesASide, (side+tile-1)/tile) }
	return tiles(w) * tiles(h) * tileCost
}
