package wire

import (
	"bytes"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// The media types of a persisted result.
const (
	textMediaType = "text/plain; charset=utf-8"
	jsonMediaType = "application/json"
)

// Content is what a tool returned.
type Content struct {
	Text      []byte // decoded UTF-8: a string's text, an array's texts one after another, any other value as written
	Stored    []byte // what is persisted: the text of a string that UTF-8 can express, else the raw JSON value
	MediaType string // of Stored
	OnlyText  bool   // the value is a string or an array of nothing but text blocks
}

// Lines returns how many lines Stored has. A line feed at its end ends the last of them.
func (c *Content) Lines() int {
	lines := bytes.Count(c.Stored, []byte{'\n'})
	if n := len(c.Stored); n > 0 && c.Stored[n-1] != '\n' {
		lines++
	}
	return lines
}

// ResultText returns the content of the result p, the zero Content if it has none. It may alias body.
func ResultText(f session.Format, body []byte, p Part) Content {
	value := p.Value.Of(body)
	switch {
	case len(value) == 0:
		return Content{}
	case value[0] == '"':
		text, ok := rawjson.Unquote(make([]byte, 0, len(value)), value)
		if !ok {
			return Content{Text: text, Stored: value, MediaType: jsonMediaType, OnlyText: true}
		}
		return Content{Text: text, Stored: text, MediaType: textMediaType, OnlyText: true}
	case value[0] == '[':
		text, only := blockTexts(f, body, p.Value)
		return Content{Text: text, Stored: value, MediaType: jsonMediaType, OnlyText: only}
	}
	return Content{Text: value, Stored: value, MediaType: jsonMediaType}
}

// blockTexts joins the texts of an array of blocks; only is false if it holds anything else.
func blockTexts(f session.Format, body []byte, array Span) (text []byte, only bool) {
	s := scanner{body: body}
	only = true
	for element := range s.elements(array) {
		at, isText := blockText(f, &s, element)
		if isText {
			text, _ = rawjson.Unquote(text, at.Of(body))
		}
		only = only && isText
	}
	return text, only
}

// blockText returns the text of a block of a result, if it is one.
func blockText(f session.Format, s *scanner, element Span) (at Span, isText bool) {
	block := s.object(element)
	kind, at := block.at("type"), block.at("text")
	isText = s.equals(kind, "text") && s.is(at, '"')
	if f == session.OpenAIResponses {
		isText = s.responsesKind(&block) == Text
	}
	if isText && s.equals(kind, "refusal") {
		at = block.at("refusal")
	}
	return at, isText
}

// Mixed is a result that has text and images or other media.
type Mixed struct {
	Before, After string // around a text that replaces its texts: its array with one block of that text, then its media
	TextTokens    int    // the estimate of its texts
}

// MixedResult returns the parts of a result that has text and media; ok is false for other results.
func MixedResult(f session.Format, value []byte) (m Mixed, ok bool) {
	if len(value) == 0 || value[0] != '[' || f == session.AISDK {
		return m, false // the output of a tool of the AI SDK is any JSON
	}
	var media []byte
	s := scanner{body: value}
	for element := range s.elements(Span{End: len(value)}) {
		if text, isText := blockText(f, &s, element); isText {
			m.TextTokens += s.tokens(text)
		} else {
			media = append(append(media, ','), element.Of(value)...)
		}
	}
	kind := "text"
	if f == session.OpenAIResponses {
		kind = "input_text"
	}
	m.Before, m.After = `[{"type":"`+kind+`","text":`, "}"+string(media)+"]"
	return m, m.TextTokens > 0 && len(media) > 0
}

// Edit puts the JSON value With in the place of Span.
type Edit struct {
	Span Span
	With []byte
}

// Replace appends body to dst with the edits made and every other byte as it was. The edits must not overlap.
func Replace(dst, body []byte, edits []Edit) []byte {
	byStart := func(a, b Edit) int { return a.Span.Start - b.Span.Start }
	if !slices.IsSortedFunc(edits, byStart) {
		edits = slices.SortedFunc(slices.Values(edits), byStart)
	}
	end := 0
	for _, e := range edits {
		dst = append(dst, body[end:e.Span.Start]...)
		dst = append(dst, e.With...)
		end = e.Span.End
	}
	return append(dst, body[end:]...)
}
