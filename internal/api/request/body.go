package request

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/packed"
	"github.com/varve-dev/varve/internal/session"
)

// Buffer is memory that is reused by later requests. What it held must not be used after Free.
type Buffer struct {
	B    []byte
	next *Buffer // of the same request
}

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, minKeptBuffer)} }}

// MaxKeptBuffer is the largest buffer that is kept for another request, minKeptBuffer the smallest.
const (
	MaxKeptBuffer = 2 << 20
	minKeptBuffer = 16 << 10
)

// NewBuffer returns an empty buffer.
func NewBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Free gives the buffer to another request.
func (b *Buffer) Free() {
	if minKeptBuffer <= cap(b.B) && cap(b.B) <= MaxKeptBuffer {
		b.B = b.B[:0]
		b.next = nil
		buffers.Put(b)
	}
}

// Buffer returns an empty buffer that lives as long as the request.
func (req *Request) Buffer() *Buffer {
	b := NewBuffer()
	req.keep(b)
	return b
}

// keep frees a buffer with the request.
func (req *Request) keep(b *Buffer) {
	b.next = req.buffers
	req.buffers = b
}

// Body returns the request's body, decompressed. It lives as long as the request.
func (req *Request) Body() []byte {
	if req.Err() != nil {
		return nil
	}
	if req.body == nil {
		b, err := req.decodeBody()
		if err != nil {
			var refused *Failure
			if errors.As(err, &refused) && refused.Code != RequestTimedOut {
				req.Drain()
			}
			req.Fail(err)
			return nil
		}
		req.body = b
		req.keep(b)
	}
	return req.body.B
}

// EmptyBody requires that the body has no members.
func (req *Request) EmptyBody() {
	body := req.Body()
	if len(body) > 0 {
		d, err := Open(body)
		if err == nil {
			for range d.Fields(nil) { // any member is a problem
			}
			err = d.Err()
		}
		req.Fail(err)
	}
}

// How much of a refused body is still read, and how long each step of it may take.
const (
	maxDrain     = 64 << 20
	drainStep    = 1 << 20
	drainTimeout = time.Second
)

// Drain reads the rest of a body. A client that sends everything before it reads would otherwise find the connection
// broken instead of the answer. A client that waits to be asked for the body is not asked.
func (req *Request) Drain() {
	if req.R.Header.Get("Expect") != "" {
		return
	}
	connection := http.NewResponseController(req.Raw)
	for left := int64(maxDrain); left > 0; {
		_ = connection.SetReadDeadline(time.Now().Add(drainTimeout))
		n, err := io.CopyN(io.Discard, req.R.Body, min(left, drainStep))
		left -= n
		if err != nil {
			return
		}
	}
}

func (req *Request) decodeBody() (*Buffer, error) {
	if err := mustBeJSON(req.R.Header["Content-Type"]); err != nil {
		return nil, err
	}
	if req.R.ContentLength > session.MaxBodyBytes {
		return nil, bodyTooLarge()
	}
	coding, err := contentCoding(req.R.Header["Content-Encoding"])
	if err != nil {
		return nil, err
	}
	source := io.ReadCloser(http.MaxBytesReader(req.Raw, req.R.Body, session.MaxBodyBytes))
	switch coding {
	case "gzip":
		return req.unpack(&gzipReaders, source)
	case "zstd":
		return req.unpack(&zstdDecoders, source)
	}
	return req.fill(source, int(req.R.ContentLength), nil)
}

// step reads what makes a buffer that large, such as Heavy does.
type step func(size int64, read func() error) error

// fill reads source to its end, or to the limit, in steps; nil stands for reading at once. Its memory grows with what
// has come, see growth. A body that has become large takes its part of the process's memory, or waits for it.
func (req *Request) fill(source io.Reader, claimed int, step step) (*Buffer, error) {
	b := NewBuffer()
	room := min(cap(b.B), largeBody) // that needs no memory, or has it: a buffer may be large from another request
	for {
		if len(b.B) == room {
			more := growth(room, claimed)
			if err := req.admitBody(room, more); err != nil {
				b.Free()
				return nil, err
			}
			b.B = slices.Grow(b.B, more)
			room += more
		}
		ended, err := b.readStep(step, room, source)
		if err != nil {
			b.Free()
			return nil, err
		}
		if ended {
			return b, nil
		}
	}
}

// readStep does what readTo does, in a step if there are any.
func (b *Buffer) readStep(step step, size int, source io.Reader) (ended bool, err error) {
	if step == nil {
		return b.readTo(size, source)
	}
	err = step(int64(size), func() (err error) {
		ended, err = b.readTo(size, source)
		return err
	})
	return ended, err
}

// readTo reads until the buffer has size bytes, and reports whether source has ended.
func (b *Buffer) readTo(size int, source io.Reader) (ended bool, err error) {
	for len(b.B) < size {
		n, err := source.Read(b.B[len(b.B):size])
		b.B = b.B[:len(b.B)+n]
		switch {
		case len(b.B) > session.MaxBodyBytes:
			return false, bodyTooLarge()
		case err == io.EOF:
			return true, nil
		case err != nil:
			return false, readError(err)
		}
	}
	return false, nil
}

// believed is how much of a body must have come for its Content-Length to be believed, and the share of it.
const (
	believed      = 1 << 20
	believedShare = 8
)

// growth returns how many bytes a full buffer must grow by: to twice its size, or to all that the Content-Length claims
// once a good part of that has come, which leaves less garbage. A length of 0 or less is unknown.
func growth(has, claimed int) int {
	if has >= believed && claimed >= has && claimed/believedShare <= has {
		return claimed + 1 - has // the last byte is for the end, which comes with none
	}
	return min(has, session.MaxBodyBytes+1-has)
}

