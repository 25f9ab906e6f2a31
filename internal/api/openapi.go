package api

import (
	"net/http"

	"github.com/varve-dev/varve/internal/api/openapi"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/docsite"
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

// readDocs handles GET /docs and /docs/{page}: the documentation. A page may load what is beside it.
func (s *Server) readDocs(req *request.Request) error {
	site, err := s.documentation()
	if err != nil {
		return err
	}
	name, body := "index.html", site.Home
	if page := req.Param("page"); page != "" {
		name, body = page, site.Files[page]
	}
	if body == nil {
		return request.Fail(request.NotFound, "there is no such page; GET /docs lists all")
	}
	h := req.W.Header()
	h["Cache-Control"] = publicCaching
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	return req.Bytes(http.StatusOK, []string{docsite.Type(name)}, body)
}
