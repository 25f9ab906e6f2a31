package session

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// EngineVersion is the version of the engine's decisions and wording; another version may make other bytes.
const EngineVersion = 9

// CheckpointRecord is what the store keeps of a checkpoint for ever: all but its body.
type CheckpointRecord struct {
	N             int       `json:"n" schema:"minimum: 1"`
	Base          int       `json:"base"`          // the checkpoint that it was compacted from, 0 for the log
	RestoredFrom  *int      `json:"restored_from"` // the checkpoint whose rendition was restored
	Through       int64     `json:"through_seq"`   // the last message that it covers
	Tokens        int64     `json:"tokens"`        // of its rendition
	Kept          *int64    `json:"kept_tokens"`   // of the view's beginning that kept its bytes; null: not counted
	BodyBytes     int       `json:"body_bytes"`
	HasBody       bool      `json:"has_body"` // the last ten have bodies
	EngineVersion int       `json:"engine_version"`
	PolicyDigest  string    `json:"policy_digest" schema:"SHA256"` // SHA-256 of the policy's document
	Run           uuid.UUID `json:"run"`
	CreatedAt     time.Time `json:"created_at"`
}

// Lineage is a checkpoint with what it and those that it builds on took out of the view.
type Lineage struct {
	CheckpointRecord
	Policy    json.RawMessage
	Units     int
	OpenCalls int
	Manifests []json.RawMessage // its own first, then that of its base, and so on to the log
}
