// Package imports is a feature: files of conversations are written into sessions, exports of Varve and what other
// programs keep, while they arrive.
//
// Start at Feature. http.go has the routes. feed.go writes a body into an import: archive.go reads the lines of an
// export, foreign.go a file of another program. store.go has the SQL of the table imports, store_lines.go and
// store_messages.go store a batch of lines and what became of each, in import_lines.
package imports

import (
	_ "embed"
	"net/http"

	"github.com/varve-dev/varve/internal/feature"
)

//go:embed openapi.yaml
var description []byte

// A body of an import may have this many bytes, unpacked, and lines. What is longer comes in several bodies.
const (
	maxBodyBytes = 16 << 30
	maxBodyLines = 10_000_000
)

// Feature returns what the processes run of imports.
func Feature() feature.Feature { return bounded(maxBodyBytes, maxBodyLines) }

// bounded returns the feature with other bounds for a body.
func bounded(bytes, lines int64) feature.Feature {
	return feature.Feature{
		Description: description,
		Routes:      routes(bytes, lines),
		Errors: []feature.Error{
			{
				Is: errTaken, Code: "import_taken", Status: http.StatusConflict,
				Detail: "another request has taken the import over: GET it to see how far it is",
			},
			{
				Is: errEnded, Code: "import_ended", Status: http.StatusConflict,
				Detail: "the import has ended, and these are more lines than it had: begin a new one",
			},
		},
	}
}
