// Package resource knows what a tool call is about: what the tool does (OperationOf), which resource a call asks for
// (Identify, Fields), which files it reads or writes (Paths), how its large arguments are left out (Omit) and how secrets
// in what is said about it are hidden (Mask). It knows tools and arguments by their names alone, and is pure.
//
// Start at Identify. Arguments are always the bytes that a format has for them: a JSON object, or what the JSON string
// of one decodes to, which may be anything.
package resource

import (
	"strconv"
	"strings"
)

// Key says which resource a call asks for. Calls with equal Comparable keys ask for the same one.
type Key struct {
	Tool      string   // as the agent sends it
	Primary   string   // the path, directory, command or query; it may be empty
	Secondary []string // what else tells two calls apart: offset, limit, pattern
}

// Comparable returns a text that two keys share if they are equal: tools whatever their case, the rest exactly.
func (k Key) Comparable() string {
	var id strings.Builder
	for _, part := range append([]string{strings.ToLower(k.Tool), k.Primary}, k.Secondary...) {
		id.WriteString(strconv.Itoa(len(part)))
		id.WriteByte(':')
		id.WriteString(part)
	}
	return id.String()
}
