package api

import (
	"bufio"
	"errors"
	"net/http"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/session"
)

// exportSession is GET /v1/sessions/{id}/export.
func (s *Server) exportSession(x *exchange) error {
	at, err := x.addressAlone()
	if err != nil {
		return err
	}
	found, err := s.Store.ExportSession(x.ctx, at)
	if err != nil {
		return err
	}
	return s.export(x, func(e *exporter) error { return e.session(found) })
}

// exportTenant is GET /v1/export.
func (s *Server) exportTenant(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	policy, err := s.Store.TenantPolicy(x.ctx, x.tenant)
	if err != nil {
		return err
	}
	return s.export(x, func(e *exporter) error {
		if err := e.Tenant(policy.Patch); err != nil {
			return err
		}
		return e.sessions()
	})
}

// stepTimeout bounds one step of an answer, or of a body, that has no bound as a whole.
const stepTimeout = time.Minute

// exporter writes an archive as an answer. What goes wrong behind the first bytes cuts the answer off: it then has no
// manifest.
type exporter struct {
	*archive.Writer
	s *Server
	x *exchange
}

var archiveType = []string{archive.MediaType}

// export answers with an archive, as it is written. Only the request's end ends it early.
func (s *Server) export(x *exchange, write func(*exporter) error) error {
	x.ctx = x.r.Context()
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"], h["Vary"] = archiveType, noStore, []string{"Accept-Encoding"}
	if x.r.Method == http.MethodHead {
		return nil
	}
	out, closeOut := bufio.NewWriterSize(x.w, 64<<10), func() error { return nil }
	if acceptsZstd(x.r.Header["Accept-Encoding"]) {
		h.Set("Content-Encoding", "zstd")
		packed, err := zstd.NewWriter(x.w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		if err != nil {
			return err
		}
		out, closeOut = bufio.NewWriterSize(packed, 64<<10), packed.Close
	}
	e := &exporter{s: s, x: x}
	var err error
	if e.Writer, err = archive.Begin(out); err == nil {
		err = write(e)
	}
	if err == nil {
		_, err = e.Close()
	}
	if err == nil {
		err = x.sent(errors.Join(out.Flush(), closeOut()))
	}
	return err
}

// exportPage is how many sessions are read at a time: each is as it was when its page was read.
const exportPage = 100

func (e *exporter) sessions() error {
	page := session.Page{Limit: exportPage}
	for {
		found, err := e.s.Store.ExportSessions(e.x.ctx, e.x.tenant, page)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, each := range found {
			if err := e.session(each); err != nil {
				return err
			}
		}
		last := found[len(found)-1]
		page.Time, page.ID = last.CreatedAt, last.Key.Key
	}
}

// session writes a session, unless it has been erased since it was read. Its first messages are read before its first
// line is written: only a session of many messages can be erased between its lines, which ends the export.
func (e *exporter) session(found session.Exported) error {
	messages, err := e.s.Store.ExportMessages(e.x.ctx, found, 1)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.Session(found); err != nil {
		return err
	}
	for len(messages) > 0 {
		e.x.writeBy(time.Now().Add(stepTimeout))
		for i := range messages {
			if err := e.Message(&messages[i]); err != nil {
				return err
			}
		}
		if messages, err = e.s.Store.ExportMessages(e.x.ctx, found, messages[len(messages)-1].Seq+1); err != nil {
			return err
		}
	}
	return e.End(found.LastSeq)
}
