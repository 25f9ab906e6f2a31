// Package docs has the files of the documentation, of which internal/docsite makes the pages at /docs.
package docs

import "embed"

// Files are the pages, and the pictures in them.
//
//go:embed *.md *.png *.svg *.json adr/*.md
var Files embed.FS
