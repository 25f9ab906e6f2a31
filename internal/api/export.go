package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/session"
)

// exportSession handles GET /v1/sessions/{id}/export.
func (s *Server) exportSession(req *request.Request) error {
	found, err := req.Store.ExportSession(req.Ctx, req.Address())
	if err != nil {
		return err
	}
	return s.export(req, req.Address(), func(e *exporter) error { return e.session(found) })
}

// exportTenant handles GET /v1/export: all sessions, or those that the list of sessions would have.
func (s *Server) exportTenant(req *request.Request) error {
	search := readSearch(req)
	if err := req.Err(); err != nil {
		return err
	}
	policy, err := req.Store.TenantPolicy(req.Ctx, req.Tenant)
	if err != nil {
		return err
	}
	return s.export(req, session.Address{Tenant: req.Tenant}, func(e *exporter) error {
		if err := e.Tenant(policy.Patch); err != nil {
			return err
		}
		return e.sessions(search)
	})
}

// exporter writes an archive as an answer. An error after the first bytes cuts the answer off: it then has no manifest.
type exporter struct {
	*archive.Writer
	s     *Server
	req   *request.Request
	lines bytes.Buffer // that were not sent yet
}

// exportMemory is about how much memory an export takes: it reads a few megabytes at a time.
const exportMemory = 16 << 20

var archiveType = []string{archive.MediaType}

// export answers with an archive, as it is written. Only the request's end ends it early. What it reads, a session or
// without an id the tenant, is recorded before.
func (s *Server) export(req *request.Request, of session.Address, write func(*exporter) error) error {
	req.Ctx = req.Base
	h := req.W.Header()
	h["Content-Type"] = archiveType
	h["Cache-Control"] = request.NoStore
	h["Vary"] = []string{"Accept-Encoding"}
	if req.R.Method == http.MethodHead {
		return nil
	}
	if err := req.Admit(min(exportMemory, req.Memory.Size())); err != nil {
		return err
	}
	if err := req.Store.RecordExport(req.Ctx, of); err != nil {
		return err
	}
	e := &exporter{s: s, req: req}
	out, closeOut := io.Writer(&e.lines), func() error { return nil }
	if acceptsZstd(req.R.Header["Accept-Encoding"]) {
		h.Set("Content-Encoding", "zstd")
		packed, err := zstd.NewWriter(&e.lines, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		if err != nil {
			return err
		}
		out, closeOut = packed, packed.Close
	}
	var err error
	if e.Writer, err = archive.Begin(out); err == nil {
		err = write(e)
	}
	if err == nil {
		_, err = e.Close()
	}
	if err == nil {
		err = closeOut()
	}
	if err == nil {
		err = e.send()
	}
	return err
}

// sendAt is how many bytes are sent at once, unless a page of messages has more.
const sendAt = 64 << 10

// send sends the lines that were written.
func (e *exporter) send() error {
	e.req.WriteBy(time.Now().Add(request.StepTimeout))
	_, err := e.req.W.Write(e.lines.Bytes())
	e.lines.Reset()
	return e.req.Sent(err)
}

// step reads or writes messages in a turn at a processor, however few they are: in all they are many. A page is sent
// without one: a client may read slowly.
func (e *exporter) step(work func() error) error {
	return e.req.Processors().Step(e.req.Ctx, exportMemory, func(*admit.Step) error { return work() })
}

// page writes messages, and sends them.
func (e *exporter) page(messages []session.Message) error {
	err := e.step(func() error {
		for i := range messages {
			if err := e.Message(&messages[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.sendMany()
}

// sendMany sends the lines that were written if they are many.
func (e *exporter) sendMany() error {
	if e.lines.Len() < sendAt {
		return nil
	}
	return e.send()
}

// exportPage is how many sessions are read at a time: each is exported as it was when its page was read.
const exportPage = 100

func (e *exporter) sessions(search session.Search) error {
	page := session.Page{Limit: exportPage}
	for {
		found, err := e.req.Store.ExportSessions(e.req.Ctx, e.req.Tenant, search, page)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, each := range found {
			if each.LeftOut {
				continue
			}
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
	messages, err := e.messages(found, 1)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var pins []session.Pin
	err = e.shown(found.Key, func() (err error) {
		pins, err = e.req.Store.ExportPins(e.req.Ctx, found)
		return err
	})
	if err != nil {
		return err
	}
	var archived archivedPins
	if err := e.Session(found); err != nil {
		return err
	}
	for len(messages) > 0 {
		if err := e.page(messages); err != nil {
			return err
		}
		for i := range messages {
			pins = archived.take(pins, &messages[i])
		}
		if messages, err = e.messages(found, messages[len(messages)-1].Seq+1); err != nil {
			return err
		}
	}
	var uploads []archive.Upload
	err = e.shown(found.Key, func() (err error) {
		uploads, err = e.uploads(found.Key)
		return err
	})
	if err != nil {
		return err
	}
	if err := e.End(found.LastSeq, uploads, archived); err != nil {
		return err
	}
	return e.sendMany()
}

// messages reads the next messages of a session, which it brings back if it is cold.
func (e *exporter) messages(found session.Exported, from int64) (messages []session.Message, err error) {
	read := func() (err error) {
		messages, err = e.req.Store.ExportMessages(e.req.Ctx, found, from)
		return err
	}
	if err = e.step(read); errors.Is(err, session.ErrNotFound) {
		if err := e.thaw(found.Key); err != nil {
			return nil, err
		}
		err = e.step(read)
	}
	return messages, err
}

// longestThaw bounds how often somebody who exports waits for a session that comes back.
const longestThaw = 30

// thaw brings a session back. The client is patient: it has been answered already.
func (e *exporter) thaw(key session.Key) (err error) {
	for range longestThaw {
		e.req.WriteBy(time.Now().Add(request.StepTimeout))
		err = e.s.thawer.Read(e.req.Ctx, key)
		if !errors.Is(err, session.ErrThawing) || errors.Is(err, session.ErrResultStore) {
			return err
		}
	}
	return err
}

// shown reads rows of a session that say nothing where there are none, again if the session was frozen meanwhile.
func (e *exporter) shown(key session.Key, read func() error) error {
	for {
		if err := read(); err != nil {
			return err
		}
		state, err := e.req.Store.ColdState(e.req.Ctx, key)
		if err != nil || state == "" {
			return err
		}
		if err := e.thaw(key); err != nil {
			return err
		}
	}
}

// archivedPins are pins as an archive has them, by the seqs of their messages.
type archivedPins []session.ArchivedPin

// take moves the pins of a message from the beginning of a list, which it returns.
func (a *archivedPins) take(from []session.Pin, m *session.Message) []session.Pin {
	for len(from) > 0 && from[0].Seq <= m.Seq {
		if p := &from[0]; p.Seq == m.Seq && m.RemovedAt == nil {
			sum := sha256.Sum256(m.Body)
			made := session.ArchivedPin{
				Ref: p.Ref, Note: p.Note, CreatedAt: p.CreatedAt.UTC(), SHA256: hex.EncodeToString(sum[:]),
			}
			*a = append(*a, made)
		}
		from = from[1:]
	}
	return from
}

func (e *exporter) uploads(key session.Key) ([]archive.Upload, error) {
	uploaded, err := e.req.Store.UploadedResults(e.req.Ctx, key)
	list := make([]archive.Upload, len(uploaded))
	for i, r := range uploaded {
		list[i] = archive.Upload{
			Ref: r.Ref, MediaType: r.MediaType, Bytes: r.Bytes, SHA256: hex.EncodeToString(r.SHA256),
		}
	}
	return list, err
}
