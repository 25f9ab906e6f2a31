package request

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// MaxProblems is how many problems of one request are reported.
const MaxProblems = 20

// maxTimestampBytes bounds a time as text.
const maxTimestampBytes = 64

// Document is a JSON document of our own shape. Its readers collect everything that is wrong with it.
type Document struct {
	Data     []byte
	Problems []session.Problem
	Warnings []session.Warning // of what is answered nevertheless
}

// Open checks a body as JSON, by the limits of documents that are all our own.
func Open(body []byte) (*Document, error) {
	d := &Document{Data: body}
	return d, d.Check(session.JSONLimits)
}

// Wrong adds a problem.
func (d *Document) Wrong(pointer, code, format string, args ...any) {
	if len(d.Problems) < MaxProblems {
		d.Problems = append(d.Problems, session.Problem{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format,
			args...)})
	}
}

// Warn adds a warning.
func (d *Document) Warn(pointer, code, format string, args ...any) {
	if len(d.Warnings) < MaxProblems {
		d.Warnings = append(d.Warnings, session.Warning{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format,
			args...)})
	}
}

// Add adds the problems of a part that stands at pointer.
func (d *Document) Add(pointer string, err error) {
	var invalid *session.InvalidError
	if !errors.As(err, &invalid) {
		d.Wrong(pointer, InvalidMessage, "%s", err)
		return
	}
	for _, p := range invalid.Problems {
		d.Wrong(pointer+p.Pointer, p.Code, "%s", p.Detail)
	}
}

// Has reports whether there is a problem with the member at pointer itself.
func (d *Document) Has(pointer string) bool {
	return slices.ContainsFunc(d.Problems, func(p session.Problem) bool { return p.Pointer == pointer })
}

// Err returns all problems as one error, nil if there are none. Its code is the one that all problems have, or
// invalid_request if they differ or lie in a policy.
func (d *Document) Err() error {
	if len(d.Problems) == 0 {
		return nil
	}
	code := d.Problems[0].Code
	for _, p := range d.Problems {
		if p.Code != code || strings.Contains(p.Pointer, "/policy/") {
			code = InvalidRequest
			break
		}
	}
	return &session.InvalidError{Code: code, Problems: d.Problems}
}

// Check reports whether the document is one JSON value within limits.
func (d *Document) Check(limits rawjson.Limits) error {
	if len(d.Data) == 0 {
		return session.Invalid("", InvalidJSON, "the body is empty: send a JSON object")
	}
	return session.CheckJSON("", d.Data, limits)
}

// Fields yields the members of the whole document: see Members.
func (d *Document) Fields(known []string) iter.Seq2[string, rawjson.Span] {
	return func(yield func(string, rawjson.Span) bool) { d.members("", rawjson.Value(d.Data), known, yield) }
}

// Members yields the members of the object at value by their names. Members that are not known or that come twice are
// problems: a body must not mean different things to different readers.
func (d *Document) Members(pointer string, value rawjson.Span, known []string) iter.Seq2[string, rawjson.Span] {
	return func(yield func(string, rawjson.Span) bool) { d.members(pointer, value, known, yield) }
}

// members yields the members to a loop. It is a function of its own so that Fields and Members are inlined, and their
// loops allocate nothing.
func (d *Document) members(pointer string, value rawjson.Span, known []string, yield func(string, rawjson.Span) bool) {
	if d.Data[value.Start] != '{' {
		d.Wrong(pointer, InvalidRequest, "must be an object, not %s", d.Kind(value))
		return
	}
	seen := 0
	for key, member := range rawjson.Members(d.Data, value.Start) {
		i := slices.IndexFunc(known, func(name string) bool { return rawjson.KeyIs(d.Data, key, name) })
		switch {
		case i < 0:
			d.unknown(pointer, key, known)
		case seen&(1<<i) != 0:
			d.Wrong(pointer+"/"+known[i], InvalidJSON, "the member %q appears twice", known[i])
		default:
			seen |= 1 << i
			if !yield(known[i], member) {
				return
			}
		}
	}
}

func (d *Document) unknown(pointer string, key rawjson.Span, known []string) {
	text, _ := rawjson.Unquote(nil, key.Of(d.Data))
	name := spelling.Shorten(string(text))
	d.Wrong(pointer+"/"+spelling.EscapePointer(name), UnknownField, "%q is not known here%s", name, spelling.Hint(name,
		known))
}

// Kind names the kind of a value.
func (d *Document) Kind(value rawjson.Span) string { return spelling.KindOf(d.Data[value.Start]) }

// IsNull reports whether a value is null.
func (d *Document) IsNull(value rawjson.Span) bool { return d.Data[value.Start] == 'n' }

// Text reads a string of at most maxBytes that PostgreSQL can store: no NUL, no lone surrogates.
func (d *Document) Text(pointer string, value rawjson.Span, maxBytes int) (text string, ok bool) {
	if d.Data[value.Start] != '"' {
		d.Wrong(pointer, InvalidRequest, "must be a string, not %s", d.Kind(value))
		return "", false
	}
	b, whole := rawjson.Unquote(nil, value.Of(d.Data))
	switch {
	case !whole:
		d.Wrong(pointer, InvalidRequest, "the string must not contain half of a surrogate pair")
	case bytes.IndexByte(b, 0) >= 0:
		d.Wrong(pointer, InvalidRequest, "the string must not contain a NUL character")
	case len(b) > maxBytes:
		d.Wrong(pointer, InvalidRequest, "the string has %d bytes: the limit is %d", len(b), maxBytes)
	default:
		return string(b), true
	}
	return "", false
}

