package api

import (
	"errors"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/session"
)

// readHold handles GET /v1/sessions/{id}/hold and GET /v1/admin/tenants/{tenant}/hold.
func (s *Server) readHold(req *request.Request) (err error) {
	var found session.Hold
	if ofTenant(req) {
		found, err = erasure.TenantHold(req.Ctx, req.Store, req.Tenant)
	} else {
		found, err = erasure.SessionHold(req.Ctx, req.Store, req.Address())
	}
	if errors.Is(err, session.ErrNotFound) {
		err = errNoHold
	}
	return request.AnswerFound(req, found, err, request.AsIs)
}

// ofTenant reports whether a request is about the legal hold of a tenant, which operators place, and not of a session.
func ofTenant(req *request.Request) bool { return req.Caller.Kind == session.OperatorCaller }

// putHold handles PUT /v1/sessions/{id}/hold and PUT /v1/admin/tenants/{tenant}/hold. Doing it twice changes nothing.
func (s *Server) putHold(req *request.Request) error {
	reason, err := readReason(req)
	if err != nil {
		return err
	}
	var placed session.Hold
	if ofTenant(req) {
		placed, err = erasure.HoldTenant(req.Ctx, req.Store, req.Tenant, reason)
	} else {
		placed, err = erasure.HoldSession(req.Ctx, req.Store, req.Address(), reason)
	}
	return request.AnswerFound(req, placed, err, request.AsIs)
}

// deleteHold handles DELETE /v1/sessions/{id}/hold and DELETE /v1/admin/tenants/{tenant}/hold. Doing it twice changes
// nothing.
func (s *Server) deleteHold(req *request.Request) error {
	if ofTenant(req) {
		return request.AnswerGone(req, erasure.ReleaseTenant(req.Ctx, req.Store, req.Tenant))
	}
	return request.AnswerGone(req, erasure.ReleaseSession(req.Ctx, req.Store, req.Address()))
}

// listHolds handles GET /v1/holds and GET /v1/admin/tenants/{tenant}/holds.
func (s *Server) listHolds(req *request.Request) error {
	find := func(l *request.List) ([]session.ListedHold, error) {
		return erasure.Holds(req.Ctx, req.Store, req.Tenant, l.Page())
	}
	place := func(last session.ListedHold) request.Place { return request.PlaceIn(last.PlacedAt, last.Key) }
	return request.AnswerList(req, "holds", find, request.AsIs, place)
}

// readReason reads why a hold is placed.
func readReason(req *request.Request) (reason string, err error) {
	d, err := request.Open(req.Body())
	if err != nil {
		return "", err
	}
	for _, value := range d.Fields([]string{"reason"}) {
		reason, _ = d.Text("/reason", value, session.MaxHoldReason)
	}
	if reason == "" && d.Err() == nil {
		d.Wrong("/reason", request.InvalidRequest, "must say why nothing may be erased, in 1 to %d bytes",
			session.MaxHoldReason)
	}
	return reason, d.Err()
}
