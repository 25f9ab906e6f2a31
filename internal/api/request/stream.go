package request

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/klauspost/compress/zstd"
)

// StepTimeout bounds one step of an answer, or of a body, that has no bound as a whole.
const StepTimeout = time.Minute

// Stream returns the request's body, decompressed, to be read step by step: it may take any time as a whole. The caller
// closes it.
func (req *Request) Stream() (io.ReadCloser, error) {
	coding, err := contentCoding(req.R.Header["Content-Encoding"])
	if err != nil {
		return nil, err
	}
	body := &patientBody{req.R.Body, http.NewResponseController(req.Raw)}
	switch coding {
	case "gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, streamError(err)
		}
		return &stream{unpacked}, nil
	case "zstd":
		unpacked, err := newZstd(body)
		if err != nil {
			return nil, err
		}
		return &stream{unpacked.IOReadCloser()}, nil
	}
	return &stream{io.NopCloser(body)}, nil
}

// stream reports errors as the caller should see them. What was read before an error is valid.
type stream struct{ io.ReadCloser }

// Read reads the next bytes of the body.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
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
			maxWindow>>20)
	}
	return readError(err)
}
