package api

import (
	"context"
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// logPage is how much of a log is read at once. The first piece is smaller, and asks for no memory: most logs end
// there.
var (
	logPage  = postgres.Range{Limit: session.MaxMessagePage, Bytes: 4 << 20}
	firstLog = postgres.Range{Limit: session.MaxMessagePage, Bytes: 1 << 20}
)

// readLog answers with the raw log as one view. It is sent while it is read: however long it is, a few megabytes of it
// are in memory.
func (s *Server) readLog(req *request.Request, want viewRequest) error {
	found, err := req.Store.Session(req.Ctx, want.at)
	if err != nil {
		return err
	}
	head := postgres.View{
		Version: postgres.Version{Key: found.Key,
			LastSeq: found.LastSeq}, Format: found.Format, Tokens: found.TotalTokens,
		Window: int64(found.WindowTokens), Room: found.Room(),
	}
	tag := want.tagOf(&head)
	if want.has(tag) {
		return notModified(req, tag)
	}
	viewHeader(req, tag)
	w := logWriter{Request: req, store: req.Store, at: want.at, head: head, piece: firstLog}
	return w.write()
}

// logWriter sends a log page by page.
type logWriter struct {
	*request.Request
	store   *postgres.Store
	at      session.Address
	head    postgres.View // without the messages
	started bool          // the head is written
	piece   postgres.Range
}

func (w *logWriter) write() error {
	w.W.Header()["Content-Type"] = request.JSONType
	if w.R.Method == http.MethodHead {
		w.W.WriteHeader(http.StatusOK)
		return nil
	}
	buf := request.NewBuffer()
	defer buf.Free()
	for after := int64(0); ; {
		page, err := w.read(after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		if err := w.hold(page); err != nil {
			return err
		}
		buf.B = w.appendPage(buf.B[:0], page)
		if err := w.send(buf.B); err != nil {
			return err
		}
		after = page[len(page)-1].Seq
	}
	buf.B = append(w.appendHead(buf.B[:0]), "]}"...)
	return w.send(buf.B)
}

// hold waits for memory if the log continues behind its first piece. Nothing is sent before.
func (w *logWriter) hold(page []session.Message) error {
	const copies = 4 // as it is read, and as it is sent
	if w.piece == logPage || page[len(page)-1].Seq >= w.head.LastSeq {
		return nil
	}
	w.piece = logPage
	return w.Admit(min(copies*logPage.Bytes, w.Memory.Size()))
}

// read has a deadline for each page, not for all: a log is as long as it is. What was appended meanwhile is left out.
func (w *logWriter) read(after int64) (page []session.Message, err error) {
	var found session.Session
	r := w.piece
	r.After = after
	read := func() (err error) {
		ctx, cancel := context.WithTimeout(w.Base, requestTimeout)
		defer cancel()
		found, page, err = w.store.Messages(ctx, w.at, r)
		return err
	}
	if r.Bytes > firstLog.Bytes {
		err = w.Processors().Step(w.Base, r.Bytes, func(*admit.Step) error { return read() })
	} else {
		err = read()
	}
	if err == nil && found.Key != w.head.Key {
		err = session.ErrNotFound // erased while it was read, and made anew
	}
	for len(page) > 0 && page[len(page)-1].Seq > w.head.LastSeq {
		page = page[:len(page)-1]
	}
	return page, err
}

// appendPage writes messages. A separate system prompt goes into the head instead.
func (w *logWriter) appendPage(dst []byte, page []session.Message) []byte {
	for i := range page {
		body := page[i].Body
		if !w.started && provider.SeparatesSystem(w.head.Format) && pinned(page[i].Role) {
			if len(w.head.System) > 0 {
				w.head.System = append(w.head.System, ',')
			}
			w.head.System = append(w.head.System, body...)
			continue
		}
		if w.started {
			dst = append(dst, ',')
		}
		dst = append(w.appendHead(dst), body...)
	}
	return dst
}

// appendHead writes the head unless it is written already.
func (w *logWriter) appendHead(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	return view.AppendHead(dst, w.SessionID, &w.head, view.Notes{})
}

func (w *logWriter) send(b []byte) error {
	w.WriteBy(time.Now().Add(requestTimeout))
	_, err := w.W.Write(b)
	return w.Sent(err)
}

// pinned reports whether a message of this role belongs to a session's pinned head if nothing else stands before it.
func pinned(role string) bool { return role == "system" || role == "developer" }
