package protocol

import "encoding/json"

// ErasureRequest is the body of POST /v1/erasures.
type ErasureRequest struct {
	Metadata json.RawMessage `json:"metadata"` // that the sessions have
}

// HoldRequest is the body that places a legal hold.
type HoldRequest struct {
	Reason string `json:"reason"`
}
