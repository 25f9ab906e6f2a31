package api

import (
	"bufio"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// The orders of the audit trail.
const (
	newestFirst = "desc"
	oldestFirst = "asc"
)

// auditQuery are the parameters of a list of an audit trail.
var auditQuery = append([]string{"action", "object", "actor", "since", "until", "order"}, request.ListQuery...)

// listAudit handles GET /v1/audit, and GET /v1/admin/audit for the operators' own trail.
func (s *Server) listAudit(req *request.Request) error {
	store, tenant := s.trail(req)
	q := req.Query()
	f := postgres.TrailFilter{
		Action: audit.Action(q.Text("action", "")), ObjectID: q.Text("object", ""),
		Since: q.Time("since", time.Time{}), Until: q.Time("until", time.Time{}),
		Oldest: q.Choice("order", newestFirst, oldestFirst) == oldestFirst,
	}
	if q.Values.Has("action") && !slices.Contains(audit.Actions(), f.Action) {
		q.Wrong("action", request.InvalidRequest, "there is no action %q; there are %s",
			spelling.Shorten(string(f.Action)), request.Names(audit.Actions()))
	}
	if text := q.Text("actor", ""); text != "" {
		var err error
		if f.Actor, err = uuid.Parse(text); err != nil {
			q.Wrong("actor", request.InvalidRequest, "must be the id of a key or of a session token, a UUID")
		}
	}
	name := "audit, newest first"
	if f.Oldest {
		name = "audit, oldest first"
	}
	find := func(l *request.List) ([]audit.Entry, error) {
		f.Place, f.Limit = l.After.Order, l.Limit
		return store.Trail(req.Ctx, tenant, f)
	}
	place := func(last audit.Entry) request.Place { return request.Place{Order: last.N} }
	return request.AnswerList(req, name, find, request.AsIs, place)
}

// trail returns whose trail a caller reads: their tenant's, or that of the operators, with the store that has it.
func (s *Server) trail(req *request.Request) (*postgres.Store, uuid.UUID) {
	if req.Caller.Kind == session.OperatorCaller {
		return s.Operators, audit.Operator
	}
	return req.Store, req.Tenant
}

// exportAudit handles GET /v1/audit/export, and GET /v1/admin/audit/export for the operators' own trail. An answer
// without its last line, the head of the chain, was cut off.
func (s *Server) exportAudit(req *request.Request) error {
	store, tenant := s.trail(req)
	after := req.Query().Integer("after", 0, maxAuditRow, 0)
	if err := req.Err(); err != nil {
		return err
	}
	req.Ctx = req.Base
	h := req.W.Header()
	h["Content-Type"] = archiveType
	h["Cache-Control"] = request.NoStore
	if req.R.Method == http.MethodHead {
		return nil
	}
	var failed error
	read := func(after int64, limit int) (page audit.Page, err error) {
		req.WriteBy(time.Now().Add(request.StepTimeout))
		page, failed = store.TrailPage(req.Ctx, tenant, after, limit)
		return page, failed
	}
	out := bufio.NewWriter(req.W)
	err := audit.Copy(out, after, read)
	if failed != nil {
		return failed
	}
	return req.Sent(errors.Join(err, out.Flush()))
}

// maxAuditRow bounds the numbers of rows.
const maxAuditRow = 1 << 53
