package api

import (
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

	"github.com/varve-dev/varve/internal/session"
)

// buffer is memory that goes from request to request. What it held must not be used after free.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 16<<10)} }}

// maxKeptBuffer is the largest buffer that is kept for the next request.
const maxKeptBuffer = 2 << 20

func newBuffer() *buffer { return buffers.Get().(*buffer) }

func (b *buffer) free() {
	if cap(b.b) <= maxKeptBuffer {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}

// readBody reads the request's body, decompressed. The caller frees the buffer when nothing points into it any more.
func readBody(x *exchange) (*buffer, error) {
	b, err := decodeBody(x)
	var refused *failure
	if errors.As(err, &refused) && refused.code != requestTimedOut {
		x.drain()
	}
	return b, err
}

// How much of a body that is refused is still read, and how long each step of it may take.
const (
	maxDrain     = 64 << 20
	drainStep    = 1 << 20
	drainTimeout = time.Second
)

// drain reads the rest of a body. A client that sends everything before it reads would find the connection broken
// instead of the answer. One that waits to be asked for the body is not asked.
func (x *exchange) drain() {
	if x.r.Header.Get("Expect") != "" {
		return
	}
	connection := http.NewResponseController(x.raw)
	for left := int64(maxDrain); left > 0; {
		_ = connection.SetReadDeadline(time.Now().Add(drainTimeout))
		n, err := io.CopyN(io.Discard, x.r.Body, min(left, drainStep))
		if left -= n; err != nil {
			return
		}
	}
}

func decodeBody(x *exchange) (*buffer, error) {
	if err := mustBeJSON(x.r.Header["Content-Type"]); err != nil {
		return nil, err
	}
	if x.r.ContentLength > session.MaxBodyBytes {
		return nil, bodyTooLarge()
	}
	source := io.ReadCloser(http.MaxBytesReader(x.raw, x.r.Body, session.MaxBodyBytes))
	switch coding, err := contentCoding(x.r.Header["Content-Encoding"]); {
	case err != nil:
		return nil, err
	case coding == "gzip":
		return inflate(source)
	case coding == "zstd":
		return unpack(source)
	}
	b := newBuffer()
	// A length that is only claimed is worth this much memory and no more.
	b.b = slices.Grow(b.b, int(min(max(x.r.ContentLength+1, 512), 1<<20)))
	return b.fill(source)
}

// fill reads source to its end, or to the limit.
func (b *buffer) fill(source io.Reader) (*buffer, error) {
	for {
		if len(b.b) == cap(b.b) {
			b.b = slices.Grow(b.b, min(len(b.b), session.MaxBodyBytes+1-len(b.b)))
		}
		n, err := source.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		if len(b.b) > session.MaxBodyBytes {
			err = bodyTooLarge()
		}
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			b.free()
			return nil, readError(err)
		}
	}
}

func bodyTooLarge() error {
	return fail("body_too_large", "the body has more than %d MiB, decompressed: send fewer messages at once", session.MaxBodyBytes>>20)
}

// readError tells a body that is too large or damaged from a connection that broke.
func readError(err error) error {
	var known *failure
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &tooLarge), errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return bodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fail(requestTimedOut, "the body did not come in time: send the request again, faster")
	}
	return fail(invalidJSON, "the body cannot be read to its end: %s", err)
}

// mustBeJSON refuses a body that says that it is something else. One that says nothing is taken for JSON.
func mustBeJSON(contentType []string) error {
	if len(contentType) == 0 || contentType[0] == "application/json" {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(contentType[0]); err == nil && kind == "application/json" {
		return nil
	}
	return fail("unsupported_media_type", "the body is said to be %q: send JSON with Content-Type: application/json", contentType[0])
}

// contentCoding is the body's one coding, "" for none.
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
	return "", fail("unsupported_media_type", "the body has Content-Encoding %q: send it in gzip, in zstd or in neither", coding)
}

var (
	inflaters sync.Pool // of *gzip.Reader
	unpackers sync.Pool // of *zstd.Decoder
)

func inflate(source io.Reader) (*buffer, error) {
	reader, ok := inflaters.Get().(*gzip.Reader)
	if !ok {
		reader = new(gzip.Reader)
	}
	defer inflaters.Put(reader)
	if err := reader.Reset(source); err != nil {
		return nil, readError(err)
	}
	return newBuffer().fill(reader)
}

// maxRequestWindow is the most that a sender of the zstd content coding may ask for (RFC 9659).
const maxRequestWindow = 8 << 20

func unpack(source io.Reader) (*buffer, error) {
	decoder, ok := unpackers.Get().(*zstd.Decoder)
	if !ok {
		made, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxRequestWindow), zstd.WithDecoderMaxMemory(session.MaxBodyBytes))
		if err != nil {
			return nil, err
		}
		decoder = made
	}
	defer unpackers.Put(decoder)
	if err := decoder.Reset(source); err != nil {
		return nil, readError(err)
	}
	return newBuffer().fill(decoder)
}