// largeBody is the size from which a body is weighed, and bodyWeight how many times it is in memory: as it came, as it
// grows, and in the messages and statements that are made of it.
const (
	largeBody  = 64 << 10
	bodyWeight = 3
)

func (req *Request) admitBody(has, more int) error {
	switch {
	case has+more <= largeBody:
		return nil
	case has <= largeBody:
		more += has
	}
	return req.Admit(bodyWeight * int64(more))
}

func bodyTooLarge() error {
	return Fail("body_too_large", "the limit of a body is %d MiB, decompressed: send fewer messages at once",
		session.MaxBodyBytes>>20)
}

// readError tells a body that is too large or damaged from a connection that broke.
func readError(err error) error {
	var known *Failure
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &tooLarge), errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err,
		zstd.ErrWindowSizeExceeded):
		return bodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Fail(RequestTimedOut, "the body did not come in time: send the request again, faster")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Fail(InvalidJSON, "the body ends too early: send all of it again, with as many bytes as its "+
			"Content-Length says")
	}
	return Fail(InvalidJSON, "the body cannot be read to its end: %s", err)
}

// mustBeJSON refuses a body of another content type. A body without one is taken for JSON.
func mustBeJSON(contentType []string) error {
	if len(contentType) == 0 || contentType[0] == "application/json" {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(contentType[0]); err == nil && kind == "application/json" {
		return nil
	}
	return Fail("unsupported_media_type", "the Content-Type is %q: send JSON with Content-Type: application/json",
		contentType[0])
}

// contentCoding returns the body's one coding, "" for none.
func contentCoding(header []string) (string, error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(header, ", ")))
	switch coding {
	case "", "identity":
		return "", nil
	case "gzip", "x-gzip":
		return "gzip", nil
	case "zstd":
		return coding, nil
	}
	return "", Fail("unsupported_media_type", "the Content-Encoding is %q: send the body in gzip, in zstd or in "+
		"neither", coding)
}

// unpacker is a gzip.Reader or a zstd.Decoder.
type unpacker interface {
	io.Reader
	Reset(io.Reader) error
}

var (
	gzipReaders  = sync.Pool{New: func() any { return new(gzip.Reader) }}
	zstdDecoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(session.MaxBodyBytes), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(packed.MaxWindow))
		if err != nil {
			panic(err) // an option is wrong
		}
		return d
	}}
)

// unpack decompresses a body by an unpacker of a pool, once it is there: what is large is unpacked with a share of the
// processors, which must not be held while a client sends.
func (req *Request) unpack(pool *sync.Pool, source io.Reader) (*Buffer, error) {
	packed, err := req.fill(source, int(req.R.ContentLength), nil)
	if err != nil {
		return nil, err
	}
	defer packed.Free()
	u := pool.Get().(unpacker)
	defer pool.Put(u)
	counted := &counted{source: bytes.NewReader(packed.B)}
	if err := u.Reset(counted); err != nil {
		return nil, readError(err)
	}
	return req.fill(&weighed{packed: counted, unpacked: u}, 0, req.Heavy)
}

// StepTimeout bounds one step of an answer, or of a body, that has no bound as a whole.
const StepTimeout = time.Minute

// Stream returns the request's body, decompressed, to be read step by step: it may take any time as a whole. The caller
// closes it.
func (req *Request) Stream() (io.ReadCloser, error) {
	coding, err := contentCoding(req.R.Header["Content-Encoding"])
	if err != nil {
		return nil, err
	}
	return unpacked(coding, &patientBody{req.R.Body, http.NewResponseController(req.Raw)})
}

// File returns the request's body as Stream does, unpacked once more if it is a file in gzip or zstd.
func (req *Request) File() (io.ReadCloser, error) {
	body, err := req.Stream()
	if err != nil {
		return nil, err
	}
	coding, all := packed.Peek(body)
	file, err := unpacked(coding, all)
	if err != nil {
		_ = body.Close()
		return nil, err
	}
	return &stream{file, both{file, body}}, nil
}

// both closes two readers.
type both [2]io.Closer

// Close closes both, even if the first returns an error.
func (b both) Close() error { return errors.Join(b[0].Close(), b[1].Close()) }

// unpacked returns what a coding packed, "" for none.
func unpacked(coding string, source io.Reader) (io.ReadCloser, error) {
	if coding == "" {
		return &stream{source, io.NopCloser(source)}, nil
	}
	from := &counted{source: source}
	content, err := packed.Unpack(coding, from)
	if err != nil {
		return nil, streamError(err)
	}
	return &stream{&weighed{packed: from, unpacked: content}, content}, nil
}

// stream reports errors as the caller should see them. What was read before an error is valid.
type stream struct {
	io.Reader
	io.Closer
}

// Read reads the next bytes of the body.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = streamError(err)
	}
	return n, err
}

// patientBody is a body of unknown length: it may take any time as a whole, but not StepTimeout for one step.
type patientBody struct {
	io.Reader
	connection *http.ResponseController
}

// Read moves the connection's deadlines first. Connections without deadlines do not need them.
func (b *patientBody) Read(p []byte) (int, error) {
	until := time.Now().Add(StepTimeout)
	_ = b.connection.SetReadDeadline(until)
	_ = b.connection.SetWriteDeadline(until.Add(StepTimeout))
	return b.Reader.Read(p)
}

func streamError(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return Fail(InvalidJSON, "the body cannot be unpacked: its zstd window is larger than the limit of %d MiB",
			packed.MaxWindow>>20)
	}
	return readError(err)
}
