package replay

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Kind is what kind of string a call uses.
type Kind uint8

// The kinds of strings.
const (
	Path   Kind = iota // the last two elements of a path
	ID                 // an id or a symbol
	Quoted             // a text in quotes, or a line that an edit replaces
	Number             // of at least four digits
	kinds
)

var kindNames = [kinds]string{"path", "id", "quoted", "number"}

func (k Kind) String() string { return kindNames[k] }

// used is a string that identifies something and that a call uses.
type used struct {
	text    string // normalised
	kind    Kind
	written bool // it is in what the call writes
}

// callStrings collects the strings that the arguments of a call use.
type callStrings struct {
	list    []used
	edit    bool // it replaces a text
	writing bool // what is being read is what the call writes

	replaced []string // the texts that it replaces
	lines    []int32  // of them
}

// stringsOf returns the strings that identify what a call is about. Of what the call writes, as the contents of a file
// and prose, only the paths are among them: the agent makes up the rest.
func stringsOf(arguments []byte) *callStrings {
	c := &callStrings{}
	if len(arguments) > 0 && arguments[0] == '"' {
		arguments, _ = rawjson.Unquote(nil, arguments)
	}
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		value = string(arguments)
	}
	c.value("", value)
	slices.SortFunc(c.list, func(a, b used) int {
		return cmp.Or(strings.Compare(a.text, b.text), order(a.written, b.written), cmp.Compare(a.kind, b.kind))
	})
	c.list = slices.CompactFunc(c.list, func(a, b used) bool { return a.text == b.text })
	return c
}

// order sorts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// written are the arguments that hold what a call writes or says; replaced those that hold what an edit replaces.
var (
	written = regexp.MustCompile(`(?i)^(contents?|new_?(str|string|text|source)|file_?text|text|thought|description|` +
		`explanation|prompt|message|todos|plan|code|body|reason|patch|input|diff)$`)
	replaced = regexp.MustCompile(`(?i)^(old_?(str|string|text)|search)$`)
)

func (c *callStrings) value(key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			c.value(k, inner)
		}
	case []any:
		for _, inner := range v {
			c.value(key, inner)
		}
	case string:
		if replaced.MatchString(key) {
			c.edit, c.writing = true, false
			c.replaced = append(c.replaced, v)
			c.add(v, Quoted)
			return
		}
		c.writing = written.MatchString(key)
		c.scan(v)
	}
}

func (c *callStrings) add(text string, k Kind) {
	if c.writing && k != Path {
		return
	}
	if text = normalised(text); len(text) >= shortest {
		c.list = append(c.list, used{text, k, c.writing})
	}
}

// shortest is how many bytes a string has at least that is looked for.
const shortest = 4

var (
	inQuotes = regexp.MustCompile("\"([^\"\n]{6,80})\"|'([^'\n]{6,80})'|`([^`\n]{6,80})`")
	words    = regexp.MustCompile(`[\w./@~+#-]{4,}`)
	hexID    = regexp.MustCompile(`^[0-9a-fA-F]{7,}$`)
	uuid     = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f-]{20,}$`)
	mixedID  = regexp.MustCompile(`^[\w-]*[A-Za-z][\w-]*\d[\w-]*$|^[\w-]*\d[\w-]*[A-Za-z][\w-]*$`)
	symbol   = regexp.MustCompile(`^[A-Za-z_]\w*(\.\w+)*$`)
	compound = regexp.MustCompile(`[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]|\w\.\w`)
	digits   = regexp.MustCompile(`^#?\d{4,}$`)
	fileName = regexp.MustCompile(`^[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,5}$`)
)

// scan adds the strings that a text has.
func (c *callStrings) scan(text string) {
	for _, found := range inQuotes.FindAllStringSubmatch(text, -1) {
		quoted := found[1] + found[2] + found[3]
		if strings.Contains(strings.TrimSpace(quoted), " ") {
			c.add(quoted, Quoted)
		}
	}
	for _, word := range words.FindAllString(text, -1) {
		c.word(strings.Trim(word, ".,-+#~"))
	}
}

// word adds a word if it identifies something.
func (c *callStrings) word(w string) {
	switch {
	case digits.MatchString(w):
		c.add(w, Number)
	case strings.Contains(w, "/"):
		elements := strings.FieldsFunc(w, func(r rune) bool { return r == '/' })
		if n := len(elements); n > 1 && len(elements[n-1]) > 1 {
			c.add(strings.Join(elements[n-2:], "/"), Path)
		} else if n == 1 && len(elements[0]) > 5 {
			c.add(elements[0], Path)
		}
	case fileName.MatchString(w) && len(w) >= 5 && !strings.Contains(w, "()"):
		c.add(w, Path)
	case hexID.MatchString(w), uuid.MatchString(w), len(w) >= 6 && mixedID.MatchString(w):
		c.add(w, ID)
	case len(w) >= 6 && symbol.MatchString(w) && compound.MatchString(w):
		c.add(w, ID)
	}
}
