package api

import (
	"bufio"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
)

// The orders of the audit trail.
const (
	newestFirst = "desc"
	oldestFirst = "asc"
)

// listAudit handles GET /v1/audit.
func (s *Server) listAudit(req *request.Request) error {
	q := req.Query()
	f := postgres.TrailFilter{
		Action: audit.Action(q.Text("action", "")), ObjectID: q.Text("object", ""),
		Since: q.Time("since", time.Time{}), Until: q.Time("until", time.Time{}),
		Oldest: q.Choice("order", newestFirst, oldestFirst) == oldestFirst,
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
		return s.Store.Trail(req.Ctx, req.Tenant, f)
	}
	place := func(last audit.Entry) request.Place { return request.Place{Order: last.N} }
	return request.AnswerList(req, name, find, request.AsIs, place)
}

// exportAudit handles GET /v1/audit/export. An answer without its last line, the head of the chain, was cut off.
func (s *Server) exportAudit(req *request.Request) error {
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
	read := func(after, began int64, limit int) (page audit.Page, err error) {
		req.WriteBy(time.Now().Add(request.StepTimeout))
		page, failed = s.Store.TrailPage(req.Ctx, req.Tenant, after, began, limit)
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
