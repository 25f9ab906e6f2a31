package wire

import (
	"bytes"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// tool writes a call with its result, nil for none, as one part.
func (w *uiWriter) tool(dst []byte, call, result *Block) []byte {
	if w.own(call) && w.says(call.Raw, result) {
		return append(dst, call.Raw...)
	}
	dst = appendToolName(append(dst, '{'), call.Name)
	dst = rawjson.Quote(append(dst, `,"toolCallId":`...), []byte(call.CallID))
	value := call.Value
	if value == nil {
		value = []byte("{}")
	}
	dst = append(append(dst, `,"input":`...), value...)
	dst = w.state(dst, call, result)
	if call.Format != w.target {
		return append(appendGoogleSignature(dst, "callProviderMetadata", call), '}')
	}
	return append(appendMembers(dst, call.Raw, func(name string) bool { return !slices.Contains(writtenOfTool, name) }), '}')
}

// says reports whether a tool part of this format says that its call has the result.
func (w *uiWriter) says(raw []byte, result *Block) bool {
	if result == nil {
		return !toolDone(raw)
	}
	return w.own(result) && bytes.Equal(raw, result.Raw)
}

func toolDone(raw []byte) bool {
	s := &scanner{body: raw}
	_, _, done := s.uiOutput(&uiBlock{uiState: s.inner(Span{End: len(raw)}, "state")})
	return done
}

// writtenOfTool are the members of a tool part that are not passed on.
var writtenOfTool = append([]string{"type", "toolCallId", "toolName", "input", "rawInput"}, resultOfTool...)

// resultOfTool are those that say how far the call is.
var resultOfTool = []string{"state", "output", "errorText", "approval", "preliminary"}

// state writes how far a call is.
func (w *uiWriter) state(dst []byte, call, result *Block) []byte {
	ofResult := func(name string) bool { return slices.Contains(resultOfTool, name) }
	switch {
	case result == nil && call.Format == w.target && !toolDone(call.Raw):
		return appendMembers(dst, call.Raw, ofResult)
	case result == nil:
		return append(dst, `,"state":"input-available"`...)
	case w.own(result):
		return appendMembers(dst, result.Raw, ofResult)
	case result.IsError:
		return append(append(dst, `,"state":"output-error","errorText":`...), errorText(result)...)
	}
	return appendOutput(append(dst, `,"state":"output-available","output":`...), result.Content)
}

// appendMembers appends the members of an object whose names are wanted.
func appendMembers(dst, object []byte, wanted func(name string) bool) []byte {
	if object == nil {
		return dst
	}
	for key, value := range rawjson.Members(object, 0) {
		if wanted(string(unquoted(key.Of(object)))) {
			dst = append(append(append(append(dst, ','), key.Of(object)...), ':'), value.Of(object)...)
		}
	}
	return dst
}

// appendToolName appends the type of a tool part: the tool's name is in it if that is of plain characters, else beside.
func appendToolName(dst, name []byte) []byte {
	if name == nil {
		name = []byte(`"unknown"`)
	}
	if inner := name[1 : len(name)-1]; provider.PlainID(string(inner)) {
		return append(append(append(dst, `"type":"tool-`...), inner...), '"')
	}
	return append(append(dst, `"type":"dynamic-tool","toolName":`...), name...)
}

// appendOutput appends what a tool returned: a text, or a list if it is anything else.
func appendOutput(dst []byte, content []Block) []byte {
	switch {
	case len(content) == 0:
		return append(dst, `""`...)
	case len(content) == 1 && content[0].Kind == Text:
		return append(dst, content[0].Text...)
	}
	dst = append(dst, `{"type":"content","value":[`...)
	first := len(dst)
	for i := range content {
		dst = appendOutputPiece(separate(dst, first), &content[i])
	}
	return append(dst, "]}"...)
}

func appendOutputPiece(dst []byte, p *Block) []byte {
	m := &p.Media
	isMedia := p.Kind == Image || p.Kind == File
	switch {
	case isMedia && m.Data != nil:
		dst = append(append(dst, `{"type":"media","mediaType":`...), mediaType(p)...)
		dst = append(append(dst, `,"data":`...), m.Data...)
	case isMedia && m.URL != nil:
		dst = append(append(append(append(dst, `{"type":"`...), p.Kind.String()...), `-url","url":`...), m.URL...)
		if m.Type != nil {
			dst = append(append(dst, `,"mediaType":`...), m.Type...)
		}
	default:
		dst = append(append(dst, `{"type":"text","text":`...), substitute(p)...)
	}
	if isMedia && m.Name != nil && (m.Data != nil || m.URL != nil) {
		dst = append(append(dst, `,"filename":`...), m.Name...)
	}
	return append(dst, '}')
}

// errorText is what a tool that failed said, as one text.
func errorText(result *Block) []byte {
	texts := make([][]byte, len(result.Content))
	for i := range result.Content {
		texts[i] = substitute(&result.Content[i])
	}
	return joinLines(texts)
}
