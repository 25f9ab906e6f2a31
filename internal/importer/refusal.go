package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// UnsupportedError is the error for a file that cannot be imported.
type UnsupportedError struct {
	Found   string // what the file seems to be
	Missing string // what it would need to be more, and where; "" if nothing in it looks like a message
}

// Error returns one line. What can be imported is a long list: it stands in the help and in docs/import.md.
func (e *UnsupportedError) Error() string {
	missing := e.Missing
	if missing == "" {
		missing = "nothing in it looks like a message"
	}
	return fmt.Sprintf("this is %s: %s (varve import --help lists what can be imported)", e.Found, missing)
}

// notImported is what keeps a file that is known from being imported.
const notImported = "such files are not imported"

// notJSON returns the error of a file without a value.
func notJSON(data []byte) *UnsupportedError {
	err := rawjson.Check(data, rawjson.Limits{})
	return &UnsupportedError{
		Found: "not JSON, nor lines of JSON", Missing: fmt.Sprintf("as one JSON value it is wrong at %v", err),
	}
}

// cutOff returns the error of a JSON document that ends early, with what it looks like as far as it goes; nil for any
// other content. Lines of JSON begin with a whole value.
func cutOff(data []byte) error {
	if json.Valid(data) {
		return nil
	}
	var first json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&first); !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	whole := completed(data)
	s := newSample(whole, false)
	sure := firstSource(func(source source) bool { return source.detect(s) })
	looks := cmp.Or(sure.title, foreignKind(s), describe(whole))
	return &UnsupportedError{
		Found: fmt.Sprintf("a JSON document that ends early, after %d bytes on line %d", len(data),
			1+bytes.Count(data, []byte{'\n'})),
		Missing: "the rest is missing; as far as it goes, it looks like " + looks,
	}
}

// completed returns a document that ends early up to its last whole value, with the ends of what is open there. Behind
// that value nothing begins or ends.
func completed(data []byte) []byte {
	var open []byte
	end, quoted := 0, false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			open, end = append(open, c+2), i+1
		case c == '}', c == ']':
			open, end = open[:len(open)-1], i+1
		case c == ',':
			end = i
		}
	}
	slices.Reverse(open)
	return append(data[:end:end], open...)
}

// Kinds returns what can be imported, a line for each source: its name, and what a person calls such files.
func Kinds() string {
	var all strings.Builder
	for _, s := range sources {
		fmt.Fprintf(&all, "  %-18s%s\n", s.name, s.title)
	}
	return all.String()
}

// missing returns what keeps a value from being messages, with the path to it, "" if it has no list of messages.
func missing(s sample) string {
	if s.object == nil {
		return missingIn("", s.messages)
	}
	for _, path := range []string{"request.body.", "request.", "request_params.", "body.", ""} {
		for _, name := range []string{"messages", "contents", "input"} {
			value := s.object.at(path + name)
			list := parseArray(value)
			switch {
			case !has(value) || isString(value):
			case list == nil:
				return fmt.Sprintf("`%s%s` is no array", path, name)
			case len(list) == 0:
				return fmt.Sprintf("`%s%s` is empty", path, name)
			default:
				return missingIn(path+name, list)
			}
		}
	}
	if isMessage(s.object) {
		return missingOf("", s.object)
	}
	return ""
}

// missingIn returns what keeps the first element of a list that is no message from being one.
func missingIn(path string, list [][]byte) string {
	for i, raw := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		o := parseObject(raw)
		if o == nil {
			return fmt.Sprintf("`%s` is no object", at)
		}
		if text := missingOf(at, o); text != "" {
			return text
		}
	}
	return ""
}

// missingOf returns what keeps an object from being a message, "" if nothing does.
func missingOf(at string, o object) string {
	at = strings.TrimPrefix(at+".", ".")
	if !o.has("role") && !o.has("type") && !o.has("parts") {
		return cmp.Or(misfit(at, o), fmt.Sprintf("`%s` has no `role`", strings.TrimSuffix(at, ".")))
	}
	return misfit(at, o)
}

// misfit returns what no message of a format has, "" if there is nothing.
func misfit(at string, o object) string {
	if o.has("role") && !isString(o["role"]) {
		return fmt.Sprintf("`%srole` is no string", at)
	}
	for i, block := range slices.Collect(objects(o["content"])) {
		kind := block.text("type")
		switch {
		case block != nil && !block.has("type"):
			return fmt.Sprintf("`%scontent[%d]` has no `type`", at, i)
		case strings.HasPrefix(kind, "tool-"):
			return fmt.Sprintf("`%scontent[%d]` has the type %s, which none of the formats has", at, i, kind)
		}
	}
	if o.has("parts.0") && !o.has("parts.0.type") && !slices.ContainsFunc(parseArray(o["parts"]), isGeminiPart) {
		return fmt.Sprintf("`%sparts[0]` has no member of a Gemini part, nor the `type` of an AI SDK part", at)
	}
	for i, call := range slices.Collect(objects(o["tool_calls"])) {
		if parseObject(call["function"]) == nil && !call.has("custom") {
			return fmt.Sprintf("`%stool_calls[%d]` has no `function`", at, i)
		}
	}
	return ""
}

func describe(data []byte) string {
	if o := parseObject(data); o != nil {
		return "a JSON object with " + memberList(o)
	}
	if list := parseArray(data); len(list) > 0 {
		if o := parseObject(list[0]); o != nil {
			return "a JSON array of objects with " + memberList(o)
		}
		return "a JSON array whose elements are no objects"
	}
	return "a JSON value that is no object and no list of objects"
}

func memberList(o object) string {
	names := slices.Sorted(maps.Keys(o))
	more := ""
	if len(names) > 6 {
		more = fmt.Sprintf(" and %d more", len(names)-6)
		names = names[:6]
	}
	if len(names) == 0 {
		return "no members"
	}
	return "the members " + strings.Join(names, ", ") + more
}
