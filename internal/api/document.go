package api

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// maxProblems is how many problems of one request are told.
const maxProblems = 20

// document is one of our own bodies. Reading it collects everything that is wrong with it, to be told at once.
type document struct {
	data     []byte
	problems []session.Problem
}

func (d *document) wrong(pointer, code, format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, session.Problem{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format, args...)})
	}
}

// has reports whether something is wrong with the member at pointer itself.
func (d *document) has(pointer string) bool {
	return slices.ContainsFunc(d.problems, func(p session.Problem) bool { return p.Pointer == pointer })
}

// err is what is wrong with the request as a whole: its detail is that of the first problem, and its code the one that all
// problems have, or invalid_request if they differ, have one of problemCodes, or lie in a policy.
func (d *document) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	first := d.problems[0]
	code := first.Code
	differ := slices.ContainsFunc(d.problems, func(p session.Problem) bool { return p.Code != code })
	if differ || statuses[code] == 0 || slices.ContainsFunc(d.problems, func(p session.Problem) bool { return strings.HasPrefix(p.Pointer, "/policy/") }) {
		code = invalidRequest
	}
	return &session.InvalidError{Code: code, Problems: d.problems}
}

// check says whether the body is one JSON value within limits.
func (d *document) check(limits rawjson.Limits) error {
	if len(d.data) == 0 {
		return session.Invalid("", invalidJSON, "the body is empty: send a JSON object")
	}
	return syntaxProblem("", rawjson.Check(d.data, limits))
}

func syntaxProblem(pointer string, err error) error {
	var syntax *rawjson.SyntaxError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &syntax):
		return err
	case syntax.Limit == "depth":
		return session.Invalid(pointer, "json_too_complex", "nested deeper than %d levels (at byte %d)", session.MaxJSONDepth, syntax.Offset)
	case syntax.Limit != "":
		return session.Invalid(pointer, "json_too_complex", "%s (at byte %d)", syntax.Detail, syntax.Offset)
	}
	return session.Invalid(pointer, invalidJSON, "%s (at byte %d)", syntax.Detail, syntax.Offset)
}

// members yields the members of the object at value by their names. Those that are not known and those that come twice
// are problems: a body whose meaning depends on its reader is refused.
func (d *document) members(pointer string, value rawjson.Span, known []string) iter.Seq2[string, rawjson.Span] {
	return func(yield func(string, rawjson.Span) bool) {
		if d.data[value.Start] != '{' {
			d.wrong(pointer, invalidRequest, "%s is needed, this is %s", "an object", kindOf(d.data[value.Start]))
			return
		}
		seen := 0
		for key, member := range rawjson.Members(d.data, value.Start) {
			i := slices.IndexFunc(known, func(name string) bool { return rawjson.KeyIs(d.data, key, name) })
			switch {
			case i < 0:
				d.unknown(pointer, key, known)
			case seen&(1<<i) != 0:
				d.wrong(pointer+"/"+known[i], invalidJSON, "%s is there twice", known[i])
			default:
				seen |= 1 << i
				if !yield(known[i], member) {
					return
				}
			}
		}
	}
}

func (d *document) unknown(pointer string, key rawjson.Span, known []string) {
	text, _ := rawjson.Unquote(nil, key.Of(d.data))
	name := shorten(string(text))
	d.wrong(pointer+"/"+escapePointer(name), unknownField, "%q is not known here%s", name, suggestion(name, known))
}

// shorten keeps what is repeated to a caller from being as long as what the caller sent.
func shorten(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// suggestion names what was probably meant, or else all that is possible.
func suggestion(name string, known []string) string {
	best, nearest := "", 4
	for _, candidate := range known {
		if n := spelling.Distance(name, candidate); n < nearest && 2*n <= max(len(name), len(candidate)) {
			best, nearest = candidate, n
		}
	}
	if best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	if len(known) == 0 {
		return ": there are none"
	}
	return ": there are " + strings.Join(known, ", ")
}

func kindOf(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// text reads a string of at most so many bytes that PostgreSQL can keep: no NUL, no lone surrogates.
func (d *document) text(pointer string, value rawjson.Span, most int) (text string, ok bool) {
	if d.data[value.Start] != '"' {
		d.wrong(pointer, invalidRequest, "a string is needed, this is %s", kindOf(d.data[value.Start]))
		return "", false
	}
	b, whole := rawjson.Unquote(nil, value.Of(d.data))
	switch {
	case !whole:
		d.wrong(pointer, invalidRequest, "the string holds half of a surrogate pair")
	case bytes.IndexByte(b, 0) >= 0:
		d.wrong(pointer, invalidRequest, "the string holds a NUL character")
	case len(b) > most:
		d.wrong(pointer, invalidRequest, "the string has %d bytes: %d are the most", len(b), most)
	default:
		return string(b), true
	}
	return "", false
}

// integer reads a whole number from least to most.
func (d *document) integer(pointer string, value rawjson.Span, least, most int64) int64 {
	literal := value.Of(d.data)
	n, err := strconv.ParseInt(string(literal), 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		d.wrong(pointer, invalidRequest, "a whole number in digits is needed, this is %s", shorten(string(literal)))
	case err != nil || n < least || n > most:
		d.wrong(pointer, invalidRequest, "%s is out of range: %d to %d are possible", shorten(string(literal)), least, most)
	}
	return n
}

// array finds the elements of an array.
func (d *document) array(pointer string, value rawjson.Span) (spans []rawjson.Span, ok bool) {
	if d.data[value.Start] != '[' {
		d.wrong(pointer, invalidRequest, "an array is needed, this is %s", kindOf(d.data[value.Start]))
		return nil, false
	}
	for element := range rawjson.Elements(d.data, value.Start) {
		spans = append(spans, element)
	}
	return spans, true
}

// readFormat reads the name of a format that we know.
func (d *document) readFormat(value rawjson.Span) session.Format {
	text, ok := d.text("/format", value, session.MaxIDBytes)
	format := session.Format(text)
	if ok && !format.Valid() {
		d.wrong("/format", invalidRequest, "format %q is unknown: say %s", shorten(string(format)), formats())
	}
	return format
}

// formats names all formats in a sentence.
func formats() string {
	names := make([]string, len(session.Formats()))
	for i, f := range session.Formats() {
		names[i] = string(f)
	}
	return strings.Join(names, " or ")
}

// add takes over the problems of a part that stands at pointer.
func (d *document) add(pointer string, err error) {
	var invalid *session.InvalidError
	if !errors.As(err, &invalid) {
		d.wrong(pointer, invalidMessage, "%s", err)
		return
	}
	for _, p := range invalid.Problems {
		d.wrong(pointer+p.Pointer, p.Code, "%s", p.Detail)
	}
}

func pointerTo(array string, i int) string { return array + "/" + strconv.Itoa(i) }
