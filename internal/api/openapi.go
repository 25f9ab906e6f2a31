package api

import (
	"net/http"
	"sync"

	"github.com/varve-dev/varve/internal/api/openapi"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/policy"
)

// description returns the description of the API, made at the first request for it.
var description = sync.OnceValues(func() (*openapi.Document, error) { return openapi.Load(policy.Schema()) })

var (
	yamlType = []string{"application/yaml"}
	htmlType = []string{"text/html; charset=utf-8"}

	// The description is public, and changes with the process only.
	publicCaching = []string{"public, max-age=300"}
)

// describe answers with a form of the description.
func describe(kind []string, form func(*openapi.Document) []byte) handler {
	return func(req *request.Request) error {
		d, err := description()
		if err != nil {
			return err
		}
		req.W.Header()["Cache-Control"] = publicCaching
		return req.Bytes(http.StatusOK, kind, form(d))
	}
}

// readDocs handles GET /docs: the description as a page. It may load nothing and run nothing; its one style is known by
// its hash.
func (s *Server) readDocs(req *request.Request) error {
	return describe(htmlType, func(d *openapi.Document) []byte {
		h := req.W.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src "+d.Style+"; base-uri 'none'; form-action "+
			"'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		return d.Page
	})(req)
}
