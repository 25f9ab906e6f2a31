package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// createImport is POST /v1/imports: the body is imported while it comes in.
func (s *Server) createImport(x *exchange) error {
	q := x.query("from", "session", "more")
	from := q.choice("from", importSources()...)
	id := q.text("session", "")
	more := q.choice("more", "false", "true") == "true"
	if problem := wrongID(id); id != "" && problem != "" {
		q.d.wrong("session", invalidRequest, "the session's id %s", problem)
	}
	if err := q.err(); err != nil {
		return err
	}
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	begun, err := s.Store.BeginImport(x.ctx, x.tenant, key, from, id)
	if err != nil {
		return err
	}
	return s.feedImport(x, begun, 1, more)
}

// resumeImport is POST /v1/imports/{import}: the rest of the lines, or the next of them.
func (s *Server) resumeImport(x *exchange) error {
	q := x.query("from_line", "more")
	from := q.integer("from_line", 1, maxImportLine, 1)
	more := q.choice("more", "false", "true") == "true"
	if err := q.err(); err != nil {
		return err
	}
	id, err := x.importID()
	if err != nil {
		return err
	}
	found, err := s.Store.ResumeImport(x.ctx, x.tenant, id)
	if err != nil {
		return importMissing(err)
	}
	return s.feedImport(x, found, from, more)
}

// maxImportLine bounds the numbers of lines.
const maxImportLine = 1 << 40

// importSources is what from can be: "" looks at the content.
func importSources() []string {
	names := []string{string(importer.Auto), archive.Source}
	for _, source := range importer.Sources() {
		names = append(names, string(source))
	}
	return names
}

func importOf(i session.Import) protocol.Import {
	a := protocol.Import{
		ID: i.ID, State: string(i.State), Bytes: i.Bytes,
		Progress: protocol.ImportProgress{Done: i.Done, Total: i.Total, Unit: "lines"}, Sessions: i.Sessions, Messages: i.Messages,
		Duplicates: i.Duplicates, Rejected: i.Rejected, Report: i.Report, Error: i.Error,
		CreatedAt: i.CreatedAt.UTC(), UpdatedAt: i.UpdatedAt.UTC(), FinishedAt: utc(i.FinishedAt),
	}
	if i.Source != "" {
		a.From = &i.Source
	}
	if i.Session != "" {
		a.Session = &i.Session
	}
	for _, l := range i.Rejections {
		a.Rejections = append(a.Rejections, importLineOf(l))
	}
	return a
}

func importLineOf(l session.ImportedLine) protocol.ImportLine {
	return protocol.ImportLine{
		N: l.N, Line: l.Line, Outcome: string(l.Outcome), Session: l.Session, Seq: l.Seq, Detail: l.Detail,
	}
}

// importID is the import that the path names.
func (x *exchange) importID() (uuid.UUID, error) {
	id, err := uuid.Parse(x.param("import"))
	if err != nil {
		return id, errNoImport
	}
	return id, nil
}

func importMissing(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return errNoImport
	}
	return err
}

// readImport is GET /v1/imports/{import}.
func (s *Server) readImport(x *exchange) error {
	q := x.query("wait")
	wait := time.Duration(q.integer("wait", 0, maxWait, 0)) * time.Second
	if err := q.err(); err != nil {
		return err
	}
	id, err := x.importID()
	if err != nil {
		return err
	}
	found, err := s.Store.Import(x.ctx, x.tenant, id)
	if err == nil && wait > 0 {
		found, err = s.awaitImport(x, found, time.Now().Add(wait))
	}
	if err != nil {
		return importMissing(err)
	}
	return x.json(http.StatusOK, importOf(found))
}

// importLook is how often a caller who waits for an import has it looked at.
const importLook = 100 * time.Millisecond

// awaitImport looks at an import until no request feeds it any more, or the time is up.
func (s *Server) awaitImport(x *exchange, found session.Import, until time.Time) (_ session.Import, err error) {
	x.ctx = x.r.Context()
	x.writeBy(until.Add(requestTimeout))
	up := time.After(time.Until(until))
	for found.State == session.ImportRunning && !s.draining.Load() {
		select {
		case <-time.After(importLook):
		case <-up:
			return found, nil
		case <-x.ctx.Done():
			return found, x.ctx.Err()
		}
		if found, err = s.Store.Import(x.ctx, x.tenant, found.ID); err != nil {
			return found, err
		}
	}
	return found, nil
}

// listImports is GET /v1/imports.
func (s *Server) listImports(x *exchange) error {
	list := listOf(x, "imports")
	page, err := list.page()
	if err != nil {
		return err
	}
	found, err := s.Store.Imports(x.ctx, x.tenant, page)
	if err != nil {
		return err
	}
	return answerList(list, found, importOf, func(last session.Import) place { return place{last.CreatedAt.UnixMicro(), last.ID} })
}

// lineOutcomes are what lines can be asked for; "" is every one.
var lineOutcomes = []string{
	"", string(session.LineCreated), string(session.LineExists), string(session.LineStored), string(session.LineDuplicate),
	string(session.LineChecked), string(session.LineSkipped), string(session.LineRejected),
}

// listImportLines is GET /v1/imports/{import}/lines.
func (s *Server) listImportLines(x *exchange) error {
	q := x.query("from", "limit", "outcome")
	limit := int(q.integer("limit", 1, session.MaxMessagePage, defaultMessages))
	r := session.ImportedRange{
		From: q.integer("from", 1, maxImportLine, 1), Limit: limit + 1, Outcome: session.LineOutcome(q.choice("outcome", lineOutcomes...)),
	}
	if err := q.err(); err != nil {
		return err
	}
	id, err := x.importID()
	if err != nil {
		return err
	}
	found, err := s.Store.ImportLines(x.ctx, x.tenant, id, r)
	if err != nil {
		return importMissing(err)
	}
	page := protocol.ImportLines{Data: make([]protocol.ImportLine, 0, len(found)), HasMore: len(found) > limit}
	for _, l := range found[:min(limit, len(found))] {
		page.Data = append(page.Data, importLineOf(l))
	}
	if page.HasMore {
		page.Next = &found[limit].N
	}
	return x.json(http.StatusOK, page)
}

// idempotencyKey is the request's Idempotency-Key without a fingerprint, for a body that is not read before it is used.
func (x *exchange) idempotencyKey() (string, error) {
	id, err := x.idempotency(nil)
	if id == nil {
		return "", err
	}
	return id.Key, err
}

// importing answers a request that fed an import: one that has not ended waits for more.
func (x *exchange) importing(i session.Import, replayed bool) error {
	switch {
	case replayed:
		x.w.Header().Set("Idempotent-Replayed", "true")
		return x.json(http.StatusOK, importOf(i))
	case i.State.Ended():
		return x.json(http.StatusCreated, importOf(i))
	}
	return x.json(http.StatusAccepted, importOf(i))
}
