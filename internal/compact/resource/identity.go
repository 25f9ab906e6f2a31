// Package resource finds out what a tool call is about: what the tool does (OperationOf), the resource of a call
// (Identify, Fields), and the files that it reads or writes (Paths). It replaces large arguments (Omit) and hides
// secrets (Mask). It recognises tools and arguments by their names alone, and is pure.
//
// Start at Identify. Arguments are always the bytes that a format has for them: a JSON object, or the text of a JSON
// string that should be one and may be anything.
package resource

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Key identifies the resource of a call. Calls with equal Comparable keys have the same resource.
type Key struct {
	Tool      string   // as the agent sends it
	Primary   string   // the path, directory, command or query; it may be empty
	Secondary []string // what else distinguishes calls: offset, limit, pattern
}

// Comparable returns a text that is the same for equal keys. The case of the tool does not count.
func (k Key) Comparable() string {
	var id strings.Builder
	for _, part := range append([]string{strings.ToLower(k.Tool), k.Primary}, k.Secondary...) {
		id.WriteString(strconv.Itoa(len(part)))
		id.WriteByte(':')
		id.WriteString(part)
	}
	return id.String()
}

// Fields returns the key of a call by the arguments that identify it: the tool and the canonical JSON of fields, in
// their order, null for a missing one. Without fields, all calls of the tool have one key if toolOnly, else those with
// equal arguments. ok is false if there are fields but the arguments are not a JSON object.
func Fields(tool string, fields []string, toolOnly bool, arguments []byte) (key string, ok bool) {
	if len(fields) == 0 && toolOnly {
		return tool + "|__tool_only__", true
	}
	if trim(string(arguments)) == "" {
		arguments = []byte("{}")
	}
	o, ok := parse(arguments)
	switch {
	case len(fields) == 0 && ok:
		return tool + "|" + string(rawjson.AppendCanonical(nil, o.data)), true
	case len(fields) == 0:
		return tool + "|" + string(arguments), true
	case !ok:
		return "", false
	}
	return tool + "|" + string(o.pick(fields)), true
}

// pick returns the canonical JSON object of the named members, in the order of names.
func (o object) pick(names []string) []byte {
	members := o.members()
	dst := []byte{'{'}
	for _, name := range names {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.Quote(dst, []byte(name)), ':')
		if span, ok := members[name]; ok {
			dst = rawjson.AppendCanonical(dst, span.Of(o.data))
		} else {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}

// identifying has for each meaning the arguments that identify a resource, see tools.txt.
var identifying = func() map[string][]string {
	all := map[string][]string{}
	for _, meaning := range strings.Fields("path directory command query offset limit pattern place") {
		all[meaning] = argumentsOf(meaning)
	}
	return all
}()

// Identify returns the resource of a call, as llm-interactive-proxy does: a path (and for reads the part of the file),
// a directory (and a pattern), the program of a command, or a query. Arguments that are not a JSON object are the
// resource themselves. ok is false if the call has no resource.
func Identify(operation, tool string, arguments []byte) (key Key, ok bool) {
	if arguments == nil {
		return Key{}, false
	}
	o, ok := parse(arguments)
	if !ok {
		text := trim(string(arguments))
		return Key{Tool: tool, Primary: text}, text != ""
	}
	return sent{object: o, members: o.members()}.key(operation, tool)
}

// sent has the arguments of one call by name.
type sent struct {
	object
	members map[string]rawjson.Span
}

func (a sent) key(operation, tool string) (Key, bool) {
	if path := a.text("path"); path != "" {
		key := Key{Tool: tool, Primary: normalisePath(path)}
		if operation == fileRead || operation == viewFile {
			key.Secondary = a.page()
		}
		return key, true
	}
	if directory := a.text("directory"); directory != "" {
		return Key{tool, normalisePath(directory), nonEmpty(a.text("pattern"))}, true
	}
	if command := a.text("command"); command != "" {
		return Key{Tool: tool, Primary: program(command)}, true
	}
	query := a.text("query")
	return Key{tool, query, nonEmpty(a.text("place"))}, query != ""
}

// text returns the first argument with that meaning that is a string and not blank, without the blanks around it.
func (a sent) text(meaning string) string {
	for _, name := range identifying[meaning] {
		if text, _ := a.textAt(a.members[name]); trim(text) != "" {
			return trim(text)
		}
	}
	return ""
}

// page returns which part of a file is read.
func (a sent) page() (page []string) {
	for _, meaning := range []string{"offset", "limit"} {
		for _, name := range identifying[meaning] {
			if integer, ok := a.integer(a.members[name]); ok {
				page = append(page, meaning+":"+integer)
				break
			}
		}
	}
	return page
}

// integer returns the value at span: an integer, a string of one, or a boolean, which is an integer in Python.
func (a sent) integer(span rawjson.Span) (string, bool) {
	if span.End == 0 {
		return "", false
	}
	if text, ok := a.textAt(span); ok {
		return pythonInteger(text)
	}
	value := string(span.Of(a.data))
	switch value {
	case "true":
		return "True", true
	case "false":
		return "False", true
	default:
		return pythonInteger(value)
	}
}

// pythonInteger returns text, read as by Python's int, as Python's str writes it. Digits may be of any script and have
// single underscores between them.
func pythonInteger(text string) (string, bool) {
	text = trim(text)
	sign := ""
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = strings.Trim(text[:1], "+"), text[1:]
	}
	digits := make([]byte, 0, len(text))
	wasDigit := false
	for _, r := range text {
		value, isDigit := digitValue(r)
		if !isDigit && (r != '_' || !wasDigit) {
			return "", false
		}
		if wasDigit = isDigit; isDigit {
			digits = append(digits, '0'+value)
		}
	}
	if !wasDigit {
		return "", false
	}
	number := strings.TrimLeft(string(digits), "0")
	if number == "" {
		return "0", true
	}
	return sign + number, true
}

// digitValue returns the value of a decimal digit. Unicode has them in rows of ten, from zero to nine.
func digitValue(r rune) (byte, bool) {
	if '0' <= r && r <= '9' {
		return byte(r - '0'), true
	}
	if !unicode.IsDigit(r) {
		return 0, false
	}
	before := rune(0) // how many digits are directly before r
	for unicode.IsDigit(r - before - 1) {
		before++
	}
	return byte(before % 10), true
}

// normalisePath returns a path with slashes, none at its end, and a small drive letter. The root becomes empty.
func normalisePath(path string) string {
	path = strings.TrimRight(strings.ReplaceAll(path, `\`, "/"), "/")
	if drive, size := utf8.DecodeRuneInString(path); size < len(path) && path[size] == ':' {
		return strings.ToLower(string(drive)) + path[size:]
	}
	return path
}

var extension = regexp.MustCompile(`(?i)\.(exe|sh|bat|cmd|ps1)$`)

// program returns the name of the program that a command runs.
func program(command string) string {
	word := command
	if end := strings.IndexFunc(command, blank); end >= 0 {
		word = command[:end]
	}
	word = word[strings.LastIndexAny(word, `/\`)+1:]
	return strings.ToLower(extension.ReplaceAllString(word, ""))
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
