package api

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/spelling"
)

// messagesType is the media type of messages as they were appended: one, or an array of several.
const messagesType = "application/vnd.varve.messages+json"

// readRaw answers with the bytes of what a ref names, or the part of them that Range selects.
func (s *Server) readRaw(req *request.Request) error {
	source, err := s.sourceOf(req, persist.Want{})
	if err != nil {
		return err
	}
	mediaType := messagesType
	if source.Result != nil {
		mediaType = source.Result.MediaType
	}
	s.readBack(req)
	return answerContent(req, source.Stored, mediaType)
}

// digest sets the headers that prove a content.
func digest(req *request.Request, of *persist.Content) {
	sum := of.SHA256()
	h := req.W.Header()
	h.Set("X-Content-Sha256", hex.EncodeToString(sum[:]))
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
}

// answerContent answers with a content's bytes, or the part of them that Range selects. They are read as they are sent:
// what turns out to be damaged then cuts the answer off, or is answered with an error if nothing was sent yet.
func answerContent(req *request.Request, of *persist.Content, mediaType string) error {
	sum := of.SHA256()
	digest(req, of)
	h := req.W.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Etag", `"`+hex.EncodeToString(sum[:])+`"`)
	h.Set("Cache-Control", "private, no-cache")
	given := req.R.Header.Get("Range")
	req.R.Header.Del("Range")
	satisfiable := byteRange(given, of.Size())
	if satisfiable != "" {
		req.R.Header.Set("Range", satisfiable)
	}
	body, err := bodyOf(req, of, satisfiable == "")
	if err != nil {
		return undigested(req, err)
	}
	defer body.Close()
	w := &contentWriter{ResponseWriter: req.W, req: req}
	http.ServeContent(w, req.R, "", time.Time{}, body)
	switch {
	case w.status == http.StatusRequestedRangeNotSatisfiable:
		return &request.Failure{
			Code: request.OutsideRange, Size: of.Size(), Detail: fmt.Sprintf("the result has %d bytes: no part of "+
				"the Range %q is in it", of.Size(), spelling.Shorten(given)),
		}
	case body.failure() != nil:
		return undigested(req, body.failure())
	}
	w.begin()
	return nil
}

// undigested takes the digests out of an answer that becomes an error.
func undigested(req *request.Request, err error) error {
	h := req.W.Header()
	h.Del("X-Content-Sha256")
	h.Del("Repr-Digest")
	return err
}

// byteRange returns a Range header without what http.ServeContent gets wrong: it takes the last 0 bytes for a range
// that exists. It returns "" for a header to be ignored: one of another unit, or for an empty body.
func byteRange(header string, size int64) string {
	unit, set, _ := strings.Cut(header, "=")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") || size == 0 {
		return ""
	}
	kept := slices.DeleteFunc(strings.Split(set, ","), func(spec string) bool {
		length, suffix := strings.CutPrefix(strings.TrimSpace(spec), "-")
		return suffix && length != "" && strings.Trim(length, "0") == ""
	})
	if len(kept) == 0 {
		return fmt.Sprintf("bytes=%d-", size) // behind the end
	}
	return "bytes=" + strings.Join(kept, ",")
}

// checkedBytes is how large a content is at most that is read, and so checked, whole before the first byte of it is
// sent.
const checkedBytes = 1 << 20

// bodyOf returns a content's bytes. A large one may be sent for longer than a request may wait for the database.
func bodyOf(req *request.Request, of *persist.Content, whole bool) (*contentBody, error) {
	if of.Size() > checkedBytes {
		return &contentBody{ctx: req.Base, of: of, cpu: req.Processors()}, nil
	}
	b := &contentBody{ctx: req.Ctx, of: of}
	if whole && req.R.Method != http.MethodHead {
		err := req.Heavy(of.Size(), func() (err error) {
			b.text, err = of.All(req.Ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// contentBody reads a content chunk by chunk, and holds no more than it read last. It may be closed while another
// goroutine still reads it, as http.ServeContent does for several ranges.
type contentBody struct {
	ctx    context.Context //nolint:containedctx // io.Reader has none
	of     *persist.Content
	cpu    admit.Processors // whose turns it takes for what it reads ahead
	mu     sync.Mutex
	at     int64
	text   []byte // read last
	textAt int64
	ahead  [][]byte // the chunks after it
	err    error
}

var errClosed = errors.New("the answer has ended")

// Read reads from the chunk that the place is in.
func (b *contentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if b.at >= b.of.Size() {
		return 0, io.EOF
	}
	if b.at < b.textAt || b.at >= b.textAt+int64(len(b.text)) {
		if b.err = b.load(b.of.At(b.at)); b.err != nil {
			return 0, b.err
		}
	}
	n := copy(p, b.text[b.at-b.textAt:])
	b.at += int64(n)
	return n, nil
}

// aheadChunks is how many chunks are read at once by a reader that has gone on from one to the next. Only then it has a
// processor's turn: none is held while the client does not read.
const (
	aheadChunks = 16
	aheadBytes  = 1 << 20 // about what they have
)

// load reads chunk i.
func (b *contentBody) load(i int) error {
	at := b.of.Index()[i].At
	goesOn := b.text != nil && at == b.textAt+int64(len(b.text))
	b.textAt = at
	if goesOn && len(b.ahead) > 0 {
		b.text, b.ahead = b.ahead[0], b.ahead[1:]
		return nil
	}
	b.ahead = nil
	if !goesOn {
		var err error
		b.text, err = b.of.Chunk(b.ctx, i)
		return err
	}
	err := b.cpu.Step(b.ctx, min(b.of.Size()-at, aheadBytes), func(*admit.Step) error {
		for text, err := range b.of.From(b.ctx, i) {
			if err != nil {
				return err
			}
			if b.ahead = append(b.ahead, text); len(b.ahead) == aheadChunks {
				break
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.text, b.ahead = b.ahead[0], b.ahead[1:]
	return nil
}

// Seek goes to a place.
func (b *contentBody) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.of.Size()
	}
	if offset < 0 {
		return 0, fmt.Errorf("no byte %d", offset)
	}
	b.at = offset
	return offset, nil
}

// Close ends all reading.
func (b *contentBody) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = errClosed
	}
}

// failure returns why the content could not be read.
func (b *contentBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// contentWriter keeps http.ServeContent from answering a wrong Range in plain text, and sends the status with the first
// bytes only, when the content has proved readable.
type contentWriter struct {
	http.ResponseWriter
	req    *request.Request
	status int
	begun  bool
}

// WriteHeader keeps the status.
func (w *contentWriter) WriteHeader(status int) { w.status = status }

// begin sends the status.
func (w *contentWriter) begin() {
	if !w.begun && w.status != 0 {
		w.begun = true
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// Write sends bytes, and gives the client time for the next ones.
func (w *contentWriter) Write(b []byte) (int, error) {
	if w.status == http.StatusRequestedRangeNotSatisfiable {
		return len(b), nil
	}
	w.begin()
	w.req.WriteBy(time.Now().Add(request.StepTimeout))
	n, err := w.ResponseWriter.Write(b)
	return n, w.req.Sent(err)
}
