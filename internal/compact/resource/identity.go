package resource

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
)

// The arguments that identify a resource, in the order of llm-interactive-proxy; the first that is a string and not
// blank counts.
var (
	pathFields      = fieldsOf("file_path path AbsolutePath filepath File TargetFile target_file filename")
	directoryFields = fieldsOf("DirectoryPath SearchDirectory directory dir Cwd")
	commandFields   = fieldsOf("command CommandLine cmd Input")
	queryFields     = fieldsOf("Query query pattern SearchPath")

	offsetFields      = fieldsOf("offset start_line StartLine line_offset from_line")
	limitFields       = fieldsOf("limit max_lines MaxLines end_line EndLine num_lines count")
	patternFields     = fieldsOf("Pattern pattern")
	searchPlaceFields = fieldsOf("SearchPath path directory")
)

// fieldIndex has a number for each argument of Identify.
var fieldIndex = map[string]int{}

// fieldsOf returns the numbers of names, and gives new names one.
func fieldsOf(names string) []int {
	var fields []int
	for name := range strings.FieldsSeq(names) {
		if _, ok := fieldIndex[name]; !ok {
			fieldIndex[name] = len(fieldIndex)
		}
		fields = append(fields, fieldIndex[name])
	}
	return fields
}

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
	return identifying{object: o, spans: o.values(fieldIndex)}.key(operation, tool)
}

// identifying has the arguments of one call by their fieldIndex.
type identifying struct {
	object
	spans []rawjson.Span
}

func (a identifying) key(operation, tool string) (Key, bool) {
	if path := a.first(pathFields); path != "" {
		key := Key{Tool: tool, Primary: normalisePath(path)}
		if operation == fileRead || operation == viewFile {
			key.Secondary = a.page()
		}
		return key, true
	}
	if directory := a.first(directoryFields); directory != "" {
		return Key{tool, normalisePath(directory), nonEmpty(a.first(patternFields))}, true
	}
	if command := a.first(commandFields); command != "" {
		return Key{Tool: tool, Primary: program(command)}, true
	}
	query := a.first(queryFields)
	return Key{tool, query, nonEmpty(a.first(searchPlaceFields))}, query != ""
}

// first returns the first of the fields that is a string and not blank, without the blanks around it.
func (a identifying) first(fields []int) string {
	for _, field := range fields {
		if text, ok := a.textAt(a.spans[field]); ok {
			if text = trim(text); text != "" {
				return text
			}
		}
	}
	return ""
}

// page returns which part of a file is read.
func (a identifying) page() []string {
	var page []string
	if offset := a.firstInteger(offsetFields); offset != "" {
		page = append(page, "offset:"+offset)
	}
	if limit := a.firstInteger(limitFields); limit != "" {
		page = append(page, "limit:"+limit)
	}
	return page
}

// firstInteger returns the first of the fields that is an integer.
func (a identifying) firstInteger(fields []int) string {
	for _, field := range fields {
		if integer, ok := a.integer(a.spans[field]); ok {
			return integer
		}
	}
	return ""
}

// integer returns the value at span: an integer, a string of one, or a boolean, which is an integer in Python.
func (a identifying) integer(span rawjson.Span) (string, bool) {
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
