package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

// Views of at most maxSmallView bytes are read whole, in one statement and without asking for memory. A process with
// little memory takes only smaller ones for small.
const (
	maxSmallView = 4 << 20
	minSmallView = 256 << 10
	smallPart    = 128 // of the process's memory for requests
)

func (s *Server) smallView() int64 {
	return cmp.Or(s.SmallView, min(maxSmallView, max(minSmallView, s.Memory.Size()/smallPart)))
}

// streamView answers with a large view as it is stored, if that is what the reader asks for: its shapes are read first,
// which tell whether it is valid, then its messages, a page at a time while it is sent. If a message goes away
// meanwhile, the answer is cut off. It reports false if the view has to be made.
func (s *Server) streamView(req *request.Request, want viewRequest, stored *postgres.View) (sent bool, err error) {
	if !want.newest() {
		return false, nil
	}
	if err := req.Admit(postgres.PageMemory + int64(stored.Size)); err != nil {
		return false, err
	}
	w := viewStream{
		Request: req, envelope: want.envelope, store: req.Store, at: want.at, stored: stored, zstd: want.zstd,
	}
	valid, err := w.validate(&want.Request)
	if err != nil || !valid {
		return false, err
	}
	return true, w.send(want.tagOf(stored))
}

// viewStream sends a stored view piece by piece.
type viewStream struct {
	*request.Request
	envelope
	store  *postgres.Store
	at     session.Address
	stored *postgres.View
	zstd   bool
	seen   postgres.Seen // the messages of which the shapes were read
	sent   postgres.Seen // those that were sent
	frame  []byte        // memory of Write
	packer *zstd.Encoder // of a view in zstd without a checkpoint, whose messages nobody has compressed; else nil
	packed bytes.Buffer  // what it has made
}

var errNotStored = errors.New("the view has to be made")

// validate reports whether the view is valid as it is stored. It reads the view's checkpoint and system prompt.
func (w *viewStream) validate(want *view.Request) (valid bool, err error) {
	var validator *wire.FastValidator
	begin := func() (ok bool) {
		if validator == nil {
			validator, ok = want.Validator(w.stored)
			return ok
		}
		return true
	}
	err = w.store.OpenView(w.Ctx, w.at, w.stored, func(seq int64, shape string) error {
		if !begin() {
			return errNotStored
		}
		w.seen.Add(seq, shape)
		validator.AddShapes([]byte(shape))
		return nil
	})
	switch {
	case errors.Is(err, errNotStored):
		w.stored.LeftOut = true
		return false, nil
	case err != nil || w.stored.Damage != nil:
		return false, err
	}
	if begin() && validator.ValidFor(want.Options(w.stored)) {
		return true, nil
	}
	w.stored.LeftOut = true
	return false, nil
}

// send sends the view. Only the request's end ends it early, and a step that takes too long.
func (w *viewStream) send(tag string) error {
	w.Ctx = w.Base
	page := w.Buffer()
	last, err := w.read(0, page)
	if err != nil {
		return err
	}
	h := viewHeader(w.Request, tag)
	h["Content-Type"] = request.JSONType
	if w.zstd {
		h["Content-Encoding"] = zstdCoding
	}
	w.W.WriteHeader(w.code())
	if w.R.Method == http.MethodHead {
		return nil
	}
	if err := w.begin(); err != nil {
		return err
	}
	joined := page.B
	if w.stored.Size == 0 {
		joined = bytes.TrimPrefix(joined, []byte{','})
	}
	for last > 0 {
		if _, err := w.Write(joined); err != nil {
			return err
		}
		if last, err = w.read(last, page); err != nil {
			return err
		}
		joined = page.B
	}
	return w.end()
}

// read reads the next messages into page, each behind a comma, with a share of the processors. It returns the seq of
// the last one, 0 if there are none. It waits before each page, so that other heavy work takes turns with this; only
// before the first one it may wait too long.
func (w *viewStream) read(after int64, page *request.Buffer) (last int64, err error) {
	wait := w.CPU.Await
	if after == 0 {
		wait = w.CPU.Acquire
	}
	turn, err := wait(w.Ctx, w.Tenant, 1)
	if err != nil {
		return 0, err
	}
	defer turn.Done()
	ctx, cancel := context.WithTimeout(w.Ctx, requestTimeout)
	defer cancel()
	page.B, last, err = w.store.AppendTail(ctx, w.at, w.stored, after, page.B[:0], &w.sent)
	return last, err
}

