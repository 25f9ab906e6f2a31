package api

import (
	"errors"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/session"
)

// readHold handles GET /v1/sessions/{id}/hold.
func (s *Server) readHold(req *request.Request) error {
	found, err := erasure.SessionHold(req.Ctx, req.Store, req.Address())
	return request.AnswerFound(req, found, orNoHold(err), request.AsIs)
}

// putHold handles PUT /v1/sessions/{id}/hold. Doing it twice changes nothing.
func (s *Server) putHold(req *request.Request) error {
	reason, err := readReason(req)
	if err != nil {
		return err
	}
	placed, err := erasure.HoldSession(req.Ctx, req.Store, req.Address(), reason)
	return request.AnswerFound(req, placed, err, request.AsIs)
}

// deleteHold handles DELETE /v1/sessions/{id}/hold. Doing it twice changes nothing.
func (s *Server) deleteHold(req *request.Request) error {
	if err := erasure.ReleaseSession(req.Ctx, req.Store, req.Address()); err != nil {
		return err
	}
	req.W.WriteHeader(http.StatusNoContent)
	return nil
}

// readTenantHold handles GET /v1/admin/tenants/{tenant}/hold.
func (s *Server) readTenantHold(req *request.Request) error {
	found, err := erasure.TenantHold(req.Ctx, req.Store, req.Tenant)
	return request.AnswerFound(req, found, orNoHold(err), request.AsIs)
}

// putTenantHold handles PUT /v1/admin/tenants/{tenant}/hold. Doing it twice changes nothing.
func (s *Server) putTenantHold(req *request.Request) error {
	reason, err := readReason(req)
	if err != nil {
		return err
	}
	placed, err := erasure.HoldTenant(req.Ctx, req.Store, req.Tenant, reason)
	return request.AnswerFound(req, placed, err, request.AsIs)
}

// deleteTenantHold handles DELETE /v1/admin/tenants/{tenant}/hold. Doing it twice changes nothing.
func (s *Server) deleteTenantHold(req *request.Request) error {
	if err := erasure.ReleaseTenant(req.Ctx, req.Store, req.Tenant); err != nil {
		return err
	}
	req.W.WriteHeader(http.StatusNoContent)
	return nil
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

// orNoHold returns the error of a hold that there is not.
func orNoHold(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return errNoHold
	}
	return err
}
