// Package spelling has the parts of error messages about a caller's document: which name a misspelt one probably means,
// what kind of JSON was sent, a shortened quotation and an escaped JSON pointer. It is pure.
//
// Start at Hint.
package spelling

import (
	"fmt"
	"strings"
)

// Hint returns the end of a message about an unknown name: `: did you mean "target"?`, or the names that are known.
func Hint(given string, known []string) string {
	if name, ok := Closest(given, known); ok {
		return fmt.Sprintf(": did you mean %q?", name)
	}
	if len(known) == 0 {
		return ": there are none"
	}
	return ": there are " + strings.Join(known, ", ")
}

// Closest returns the known name that given probably means; ok is false if all are too far. A name may be up to two
// edits away, or a third of the longer name, but never more than half of it. Of equally near names it returns the
// first.
func Closest(given string, known []string) (name string, ok bool) {
	nearest := 0
	for _, candidate := range known {
		longer := max(len(given), len(candidate))
		n := Distance(given, candidate)
		if 2*n <= longer && n <= max(2, longer/3) && (!ok || n < nearest) {
			name, ok = candidate, true
			nearest = n
		}
	}
	return name, ok
}

// maxShown is how many bytes of a caller's text an error message repeats.
const maxShown = 100

// Shorten returns text cut to 100 bytes of whole characters and an ellipsis.
func Shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// KindOf returns the kind of the JSON value that begins with first, with its article: "an object", "null".
func KindOf(first byte) string {
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

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// EscapePointer returns a name as a token of a JSON pointer (RFC 6901).
func EscapePointer(name string) string { return pointerEscapes.Replace(name) }

// Distance returns how many bytes must be changed, added or removed to turn a into b. For an a more than twice as long
// as b it returns a's length at once, so that a hostile name costs nothing.
func Distance(a, b string) int {
	if len(a) > 2*len(b)+maxShort {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// maxShort is the length up to which a name is compared with even the shortest one.
const maxShort = 16
