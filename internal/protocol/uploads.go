package protocol

import (
	"time"

	"github.com/google/uuid"
)

// Upload is a result that is uploaded in one request or several.
type Upload struct {
	ID        uuid.UUID   `json:"id"`
	State     UploadState `json:"state"`
	Offset    int64       `json:"offset"` // bytes that are stored: where the next body begins
	Tool      string      `json:"tool"`
	CallID    string      `json:"call_id"`
	MediaType string      `json:"media_type"`
	// in hexadecimal; null for any
	ExpectedSHA256 *string         `json:"expected_sha256" schema:"pattern: '^[0-9a-f]{64}$'"`
	CreatedAt      time.Time       `json:"created_at"`
	ExpiresAt      *time.Time      `json:"expires_at"` // nil for one that is complete
	Result         *UploadedResult `json:"result"`     // null until it is complete
}

// UploadState is the state of an upload.
type UploadState string

// The states of an upload.
const (
	UploadReceiving UploadState = "receiving"
	UploadComplete  UploadState = "complete"
)

// UploadedResult is a result that was uploaded, with the text that stands for it in a message.
type UploadedResult struct {
	Result
	Upload uuid.UUID `json:"upload"`
	// to be put into the message: all of a small result; head and tail of a large one around a line that names it;
	// of what is no text a line that says what it is
	Text string `json:"text"`
}
