package readback

import (
	"bytes"
	"fmt"
	"mime"

	"github.com/varve-dev/varve/internal/rawjson"
)

// maxJSON is how large a result may be that is read as JSON, which is read whole. A message is smaller in any case.
const maxJSON = 16 << 20

func isJSON(mediaType string) bool {
	kind, _, err := mime.ParseMediaType(mediaType)
	return err == nil && kind == "application/json"
}

// readable returns the texts in a JSON result: that of a string, with U+FFFD for half of a surrogate pair; those
// of an array of blocks, in which a line stands for every other block; or those of an object. It reports false for any
// other value.
func readable(value []byte) (text []byte, ok bool) {
	if rawjson.Check(value, rawjson.Limits{}) != nil {
		return nil, false
	}
	at := rawjson.Start(value)
	switch value[at] {
	case '[':
		return blockTexts(value, at)
	case '{':
		return objectText(value, at)
	case '"':
		text, _ = rawjson.Unquote(nil, rawjson.Value(value).Of(value))
		return text, true
	}
	return nil, false
}

// blockTexts reads an array of blocks, of which at least one must be a text.
func blockTexts(value []byte, start int) (text []byte, ok bool) {
	n := 0
	for element := range rawjson.Elements(value, start) {
		literal := textBlock(value, element)
		switch {
		case literal != nil:
			ok = true
			text, _ = rawjson.Unquote(text, literal)
		default:
			if len(text) > 0 && !bytes.HasSuffix(text, []byte{'\n'}) {
				text = append(text, '\n')
			}
			text = fmt.Appendf(text, "(%s: %d bytes of JSON at the pointer /%d)\n",
				kindOf(value, element), element.End-element.Start, n)
		}
		n++
	}
	return text, ok
}

// textBlock returns the literal of a block's text, nil if it is no block of text.
func textBlock(value []byte, element rawjson.Span) (literal []byte) {
	switch kindOf(value, element) {
	case "text", "input_text", "output_text":
		literal = member(value, element, "text")
	}
	if len(literal) == 0 || literal[0] != '"' {
		return nil
	}
	return literal
}

// kindOf returns the type of a block.
func kindOf(value []byte, element rawjson.Span) string {
	literal := member(value, element, "type")
	if len(literal) == 0 || literal[0] != '"' {
		return "another block"
	}
	text, _ := rawjson.Unquote(nil, literal)
	return string(text)
}

// member returns the last value of a name in an object, nil if there is none.
func member(value []byte, object rawjson.Span, name string) (found []byte) {
	if value[object.Start] != '{' {
		return nil
	}
	for key, at := range rawjson.Members(value, object.Start) {
		if rawjson.KeyIs(value, key, name) {
			found = at.Of(value)
		}
	}
	return found
}

// objectText reads an object that has one text and nothing else but perhaps its type, {"output": "…"}, or a text of
// several lines among its members: then each is written under its name.
func objectText(value []byte, start int) (text []byte, ok bool) {
	members, long := 0, false
	var only []byte
	for key, at := range rawjson.Members(value, start) {
		literal := at.Of(value)
		if rawjson.KeyIs(value, key, "type") {
			continue
		}
		members++
		text, _ = rawjson.Unquote(text, key.Of(value))
		text = append(text, ": "...)
		if literal[0] != '"' {
			only = nil
			text = append(append(text, literal...), '\n')
			continue
		}
		only, _ = rawjson.Unquote(nil, literal)
		if bytes.Contains(only, []byte{'\n'}) {
			long = true
			text = append(text, '\n')
		}
		text = append(append(text, only...), '\n')
	}
	if members == 1 && only != nil {
		return only, true
	}
	return text, long
}
