package resource

import (
	"crypto/sha256"

	"github.com/varve-dev/varve/internal/rawjson"
)

// omittedValue stands where a member's value was.
const omittedValue = `"[omitted]"`

// Omitted is a member of a call's arguments, or of a result, whose value was left out.
type Omitted struct {
	Field  string
	Bytes  int      // of the value
	SHA256 [32]byte // of what was measured
}

// OmitLarge appends an object with "[omitted]" in the place of each value that is larger than overBytes, unless keep,
// which may be nil, wants the field. A string is as large as its text, anything else as its JSON; the same bytes are
// hashed. No value becomes longer. The rest keeps its bytes, and so does what is no JSON object.
func OmitLarge(dst, object []byte, keep func(field string) bool, overBytes int) (out []byte, omitted []Omitted) {
	return Omit(dst, object, func(field string, value []byte) (content []byte, size int, large bool) {
		if len(value) <= max(len(omittedValue), overBytes) || keep != nil && keep(field) {
			return nil, 0, false
		}
		if value[0] == '"' {
			value, _ = rawjson.Unquote(make([]byte, 0, len(value)), value)
		}
		return value, len(value), len(value) > overBytes
	})
}

// Omit is OmitLarge with a measure of its own: large says whether a field's value, which is given as JSON, has to go, size
// how large it is, and content what is hashed.
func Omit(dst, object []byte, measure func(field string, value []byte) (content []byte, size int, large bool)) (out []byte, omitted []Omitted) {
	o, ok := parseJSON(object)
	if !ok {
		return append(dst, object...), nil
	}
	copied := 0
	for key, value := range rawjson.Members(o.data, o.start) {
		field, _ := o.textAt(key)
		content, size, large := measure(field, value.Of(o.data))
		if !large {
			continue
		}
		omitted = append(omitted, Omitted{field, size, sha256.Sum256(content)})
		dst = append(append(dst, o.data[copied:value.Start]...), omittedValue...)
		copied = value.End
	}
	return append(dst, o.data[copied:]...), omitted
}
