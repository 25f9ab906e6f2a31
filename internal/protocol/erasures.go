package protocol

import "encoding/json"

// ErasureRequest is the body of POST /v1/erasures.
type ErasureRequest struct {
	Metadata json.RawMessage `json:"metadata"` // that the sessions have
}

// KeySet has the keys that verify receipts, as a JSON Web Key Set (RFC 7517).
type KeySet struct {
	Keys []VerificationKey `json:"keys"`
}

// VerificationKey is a public Ed25519 key as a JSON Web Key (RFC 8037).
type VerificationKey struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	Use   string `json:"use"`
	ID    string `json:"kid"`
	X     string `json:"x"`
}

// HoldRequest is the body that places a legal hold.
type HoldRequest struct {
	Reason string `json:"reason"`
}
