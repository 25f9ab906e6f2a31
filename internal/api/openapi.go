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

// readOpenAPI handles GET /openapi.yaml.
func (s *Server) readOpenAPI(req *request.Request) error {
	d, err := description()
	if err != nil {
		return err
	}
	req.W.Header()["Cache-Control"] = publicCaching
	return req.Bytes(http.StatusOK, yamlType, d.YAML)
}

// readOpenAPIJSON handles GET /openapi.json.
func (s *Server) readOpenAPIJSON(req *request.Request) error {
	d, err := description()
	if err != nil {
		return err
	}
	req.W.Header()["Cache-Control"] = publicCaching
	return req.Bytes(http.StatusOK, request.JSONType, d.JSON)
}

// readDocs handles GET /docs: the description as a page. It may load nothing and run nothing; its one style is known by
// its hash.
func (s *Server) readDocs(req *request.Request) error {
	d, err := description()
	if err != nil {
		return err
	}
	h := req.W.Header()
	h["Cache-Control"] = publicCaching
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+d.Style+"; base-uri 'none'; form-action "+
		"'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	return req.Bytes(http.StatusOK, htmlType, d.Page)
}
