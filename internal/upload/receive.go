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

// errStopping is returned if the process stops while a body arrives.
var errStopping = errors.New("the process is stopping")

// errTooLarge is returned if a result has more than maxBytes.
var errTooLarge = errors.New("the result is too large")

// errTooSlow is returned if a body arrives too slowly to be waited for.
var errTooSlow = errors.New("the body arrives too slowly")

// receiver writes a body to an upload.
type receiver struct {
	Store    store
	At       session.Address
	Upload   Upload
	Offset   int64       // of the body's first byte in the result
	More     bool        // another body has the bytes after this one
	Stopping func() bool // reports whether the process stops: then the rest of the body is refused
}

// run reads the body to its end, and returns the upload as it is then. It is finished unless there is More.
//
// Errors: offsetError, digestError, errTooLarge, errTooSlow, errStopping, ErrWritten if another request writes to the
// upload, ErrNotFound, those of the body, and ErrIdempotencyReused if the upload has ended with other bytes. After one
// of the body, errTooSlow and errStopping, what has arrived is stored.
func (r *receiver) run(ctx context.Context, body io.Reader) (Upload, error) {
	if r.Upload.Finished() {
		return r.Upload, r.again(ctx, body)
	}
	if r.Offset != r.Upload.Offset {
		return r.Upload, &offsetError{Upload: r.Upload.ID, Given: r.Offset, Right: r.Upload.Offset}
	}
	if !r.Upload.Whole { // else the process ended before it made the result
		if err := r.receive(ctx, body); err != nil {
			return r.Upload, err
		}
	}
	if r.More && !r.Upload.Whole {
		return r.Store.read(ctx, r.At, r.Upload.ID)
	}
	return finish(ctx, r.Store, r.At, r.Upload)
}

// receive stores the body and, if it is the last one, completes the upload's bytes.
func (r *receiver) receive(ctx context.Context, body io.Reader) error {
	w, err := r.Store.WriteBody(ctx, r.Upload.Session, r.Upload.Body)
	if err != nil {
		return err
	}
	if w.Offset() != r.Offset {
		return &offsetError{Upload: r.Upload.ID, Given: r.Offset, Right: w.Offset()}
	}
	if err := r.copy(ctx, w, body); err != nil {
		return r.interrupted(ctx, w, err)
	}
	step, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if r.More {
		return w.Save(step)
	}
	r.Upload, err = r.Store.complete(step, r.Upload, w)
	var other *digestError
	if errors.As(err, &other) {
		err = errors.Join(err, r.Store.abandon(ctx, r.At, r.Upload.ID))
	}
	return err
}

// interrupted keeps what has arrived of a body that does not come to its end, unless it can never be a result.
func (r *receiver) interrupted(ctx context.Context, w *postgres.BodyWriter, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	switch {
	case errors.Is(cause, errTooLarge):
		return errors.Join(cause, r.Store.abandon(ctx, r.At, r.Upload.ID))
	case errors.Is(cause, session.ErrWritten):
		return cause
	}
	if err := w.Save(ctx); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// copy writes a body to its end.
func (r *receiver) copy(ctx context.Context, w *postgres.BodyWriter, body io.Reader) error {
	piece := make([]byte, pieceBytes)
	pace := pace{since: time.Now()}
	for {
		n, err := body.Read(piece)
		if w.Offset()+int64(n) > maxBytes {
			return fmt.Errorf("%w: a result has at most %d bytes", errTooLarge, maxBytes)
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
			return errTooSlow
		case r.Stopping():
			return errStopping
		}
	}
}

func write(ctx context.Context, w *postgres.BodyWriter, piece []byte) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return w.Write(ctx, piece)
}

// again reads the body of a request whose upload has ended: the same bytes find the same result.
func (r *receiver) again(ctx context.Context, body io.Reader) error {
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
			return errTooSlow
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
