package api

import (
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
)

// listSummaryModels handles GET /v1/models/summaries: the language models that a policy may name.
func (s *Server) listSummaryModels(req *request.Request) error {
	a := protocol.List[protocol.SummaryModel]{Object: "list", Data: []protocol.SummaryModel{}}
	for _, name := range *s.writers {
		m, _ := s.Caller.Models.Named(name)
		a.Data = append(a.Data, protocol.SummaryModel{
			ID: name, Provider: string(m.Kind), Model: m.Model, WindowTokens: m.Window, MaxOutputTokens: m.MaxOutput,
			Price: protocol.Price{Input: m.Price.Input, Cached: m.Price.Cached, Output: m.Price.Output},
		})
	}
	return req.JSON(http.StatusOK, a)
}
