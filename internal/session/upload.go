package session

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// How large and how many uploads may be.
const (
	MaxUploadBytes    = 1 << 30        // of one result, decompressed
	MaxUploads        = 32             // of a session that have not ended
	UploadLifetime    = 24 * time.Hour // of one that has not ended, after its last bytes
	MaxToolBytes      = 256
	MaxMediaTypeBytes = 128
)

// NewUpload is a result that is about to be uploaded.
type NewUpload struct {
	Key       string // the Idempotency-Key, "" for none
	Tool      string
	CallID    string
	MediaType string
	SHA256    []byte // that it must have, nil for any
}

// Upload is a result that is uploaded in one or several requests.
type Upload struct {
	Session    Key
	ID         uuid.UUID
	N          int       // its number in its session, from 1
	Body       uuid.UUID // where its bytes are written to
	Tool       string
	CallID     string
	MediaType  string
	Expected   []byte // the SHA-256 that it must have, nil for any
	Offset     int64  // bytes that are stored
	Whole      bool   // all of its bytes are stored
	Ref        string // "" until it is finished
	Text       string // that stands for it in a message, once it is finished
	CreatedAt  time.Time
	ExpiresAt  time.Time // of one that is not finished
	FinishedAt *time.Time
}

// Finished reports whether the upload is a result.
func (u *Upload) Finished() bool { return u.FinishedAt != nil }

// The errors of uploads.
var (
	ErrUploadEnded    = errors.New("the upload has ended")
	ErrTooManyUploads = errors.New("too many uploads have not ended")
)

// OffsetError is returned if bytes of an upload do not continue those that are stored.
type OffsetError struct {
	Upload       uuid.UUID
	Given, Right int64
}

func (e *OffsetError) Error() string {
	return fmt.Sprintf("the bytes begin at offset %d, but upload %s has %d: send the bytes from there on", e.Given,
		e.Upload, e.Right)
}

// DigestError is returned if an upload has another SHA-256 than it should.
type DigestError struct{ Want, Got []byte }

func (e *DigestError) Error() string {
	return fmt.Sprintf("the bytes have the SHA-256 %s, not %s: nothing was kept, upload them again",
		hex.EncodeToString(e.Got), hex.EncodeToString(e.Want))
}
