// Package resource finds out what a tool call is about: what the tool does (OperationOf), the resource of a call
// (Identify, Fields), and the files that it reads or writes (Paths). It replaces large arguments (Omit) and hides
// secrets (Mask). It recognises tools and arguments by their names alone, and is pure.
//
// Start at Identify. Arguments are always the bytes that a format has for them: a JSON object, or the text of a JSON
// string that should be one and may be anything.
package resource

import (
	"strconv"
	"strings"
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
