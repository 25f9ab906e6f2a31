package resource

import (
	"crypto/sha256"

	"github.com/varve-dev/varve/internal/rawjson"
)

// omittedValue replaces a member's value.
const omittedValue = `"[omitted]"`

// Omitted is a member of a call's arguments, or of a result, whose value was replaced.
type Omitted struct {
	Field  string
	Bytes  int      // of the value
	SHA256 [32]byte // of what was measured
}

// OmitLarge appends an object with "[omitted]" for each value that is larger than overBytes, unless keep, which may be
// nil, returns true for the field. The size and the hash of a string are those of its text, of other values those of
// their JSON; but null and false have the size 0, and true 1. With onlySmaller no value becomes longer. All other
// bytes, and texts that are not a JSON object, do not change.
func OmitLarge(
	dst, object []byte, keep func(field string) bool, overBytes int, onlySmaller bool,
) (out []byte, omitted []Omitted) {
	shortest := overBytes
	if onlySmaller {
		shortest = max(shortest, len(omittedValue))
	}
	return Omit(dst, object, func(field string, value []byte) (content []byte, size int, large bool) {
		if len(value) <= shortest || keep != nil && keep(field) {
			return nil, 0, false
		}
		if value[0] == '"' {
			value, _ = rawjson.Unquote(make([]byte, 0, len(value)), value)
		}
		size = len(value)
		switch string(value) { // which are small, whatever overBytes is
		case "null", "false":
			size = 0
		case "true":
			size = 1
		}
		return value, size, size > overBytes
	})
}

// Omit does what OmitLarge does with another measure of a field's JSON value: large means that the value is replaced,
// size is what the result reports, and content is hashed.
func Omit(
	dst, object []byte, measure func(field string, value []byte) (content []byte, size int, large bool),
) (out []byte, omitted []Omitted) {
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
