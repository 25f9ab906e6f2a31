// Package upload is a feature: results are uploaded, the full output of a tool, up to 1 GiB, in one request or several,
// before the message exists that names it. A process holds a few MiB of one at a time.
//
// Start at Feature. http.go has the routes, receive.go writes a body to an upload, and text.go makes a whole one a
// result with the text that stands for it in a message. What a request has stored is kept, whatever it is answered, and
// whatever becomes of the process. store.go has the SQL of the table uploads. What reads uploaded results later, and
// what forgets uploads that were given up, is of the core.
package upload

import (
	_ "embed"
	"net/http"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/session"
)

//go:embed openapi.yaml
var description []byte

// Feature returns what the processes run of uploads.
func Feature() feature.Feature {
	return feature.Feature{
		Description: description,
		Routes:      routes,
		Errors: []feature.Error{
			{Is: errOffset, Code: "upload_offset", Status: http.StatusConflict},
			{
				Is: session.ErrWritten, Code: "upload_taken", Status: http.StatusConflict,
				Detail: "another request sends bytes of this upload: GET it to see how far it is",
			},
			{
				Is: errEnded, Code: "upload_ended", Status: http.StatusConflict,
				Detail: "the upload is complete: its result stays as long as its session",
			},
			{Is: errDigest, Code: "digest_mismatch", Status: http.StatusUnprocessableEntity},
			{Is: errTooMany, Code: "too_many_uploads", Status: http.StatusTooManyRequests},
		},
	}
}
