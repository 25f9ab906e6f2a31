package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// createImport handles POST /v1/imports: the body is imported while it arrives.
func (s *Server) createImport(req *request.Request) error {
	q := req.Query()
	from := q.Choice("from", ingest.Sources()...)
	id := q.Text("session", "")
	f := &ingest.Feed{First: 1}
	readFeed(q, f)
	if problem := session.CheckID(id); id != "" && problem != "" {
		q.Wrong("session", request.InvalidRequest, "the session's id %s", problem)
	}
	if err := req.Err(); err != nil {
		return err
	}
	key := ""
	if id := req.Idempotency(); id != nil {
		key = id.Key
	}
	begun, err := req.Store.BeginImport(req.Ctx, req.Tenant, key, from, id)
	if err != nil {
		return err
	}
	return s.feedImport(req, f, begun)
}

// resumeImport handles POST /v1/imports/{import}: the rest of the lines, or the next lines.
func (s *Server) resumeImport(req *request.Request) error {
	q := req.Query()
	f := &ingest.Feed{First: q.Integer("from_line", 1, maxImportLine, 1)}
	readFeed(q, f)
	if err := req.Err(); err != nil {
		return err
	}
	found, err := req.Store.ResumeImport(req.Ctx, req.Tenant, req.PathID("import"))
	if err != nil {
		return err
	}
	return s.feedImport(req, f, found)
}

// readFeed reads what both requests say of their body.
func readFeed(q *request.Query, f *ingest.Feed) {
	f.More, f.Strict = q.Flag("more"), q.Flag(strictParameter)
	f.Settings = []byte(q.Text("settings", ""))
	f.Branch = q.Text("branch", "")
}

// maxImportLine bounds the numbers of lines.
const maxImportLine = 1 << 40

// feedImport writes the request's body into an import, and answers with the import as it is then.
func (s *Server) feedImport(req *request.Request, f *ingest.Feed, i session.Import) error {
	end, err := s.quotas.Account(req.Ctx, req.Tenant).Import()
	if err != nil {
		return err
	}
	defer end()
	req.Ctx = req.Base
	req.W.Header().Set("Location", "/v1/imports/"+i.ID.String())
	f.Import = i
	f.Store, f.Cold = req.Store, s.thawer
	f.Writers = s.writers
	f.Tenant = req.Tenant
	f.CPU = admit.Processors{Gate: s.CPU, Tenant: req.Tenant}
	f.ChangedBy = req.KeyDigest
	f.Stopping = s.draining.Load
	f.BodyBytes, f.BodyLines = s.ImportBytes, s.ImportLines
	body, err := req.File()
	if err == nil {
		defer body.Close()
		err = f.Run(req.Ctx, body)
	}
	if err != nil {
		s.pauseImport(req, f.Import, err)
		req.Drain()
		return err
	}
	return answerImport(req, f.Import, i.State.Ended())
}

// pauseImport records why an import waits for its lines. The request may be gone; a request that took the import over
// decides its state.
func (s *Server) pauseImport(req *request.Request, i session.Import, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Ctx), requestTimeout)
	defer cancel()
	why := failureOf(cause).Detail
	gone := req.R.Context().Err() != nil || errors.Is(cause, io.ErrUnexpectedEOF)
	if gone || errors.Is(cause, context.Canceled) || errors.Is(cause, request.ErrClientGone) {
		why = "the client hung up before the last line: send the rest of the lines"
	}
	if !i.State.Ended() {
		_, _ = req.Store.EndAttempt(ctx, req.Tenant, i, session.ImportQueued, why)
	}
}

func importOf(i session.Import) protocol.Import {
	a := protocol.Import{Import: i, Progress: protocol.ImportProgress{Done: i.Done, Total: i.Total, Unit: "lines"}}
	if i.Source != "" {
		a.From = &i.Source
	}
	if i.Session != "" {
		a.Session = &i.Session
	}
	return a
}

// readImport handles GET /v1/imports/{import}.
func (s *Server) readImport(req *request.Request) error {
	wait := req.Query().Seconds("wait", maxWait)
	if err := req.Err(); err != nil {
		return err
	}
	look := func() (session.Import, error) { return req.Store.Import(req.Ctx, req.Tenant, req.PathID("import")) }
	found, err := look()
	if err == nil && wait > 0 {
		up := time.Now().Add(wait)
		ctx, cancel := req.Extend(up)
		defer cancel()
		req.Ctx = ctx
		idle := func(i session.Import) bool { return i.State != session.ImportRunning }
		found, err = request.Until(ctx, &s.waiter, req.Tenant, found.ID, found, up, idle, look)
	}
	return request.AnswerFound(req, found, err, importOf)
}

// listImports handles GET /v1/imports.
func (s *Server) listImports(req *request.Request) error {
	find := func(l *request.List) ([]session.Import, error) {
		return req.Store.Imports(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last session.Import) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "imports", find, importOf, place)
}

// lineOutcomes are the values of outcome; "" is every line.
var lineOutcomes = []string{
	"", string(session.LineCreated), string(session.LineExists), string(session.LineStored),
	string(session.LineDuplicate),
	string(session.LineChecked), string(session.LineSkipped), string(session.LineRejected),
}

// listImportLines handles GET /v1/imports/{import}/lines.
func (s *Server) listImportLines(req *request.Request) error {
	q := req.Query()
	limit := int(q.Integer("limit", 1, session.MaxMessagePage, defaultMessages))
	r := session.ImportedRange{
		From: q.Integer("from", 1, maxImportLine,
			1), Limit: limit + 1, Outcome: session.LineOutcome(q.Choice("outcome", lineOutcomes...)),
	}
	if err := req.Err(); err != nil {
		return err
	}
	found, err := req.Store.ImportLines(req.Ctx, req.Tenant, req.PathID("import"), r)
	if err != nil {
		return err
	}
	page := protocol.ImportLines{Data: found[:min(limit, len(found))], HasMore: len(found) > limit}
	if page.HasMore {
		page.Next = &found[limit].N
	}
	return req.JSON(http.StatusOK, page)
}

// answerImport answers a request that sent lines to an import: 202 while the import waits for more.
func answerImport(req *request.Request, i session.Import, replayed bool) error {
	status := http.StatusAccepted
	switch {
	case replayed:
		req.W.Header().Set("Idempotent-Replayed", "true")
		status = http.StatusOK
	case i.State.Ended():
		status = http.StatusCreated
	}
	return req.JSON(status, importOf(i))
}
