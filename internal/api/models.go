package api

import (
	"net/http"
	"strings"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/protocol"
)

// modelAnswer is a model as callers see it, with the window that a session of it has.
type modelAnswer struct {
	models.Model
	WindowTokens int `json:"window_tokens"`
}

// listModels is GET /v1/models: all models that are known, or the one that model names.
func (s *Server) listModels(req *request.Request) error {
	q := req.Query("model")
	if err := q.Err(); err != nil {
		return err
	}
	found := s.Models.Models()
	if q.Values.Has("model") {
		m, ok := s.Models.Find(q.Text("model", ""))
		if !ok {
			unknownModelAt(&q.Document, s.Models, "model", q.Text("model", ""), "GET /v1/models without it lists all that are")
			return q.Err()
		}
		found = []models.Model{m}
	}
	a := protocol.List[modelAnswer]{Object: "list", Data: make([]modelAnswer, len(found))}
	for i, m := range found {
		a.Data[i] = modelAnswer{m, m.Window()}
	}
	return req.JSON(http.StatusOK, a)
}

// windowOf is the window of a model; one that is not known is a problem at pointer.
func windowOf(d *request.Document, known *models.Registry, pointer, model string) (tokens int, ok bool) {
	m, ok := known.Find(model)
	if !ok {
		unknownModelAt(d, known, pointer, model, "send window_tokens with it, or add the model to the file that VARVE_MODELS names; GET /v1/models lists all that are known")
	}
	return m.Window(), ok
}

func unknownModelAt(d *request.Document, known *models.Registry, pointer, model, advice string) {
	suggestion := ""
	if near := known.Near(model, 3); len(near) > 0 {
		suggestion = " (did you mean " + strings.Join(near, " or ") + "?)"
	}
	d.Wrong(pointer, request.UnknownModel, "the window of model %q is not known%s: %s", request.Shorten(model), suggestion, advice)
}