// begin sends all that is before the messages after the checkpoint.
func (w *viewStream) begin() error {
	v := w.stored
	if err := w.beginFrame(v.Body); err != nil {
		return err
	}
	head := w.Buffer()
	head.B = view.AppendHead(append(head.B, w.before...), w.SessionID, v, view.Notes{})
	if _, err := w.Write(head.B); err != nil || v.Size == 0 {
		return err
	}
	if w.zstd {
		return w.raw(v.Body)
	}
	return w.Processors().Step(w.Ctx, v.Bytes(), func(step *admit.Step) error {
		for piece, err := range zframe.Pieces(v.Body, v.Size) {
			if err != nil {
				return err
			}
			if waited := step.Rest(func() { err = w.raw(piece) }); err != nil || waited != nil {
				return cmp.Or(err, waited)
			}
		}
		return nil
	})
}

var errChanged = errors.New("messages were removed while the view was sent")

// end ends the answer, unless other messages were sent than those that were found valid.
func (w *viewStream) end() error {
	if w.sent != w.seen {
		return errChanged
	}
	if _, err := w.Write([]byte(w.envelope.end())); err != nil || !w.zstd {
		return err
	}
	if w.packer != nil {
		return w.pack(w.packer.Close)
	}
	return w.raw([]byte(zframe.End))
}

// beginFrame begins the answer's frame, if it has one, for a checkpoint as it is stored, which may be empty.
func (w *viewStream) beginFrame(blocks []byte) (err error) {
	switch {
	case !w.zstd:
		return nil
	case len(blocks) > 0:
		return w.raw(zframe.AppendStart(nil, blocks))
	}
	w.packer, err = zframe.NewWriter(&w.packed)
	return err
}

// pack sends what work has made the packer write.
func (w *viewStream) pack(work func() error) error {
	w.packed.Reset()
	err := w.Processors().Step(w.Ctx, w.stored.Bytes(), func(*admit.Step) error { return work() })
	if err != nil || w.packed.Len() == 0 {
		return err
	}
	return w.raw(w.packed.Bytes())
}

// Write sends a piece of the view, in the coding of the answer.
func (w *viewStream) Write(p []byte) (int, error) {
	switch {
	case !w.zstd:
		return len(p), w.raw(p)
	case w.packer != nil:
		return len(p), w.pack(func() error {
			_, err := w.packer.Write(p)
			return err
		})
	}
	w.frame = zframe.AppendRaw(w.frame[:0], p)
	return len(p), w.raw(w.frame)
}

func (w *viewStream) raw(p []byte) error {
	w.WriteBy(time.Now().Add(requestTimeout))
	_, err := w.W.Write(p)
	return w.Sent(err)
}

// answerLarge answers with a large view that was made, message by message.
func answerLarge(req *request.Request, want viewRequest, tag string, v *postgres.View, notes view.Notes) error {
	head := req.Buffer()
	head.B = view.AppendHead(append(head.B, want.before...), req.SessionID, v, notes)
	h := viewHeader(req, tag)
	h["Content-Type"] = request.JSONType
	if want.zstd {
		h["Content-Encoding"] = zstdCoding
	} else {
		h["Content-Length"] = []string{strconv.Itoa(len(head.B) + joinedSize(v.Bodies) + len(want.end()))}
	}
	req.W.WriteHeader(want.code())
	if req.R.Method == http.MethodHead {
		return nil
	}
	w := &viewStream{Request: req, envelope: want.envelope, stored: v, zstd: want.zstd}
	if err := w.beginFrame(nil); err != nil {
		return err
	}
	if err := w.messages(head, v.Bodies); err != nil {
		return err
	}
	return w.end()
}

func joinedSize(bodies [][]byte) int {
	size := max(len(bodies)-1, 0)
	for _, body := range bodies {
		size += len(body)
	}
	return size
}

// messages sends the contents of buf and then messages, and joins small ones into one write.
func (w *viewStream) messages(buf *request.Buffer, bodies [][]byte) error {
	for i, body := range bodies {
		if i > 0 {
			buf.B = append(buf.B, ',')
		}
		if len(buf.B)+len(body) > minSmallView {
			if _, err := w.Write(buf.B); err != nil {
				return err
			}
			buf.B = buf.B[:0]
		}
		if len(body) > minSmallView {
			if _, err := w.Write(body); err != nil {
				return err
			}
			continue
		}
		buf.B = append(buf.B, body...)
	}
	_, err := w.Write(buf.B)
	return err
}
