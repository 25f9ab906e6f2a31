package api

import (
	"encoding/json"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/protocol"
)

// modelAnswer is a model as callers see it, with the window that a session of it has.
type modelAnswer struct {
	models.Model
	WindowTokens int `json:"window_tokens"` // the window of a session with this model
}

// listModels handles GET /v1/models: all models that are known, or the one that model names.
func (s *Server) listModels(req *request.Request) error {
	q, known := req.Query(), models.Current()
	if all := s.models.Load(); all != nil && all.of == known && !q.Values.Has("model") {
		return req.Bytes(http.StatusOK, request.JSONType, all.body)
	}
	found := known.Models()
	if q.Values.Has("model") {
		m, ok := known.Find(q.Text("model", ""))
		if !ok {
			q.Wrong("model", request.UnknownModel, "%s", ingest.UnknownModel(q.Text("model", ""),
				"GET /v1/models without it lists all that are"))
			return q.Err()
		}
		found = []models.Model{m}
	}
	a := protocol.List[modelAnswer]{Object: "list", Data: make([]modelAnswer, len(found))}
	for i, m := range found {
		a.Data[i] = modelAnswer{m, m.Window()}
	}
	body, err := json.Marshal(a)
	if err == nil && !q.Values.Has("model") {
		s.models.Store(&modelList{known, body})
	}
	if err != nil {
		return err
	}
	return req.Bytes(http.StatusOK, request.JSONType, body)
}

// modelList is the answer that lists all models of a registry: to write it takes milliseconds.
type modelList struct {
	of   *models.Registry
	body []byte
}
