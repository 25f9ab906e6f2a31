package readback

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// The bounds of a pointer.
const (
	maxPointer = 1024
	maxKeys    = 50
	maxKey     = 100 // bytes of a key that is named
)

// Pointer returns the value that a JSON pointer (RFC 6901) names in a result that is JSON, "" for all of it. Content is
// its text as it was written, as far as maxBytes allows; Bytes reads on at NextOffset.
//
// Errors: InvalidError for what is no JSON, and for a pointer to nothing, which says what is there.
func Pointer(ctx context.Context, of *persist.Content, pointer string, maxBytes int) (*protocol.JSONValue, error) {
	if err := checkBytes(&maxBytes); err != nil {
		return nil, err
	}
	if len(pointer) > maxPointer || pointer != "" && pointer[0] != '/' {
		return nil, session.Invalid("pointer", invalidRequest, `must be "" or begin with "/", and have at most %d `+
			`bytes, not %q`, maxPointer, spelling.Shorten(pointer))
	}
	value, err := jsonOf(ctx, of)
	if err != nil {
		return nil, err
	}
	w := walk{value: value, at: rawjson.Value(value)}
	for pointer != "" {
		token, rest := pointer[1:], ""
		if i := strings.IndexByte(token, '/'); i >= 0 {
			token, rest = token[:i], token[i:]
		}
		if err := w.step(token); err != nil {
			return nil, err
		}
		w.path += "/" + token
		pointer = rest
	}
	a := w.answer(maxBytes)
	a.TotalBytes, a.TotalLines = of.Size(), of.Lines()
	return a, nil
}

// jsonOf returns a content that is JSON.
func jsonOf(ctx context.Context, of *persist.Content) ([]byte, error) {
	if of.Size() > maxJSON {
		return nil, session.Invalid("pointer", invalidRequest, "the result has %d bytes, a pointer reads results of "+
			"at most %d: grep it, or read its lines or bytes", of.Size(), maxJSON)
	}
	value, err := of.All(ctx)
	if err != nil {
		return nil, err
	}
	var wrong *rawjson.SyntaxError
	if errors.As(rawjson.Check(value, rawjson.Limits{}), &wrong) {
		return nil, session.Invalid("pointer", invalidRequest, "the result is not JSON (%s): grep it, or read its "+
			"lines", wrong)
	}
	return value, nil
}

// walk goes through a JSON value by the tokens of a pointer.
type walk struct {
	value []byte
	at    rawjson.Span
	path  string
}

// unescape replaces ~1 and ~0 in a token.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// step goes to a member or an element.
func (w *walk) step(token string) error {
	for i := 0; i < len(token); i++ {
		if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
			return session.Invalid("pointer", invalidRequest, `a "~" in %q must be written ~0, and a "/" in a key ~1`,
				spelling.Shorten(token))
		}
	}
	switch w.value[w.at.Start] {
	case '{':
		return w.member(unescape.Replace(token))
	case '[':
		return w.element(token)
	}
	return session.Invalid("pointer", invalidRequest, "%s is a %s, which has nothing inside", w.here(), w.kind())
}

func (w *walk) member(name string) error {
	found := rawjson.Span{}
	for key, at := range rawjson.Members(w.value, w.at.Start) {
		if rawjson.KeyIs(w.value, key, name) {
			found = at
		}
	}
	if found != (rawjson.Span{}) {
		w.at = found
		return nil
	}
	keys, n := w.keys()
	more := ""
	if n > len(keys) {
		more = fmt.Sprintf(" and %d more", n-len(keys))
	}
	return session.Invalid("pointer", invalidRequest, "%s has no key %q: it has %d: %s%s", w.here(),
		spelling.Shorten(name), n, strings.Join(keys, ", "), more)
}

// element goes to an element of an array.
func (w *walk) element(token string) error {
	wanted, err := strconv.Atoi(token)
	canonical := err == nil && strconv.Itoa(wanted) == token && wanted >= 0
	n := 0
	for at := range rawjson.Elements(w.value, w.at.Start) {
		if canonical && n == wanted {
			w.at = at
			return nil
		}
		n++
	}
	return session.Invalid("pointer", invalidRequest, "%s is an array of %d elements, from 0 on: it has no %q",
		w.here(), n, spelling.Shorten(token))
}

// here names the value.
func (w *walk) here() string {
	if w.path == "" {
		return "the whole value"
	}
	return spelling.Shorten(w.path)
}

// keys returns the first keys of the object, and how many there are.
func (w *walk) keys() (keys []string, n int) {
	for key := range rawjson.Members(w.value, w.at.Start) {
		if n++; n <= maxKeys {
			name, _ := rawjson.Unquote(nil, key.Of(w.value))
			if len(name) > maxKey {
				name = append(wholeChars(name, maxKey), "…"...)
			}
			keys = append(keys, string(name))
		}
	}
	return keys, n
}

func (w *walk) kind() string {
	switch w.value[w.at.Start] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

func (w *walk) answer(maxBytes int) *protocol.JSONValue {
	text := w.at.Of(w.value)
	piece := wholeChars(text, maxBytes)
	a := &protocol.JSONValue{
		Pointer: w.path, Type: w.kind(), Offset: int64(w.at.Start), Bytes: len(text), Content: string(piece),
		Truncated: len(piece) < len(text),
	}
	if a.Truncated {
		a.NextOffset = new(a.Offset + int64(len(piece)))
	}
	switch a.Type {
	case "object":
		keys, n := w.keys()
		a.Keys, a.Length = keys, &n
	case "array":
		n := 0
		for range rawjson.Elements(w.value, w.at.Start) {
			n++
		}
		a.Length = &n
	}
	return a
}
