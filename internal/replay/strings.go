package replay

import (
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
	text string // normalised
	kind Kind
}

// callStrings collects the strings that the arguments of a call use.
type callStrings struct {
	list []used
	edit bool // it replaces a text
}

// stringsOf returns the strings that identify what a call is about. What the call writes, as contents of a file and
// prose, is not among them: the agent makes that up.
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
		if a.text != b.text {
			return strings.Compare(a.text, b.text)
		}
		return int(a.kind) - int(b.kind)
	})
	c.list = slices.CompactFunc(c.list, func(a, b used) bool { return a.text == b.text })
	return c
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
		switch {
		case replaced.MatchString(key):
			c.replaces(v)
		case !written.MatchString(key):
			c.scan(v)
		}
	}
}

func (c *callStrings) add(text string, k Kind) {
	if text = normalised(text); len(text) >= gram {
		c.list = append(c.list, used{text, k})
	}
}

// maxQuoted is how much of a line that an edit replaces is looked for.
const maxQuoted = 100

// replaces adds the lines of a text that an edit replaces.
func (c *callStrings) replaces(text string) {
	c.edit = true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) > maxQuoted {
			line = strings.ToValidUTF8(line[:maxQuoted], "")
		}
		if len(line) >= 12 {
			c.add(line, Quoted)
		}
	}
}

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
