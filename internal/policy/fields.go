package policy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"iter"
	"reflect"
)

// field describes one leaf of a policy for the parser, the published schema and docs/policy.md.
type field struct {
	Low    float64  `json:"low"`
	High   float64  `json:"high"`    // of the range of a number
	OrZero bool     `json:"or_zero"` // 0 is allowed, too, and switches the limit off
	Bytes  int      `json:"bytes"`   // the longest text, or the longest of each in a list; 0: maxNameBytes
	Empty  bool     `json:"empty"`   // a text may be empty
	Line   bool     `json:"line"`    // a text must be one line
	Names  []string `json:"names"`   // the values that a template may name
	Needs  string   `json:"needs"`   // the value that it must name
	Does   string   `json:"does"`
}

//go:embed fields.json
var fieldsText []byte

// fields describes every leaf of a policy, by its JSON pointer.
var fields = readFields()

func readFields() (all map[string]field) {
	decoder := json.NewDecoder(bytes.NewReader(fieldsText))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		panic(err) // the file is embedded
	}
	for pointer, f := range all {
		if f.Bytes == 0 {
			f.Bytes = maxNameBytes
			all[pointer] = f
		}
	}
	return all
}

// span names the range of a number; it is empty for other fields.
func (f field) span() string {
	if f.Low == f.High {
		return ""
	}
	span := " from " + decimal(f.Low) + " to " + decimal(f.High)
	if f.OrZero {
		span += ", or 0"
	}
	return span
}

// How large a policy may be. It is in every answer about its session and is parsed by every compaction.
const (
	maxBytes     = 64 << 10
	maxListed    = 1_000 // in one list
	maxNameBytes = 128   // of one name
	maxTools     = 2_000 // tools in a table, those of the profile included
)

// MaxLineBytes is the longest that a line in place of a result is, as JSON: in characters, which in ASCII are bytes.
const MaxLineBytes = 256

// choices lists the values of the types that have only some.
var choices = map[reflect.Type][]string{
	reflect.TypeFor[Tokenizer](): stringsOf(Estimate, O200k, CL100k, Chars4, JSONChars4, Bytes4, Runes4),
	reflect.TypeFor[ToolTable](): stringsOf(CommonTools, LLMProxyTools),
	reflect.TypeFor[Operation](): stringsOf(Operations...),
	reflect.TypeFor[Identity]():  stringsOf(ByArguments, ByResource, ByFields),
	reflect.TypeFor[Category]():  stringsOf(Rereadable, NonReproducible, Ephemeral, Computational),
	reflect.TypeFor[Style]():     stringsOf(Sections, CodeliaPrompt, FalaiPrompt, CortexPrompt),
	reflect.TypeFor[Speaker]():   stringsOf(SystemSpeaks, UserSpeaks, AssistantSpeaks, ToolSpeaks),
	reflect.TypeFor[Fallback]():  stringsOf(ExtractInstead, KeepInstead, DropInstead),
}

func stringsOf[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// choicesOf lists the values that a leaf may have. It returns nil if the leaf may have any.
func choicesOf(t reflect.Type, pointer string) []string {
	if pointer == "/profile" {
		return profileNames
	}
	return choices[t]
}

// eachField yields the fields of a policy that hold no fields themselves, by JSON pointer and in their order.
func eachField(of reflect.Value, pointer string) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) { walkFields(of, pointer, yield) }
}

func walkFields(v reflect.Value, pointer string, yield func(string, reflect.Value) bool) bool {
	if v.Kind() != reflect.Struct {
		return yield(pointer, v)
	}
	for i, name := range fieldsOf(v.Type()) {
		if !walkFields(v.Field(i), pointer+"/"+name, yield) {
			return false
		}
	}
	return true
}

func fieldsOf(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}
