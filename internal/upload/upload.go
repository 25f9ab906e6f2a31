// Package upload receives results that are uploaded: the full output of a tool, up to 1 GiB, in one request or several,
// before the message exists that names it. It holds a few MiB at a time. It owns no table; the store has uploads.
//
// Start at Receiver.Run, which writes a body to an upload, and at finish (text.go), which makes a whole one a result
// with the text that stands for it in a message. What Run has stored when it returns is kept, whatever it returns, and
// whatever becomes of the process.
package upload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// pieceBytes is how much is read at once.
	pieceBytes = 128 << 10

	// stepTimeout bounds the storing of a piece.
	stepTimeout = 30 * time.Second
)

// ErrStopping is returned if the process stops while a body arrives.
var ErrStopping = errors.New("the process is stopping")

// ErrTooLarge is returned if a result has more than session.MaxUploadBytes.
var ErrTooLarge = errors.New("the result is too large")

// ErrTooSlow is returned if a body arrives too slowly to be waited for.
var ErrTooSlow = errors.New("the body arrives too slowly")

// Receiver writes a body to an upload.
type Receiver struct {
	Store    *postgres.Store
	At       session.Address
	Upload   session.Upload
	Offset   int64       // of the body's first byte in the result
	More     bool        // another body has the bytes after this one
	Stopping func() bool // reports whether the process stops: then the rest of the body is refused
}

// Run reads the body to its end, and returns the upload as it is then. It is finished unless there is More.
//
// Errors: OffsetError, DigestError, ErrTooLarge, ErrTooSlow, ErrStopping, ErrWritten if another request writes to the
// upload, ErrNotFound, those of the body, and ErrIdempotencyReused if the upload has ended with other bytes. After one
// of the body, ErrTooSlow and ErrStopping, what has arrived is stored.
func (r *Receiver) Run(ctx context.Context, body io.Reader) (session.Upload, error) {
	if r.Upload.Finished() {
		return r.Upload, r.again(ctx, body)
	}
	if r.Offset != r.Upload.Offset {
		return r.Upload, &session.OffsetError{Upload: r.Upload.ID, Given: r.Offset, Right: r.Upload.Offset}
	}
	if !r.Upload.Whole { // else the process ended before it made the result
		if err := r.receive(ctx, body); err != nil {
			return r.Upload, err
		}
	}
	if r.More && !r.Upload.Whole {
		return r.Store.Upload(ctx, r.At, r.Upload.ID)
	}
	return finish(ctx, r.Store, r.At, r.Upload)
}

// receive stores the body and, if it is the last one, completes the upload's bytes.
func (r *Receiver) receive(ctx context.Context, body io.Reader) error {
	w, err := r.Store.WriteBody(ctx, r.Upload.Session, r.Upload.Body)
	if err != nil {
		return err
	}
	if w.Offset() != r.Offset {
		return &session.OffsetError{Upload: r.Upload.ID, Given: r.Offset, Right: w.Offset()}
	}
	if err := r.copy(ctx, w, body); err != nil {
		return r.interrupted(ctx, w, err)
	}
	step, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if r.More {
		return w.Save(step)
	}
	r.Upload, err = r.Store.CompleteUpload(step, r.Upload, w)
	var other *session.DigestError
	if errors.As(err, &other) {
		err = errors.Join(err, r.Store.AbandonUpload(ctx, r.At, r.Upload.ID))
	}
	return err
}

// interrupted keeps what has arrived of a body that does not come to its end, unless it can never be a result.
func (r *Receiver) interrupted(ctx context.Context, w *postgres.BodyWriter, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	switch {
	case errors.Is(cause, ErrTooLarge):
		return errors.Join(cause, r.Store.AbandonUpload(ctx, r.At, r.Upload.ID))
	case errors.Is(cause, session.ErrWritten):
		return cause
	}
	if err := w.Save(ctx); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// copy writes a body to its end.
func (r *Receiver) copy(ctx context.Context, w *postgres.BodyWriter, body io.Reader) error {
	piece := make([]byte, pieceBytes)
	pace := pace{since: time.Now()}
	for {
		n, err := body.Read(piece)
		if w.Offset()+int64(n) > session.MaxUploadBytes {
			return fmt.Errorf("%w: a result has at most %d bytes", ErrTooLarge, session.MaxUploadBytes)
		}
		if stored := write(ctx, w, piece[:n]); stored != nil {
			return stored
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case pace.stalls(n, time.Now()):
			return ErrTooSlow
		case r.Stopping():
			return ErrStopping
		}
	}
}

func write(ctx context.Context, w *postgres.BodyWriter, piece []byte) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return w.Write(ctx, piece)
}

// again reads the body of a request whose upload has ended: the same bytes find the same result.
func (r *Receiver) again(ctx context.Context, body io.Reader) error {
	sum, read := sha256.New(), int64(0)
	piece := make([]byte, pieceBytes)
	pace := pace{since: time.Now()}
	for {
		n, err := body.Read(piece)
		sum.Write(piece[:n])
		if read += int64(n); err == io.EOF {
			break
		}
		switch {
		case err != nil:
			return err
		case read > r.Upload.Offset:
			return session.ErrIdempotencyReused
		case pace.stalls(n, time.Now()):
			return ErrTooSlow
		}
	}
	if read == 0 && (r.More || r.Offset == r.Upload.Offset) {
		return nil // it only asks
	}
	content, err := r.Store.OpenBody(ctx, r.Upload.Session, r.Upload.Body)
	if err != nil {
		return err
	}
	if whole := content.SHA256(); r.Offset != 0 || !bytes.Equal(sum.Sum(nil), whole[:]) {
		return session.ErrIdempotencyReused
	}
	return nil
}

// pace measures how fast a body arrives.
type pace struct {
	since time.Time
	bytes int
}

// The least that a body must have in a time: a connection that is held open costs a place among those of its tenant.
const (
	leastBytes = 64 << 10
	leastTime  = 5 * time.Minute
)

// stalls takes a number of bytes that have arrived until now, and reports whether they are too few.
func (p *pace) stalls(n int, now time.Time) bool {
	if p.bytes += n; p.bytes >= leastBytes {
		p.since, p.bytes = now, 0
	}
	return now.Sub(p.since) > leastTime
}
