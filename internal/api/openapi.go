package api

import (
	"net/http"

	"github.com/varve-dev/varve/internal/api/openapi"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/policy"
)

// Describe returns the description of the API with some features.
func Describe(features []feature.Feature) (*openapi.Document, error) {
	parts := make([]openapi.Part, len(features))
	for i, f := range features {
		parts[i].Source = f.Description
		for _, e := range f.Errors {
			parts[i].Codes = append(parts[i].Codes, e.Code)
		}
	}
	return openapi.Load(policy.Schema(), parts...)
}

var (
	yamlType = []string{"application/yaml"}
	htmlType = []string{"text/html; charset=utf-8"}

	// The description is public, and changes with the process only.
	publicCaching = []string{"public, max-age=300"}
)

// describe answers with a form of the description, which is made at the first request for it.
func (s *Server) describe(kind []string, form func(*openapi.Document) []byte) handler {
	return func(req *request.Request) error {
		d, err := s.description()
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
	return s.describe(htmlType, func(d *openapi.Document) []byte {
		h := req.W.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src "+d.Style+"; base-uri 'none'; form-action "+
			"'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		return d.Page
	})(req)
}