// Name reads a name that is shown to people.
func (d *Document) Name(pointer string, value rawjson.Span) string {
	name, ok := d.Text(pointer, value, session.MaxIDBytes)
	if err := session.CheckName(name); ok && err != nil {
		d.Wrong(pointer, InvalidRequest, "%s", err)
	}
	return name
}

// Integer reads a whole number from lowest to highest.
func (d *Document) Integer(pointer string, value rawjson.Span, lowest, highest int64) int64 {
	literal := string(value.Of(d.Data))
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil || n < lowest || n > highest {
		d.Wrong(pointer, InvalidRequest, "must be a whole number from %d to %d, not %s", lowest, highest,
			spelling.Shorten(literal))
	}
	return n
}

// Boolean reads true or false.
func (d *Document) Boolean(pointer string, value rawjson.Span) bool {
	literal := string(value.Of(d.Data))
	if literal != "true" && literal != "false" {
		d.Wrong(pointer, InvalidRequest, "must be true or false, not %s", d.Kind(value))
	}
	return literal == "true"
}

// UUID reads an id that is a UUID.
func (d *Document) UUID(pointer string, value rawjson.Span) uuid.UUID {
	text, ok := d.Text(pointer, value, session.MaxIDBytes)
	id, err := uuid.Parse(text)
	if ok && (err != nil || id == uuid.Nil) {
		d.Wrong(pointer, InvalidRequest, "must be a UUID, not %q", spelling.Shorten(text))
	}
	return id
}

// Time reads a time in the form of RFC 3339, nil if it has another form.
func (d *Document) Time(pointer string, value rawjson.Span) *time.Time {
	text, ok := d.Text(pointer, value, maxTimestampBytes)
	if !ok {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		d.Wrong(pointer, InvalidRequest, "must be a time such as 2026-01-31T12:00:00Z, not %q", text)
		return nil
	}
	return &at
}

// Array returns the elements of an array.
func (d *Document) Array(pointer string, value rawjson.Span) (spans []rawjson.Span, ok bool) {
	if d.Data[value.Start] != '[' {
		d.Wrong(pointer, InvalidRequest, "must be an array, not %s", d.Kind(value))
		return nil, false
	}
	for element := range rawjson.Elements(d.Data, value.Start) {
		spans = append(spans, element)
	}
	return spans, true
}

// ReadFormat reads the name of a message format.
func (d *Document) ReadFormat(value rawjson.Span) session.Format {
	text, ok := d.Text("/format", value, session.MaxIDBytes)
	format := session.Format(text)
	if ok && !format.Valid() {
		d.Wrong("/format", InvalidRequest, "format must be %s, not %q", Formats(), spelling.Shorten(text))
	}
	return format
}

// Formats names all formats in a sentence.
func Formats() string {
	names := make([]string, len(session.Formats()))
	for i, f := range session.Formats() {
		names[i] = string(f)
	}
	return strings.Join(names, " or ")
}

// PointerTo returns the pointer to an element of the array at pointer.
func PointerTo(array string, i int) string { return array + "/" + strconv.Itoa(i) }

// Rename moves the problems at one member to another.
func (d *Document) Rename(from, to string) {
	for i, p := range d.Problems {
		if rest, ok := strings.CutPrefix(p.Pointer, from); ok && (rest == "" || rest[0] == '/') {
			d.Problems[i].Pointer = to + rest
		}
	}
}

// The codes that more than one file names. internal/api/errors.go lists all codes with their statuses.
const (
	InvalidJSON    = "invalid_json"
	InvalidRequest = "invalid_request"
	InvalidMessage = "invalid_message"
	OtherFormat    = "other_format"
	NeedsRepair    = "needs_repair"
	UnknownField   = "unknown_field"
	UnknownModel   = "unknown_model"
	TooMany        = "too_many_messages"

	NotFound        = "not_found"
	RequestTimedOut = "request_timeout"
	OutsideRange    = "range_not_satisfiable"
	Unavailable     = "unavailable"
	InternalError   = "internal"
)

// Failure is an error with its code and what the caller should know of it.
type Failure struct {
	Code     string
	Status   int // of a feature's code; 0 for the one that the table of codes has
	Detail   string
	Problems []session.Problem
	Minimum  *int64        // of view_cannot_fit and window_exceeded
	Current  *int64        // of stale_expected_seq and seq_not_reached
	Size     int64         // of range_not_satisfiable: how many bytes there are
	Scope    session.Scope // of scope_missing

	RetryAfter time.Duration // of a 429 or 503; 0 is a second
}

func (f *Failure) Error() string { return f.Code + ": " + f.Detail }

// Fail returns a *Failure.
func Fail(code, format string, args ...any) error {
	return &Failure{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Overlap reads how long what is rotated lives on: the body {"overlap_seconds":…}, which may be absent.
func Overlap(req *Request, fallback, highest time.Duration) (overlap time.Duration, err error) {
	overlap = fallback
	body := req.Body()
	if len(body) == 0 {
		return overlap, nil
	}
	d, err := Open(body)
	if err != nil {
		return 0, err
	}
	for _, value := range d.Fields([]string{"overlap_seconds"}) {
		seconds := d.Integer("/overlap_seconds", value, 0, int64(highest/time.Second))
		overlap = time.Duration(seconds) * time.Second
	}
	return overlap, d.Err()
}

// Names returns names as a part of a sentence.
func Names[T ~string](names []T) string {
	var text []byte
	for i, name := range names {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, name...)
	}
	return string(text)
}
