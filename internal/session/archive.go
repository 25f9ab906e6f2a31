package session

import (
	"time"

	"github.com/google/uuid"
)

// ArchiveState is the state of an archive.
type ArchiveState string

// The states of an archive.
const (
	Archiving ArchiveState = "archiving" // the session's rows are still there, and nobody changes them
	Archived  ArchiveState = "archived"  // what was said lies in the archive alone
	Restoring ArchiveState = "restoring"
	Restored  ArchiveState = "restored" // at once: only the answer to who asked for it says so
)

// Archive is an archived session, one that is on its way there, or one on its way back.
type Archive struct {
	Session     string       `json:"session"` // its id
	Key         uuid.UUID    `json:"key"`
	State       ArchiveState `json:"state"`
	AskedAt     time.Time    `json:"asked_at"`
	ArchivedAt  *time.Time   `json:"archived_at"` // when it was complete
	ExpiresAt   *time.Time   `json:"expires_at"`  // when it will be erased, nil for never
	Messages    int64        `json:"messages"`
	Results     int64        `json:"results"`
	Checkpoints int64        `json:"checkpoints"`
	Bytes       int64        `json:"bytes"`        // of messages and results
	StoredBytes int64        `json:"stored_bytes"` // of the archive
	Rows        int64        `json:"rows"`         // of the session
	DoneRows    int64        `json:"done_rows"`    // of these, those that were archived, or are back
	SHA256      *string      `json:"sha256"`       // of the SHA-256 of its parts; nil until it is complete
	Parts       int          `json:"parts"`
	Store       string       `json:"store"` // postgres, file or s3
	Error       *string      `json:"error"` // of the last attempt, if that failed
	FailedAt    *time.Time   `json:"failed_at"`
}

// Place is where what was said in a session is.
type Place struct {
	Key      uuid.UUID
	Archived bool // in its archive, or on its way there or back
	Cold     bool // in the archive of a cold session, or on its way there or back
	Thawed   bool // it was cold until a moment ago
}
