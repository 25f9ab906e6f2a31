package api

import (
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

const maxPoints = 1000

// readTimeline handles GET /v1/sessions/{id}/timeline: how the log has grown.
func (s *Server) readTimeline(req *request.Request) error {
	points := req.Query().Integer("points", 2, maxPoints, 200)
	if err := req.Err(); err != nil {
		return err
	}
	var found []session.Growth
	err := req.CPU.Do(req.Ctx, req.Tenant, scanWeight, func() (err error) {
		found, err = req.Store.Timeline(req.Ctx, req.Address(), points)
		return err
	})
	return request.AnswerFound(req, protocol.Timeline{Data: found}, err, request.AsIs)
}
