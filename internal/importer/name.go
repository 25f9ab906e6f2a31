package importer

import (
	"path/filepath"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// packing are the extensions of packed files, which have another before them.
var packing = set(".gz", ".zst", ".zstd")

// SessionID makes a session id from a file's name: its base without the extension, with everything but letters, digits,
// '.', '_' and '-' replaced by '-'.
func SessionID(name string) string {
	base := filepath.Base(name)
	if ext := filepath.Ext(base); packing[ext] {
		base = strings.TrimSuffix(base, ext)
	}
	id := plain(strings.TrimSuffix(base, filepath.Ext(base)))
	if strings.Trim(id, ".-") == "" {
		return "import"
	}
	return id[:min(len(id), session.MaxIDBytes)]
}

// suffixed appends a suffix to an id, and shortens the id if they are too long together.
func suffixed(id, suffix string) string {
	suffix = plain(suffix)
	suffix = suffix[:min(len(suffix), session.MaxIDBytes/2)]
	return id[:min(len(id), session.MaxIDBytes-len(suffix))] + suffix
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, s)
}
