package upload

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// How large uploads may be.
const (
	maxBytes          = 1 << 30 // of one result, decompressed
	maxToolBytes      = 256
	maxMediaTypeBytes = 128
)

// begun is a result that is about to be uploaded.
type begun struct {
	Key       string // the Idempotency-Key, "" for none
	Tool      string
	CallID    string
	MediaType string
	SHA256    []byte // that it must have, nil for any
}

// Upload is a result that is uploaded in one or several requests.
type Upload struct {
	Session    session.Key
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
	errEnded   = errors.New("the upload has ended")
	errTooMany = errors.New("too many uploads")
	errOffset  = errors.New("the bytes do not continue those that are stored")
	errDigest  = errors.New("the bytes have another SHA-256")
)

// tooMany is errTooMany, with what the caller can do.
type tooMany string

// What a caller can do about too many uploads of a session, and of a tenant.
var (
	sessionFull = fmt.Sprintf("the session has %d uploads that are not complete: complete some, DELETE some, or let "+
		"them expire after a day", session.MaxUploads)
	tenantFull = fmt.Sprintf("the tenant has %d uploads under way here, which are all that it may have at once: send "+
		"this one when one of them is done", maxReceiving)
)

func (e tooMany) Error() string { return string(e) }

// Unwrap returns errTooMany.
func (e tooMany) Unwrap() error { return errTooMany }

// offsetError is returned if bytes of an upload do not continue those that are stored.
type offsetError struct {
	Upload       uuid.UUID
	Given, Right int64
}

// Unwrap returns errOffset.
func (e *offsetError) Unwrap() error { return errOffset }

func (e *offsetError) Error() string {
	return fmt.Sprintf("the bytes begin at offset %d, but upload %s has %d: send the bytes from there on", e.Given,
		e.Upload, e.Right)
}

// digestError is returned if an upload has another SHA-256 than it should.
type digestError struct{ Want, Got []byte }

// Unwrap returns errDigest.
func (e *digestError) Unwrap() error { return errDigest }

func (e *digestError) Error() string {
	return fmt.Sprintf("the bytes have the SHA-256 %s, not %s: nothing was kept, upload them again",
		hex.EncodeToString(e.Got), hex.EncodeToString(e.Want))
}

// Answer is a result that is uploaded in one request or several.
type Answer struct {
	ID        uuid.UUID   `json:"id"`
	State     UploadState `json:"state"`
	Offset    int64       `json:"offset"` // bytes that are stored: where the next body begins
	Tool      string      `json:"tool"`
	CallID    string      `json:"call_id"`
	MediaType string      `json:"media_type"`
	// in hexadecimal; null for any
	ExpectedSHA256 *string         `json:"expected_sha256" schema:"pattern: '^[0-9a-f]{64}$'"`
	CreatedAt      time.Time       `json:"created_at"`
	ExpiresAt      *time.Time      `json:"expires_at"` // null for one that is complete
	Result         *UploadedResult `json:"result"`     // null until it is complete
}

// UploadState is the state of an upload.
type UploadState string

// The states of an upload.
const (
	Receiving UploadState = "receiving"
	Complete  UploadState = "complete"
)

// UploadedResult is a result that was uploaded, with the text that stands for it in a message.
type UploadedResult struct {
	protocol.Result
	Upload uuid.UUID `json:"upload"`
	// to be put into the message: all of a small result; head and tail of a large one around a line that names it;
	// of what is no text a line that says what it is
	Text string `json:"text"`
}
