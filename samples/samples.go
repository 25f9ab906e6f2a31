// Package samples holds the conversations that varve demo shows: long coding sessions, recorded by
// TestRecord on a copy of this repository.
package samples

import "embed"

// Files are the conversations, one a file.
//
//go:embed *.json
var Files embed.FS
