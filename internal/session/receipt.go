package session

import (
	"time"

	"github.com/google/uuid"
)

// ReceiptVersion is the version of the form of receipts.
const ReceiptVersion = 1

// Receipt says what an erasure has erased. A session is named by its key, which Varve made. The receipt of a tenant
// names no session: all of the tenant is gone; its Audit is of the operators' trail, and Ended the last row that the
// tenant's own trail had.
type Receipt struct {
	Version      int          `json:"version" schema:"const: 1"`
	ID           uuid.UUID    `json:"id"` // of the erasure
	Kind         ErasureKind  `json:"kind"`
	Installation uuid.UUID    `json:"installation"`
	Tenant       uuid.UUID    `json:"tenant"`
	By           ErasedBy     `json:"by"`
	AskedAt      time.Time    `json:"asked_at"`
	FinishedAt   time.Time    `json:"finished_at"`
	Erased       ErasedCounts `json:"erased"`
	// the keys that Varve had for the erased sessions; none for a tenant
	Sessions []uuid.UUID `json:"sessions"`
	Held     []uuid.UUID `json:"held"` // the keys of sessions that a legal hold has kept
	// SHA-256 over the digests of all that was erased, in hexadecimal digits
	Digest  string      `json:"digest"`
	Audit   TrailHead   `json:"audit"` // after the row of the last session or the tenant
	Ended   *TrailHead  `json:"ended,omitempty"`
	Backups BackupsKept `json:"backups"`
}

// ErasedBy is who asked for an erasure.
type ErasedBy struct {
	Actor   string     `json:"actor"` // who asked for it, as the audit trail has it
	ID      *uuid.UUID `json:"id"`    // of the key
	Request string     `json:"request_id,omitempty"`
}

// ErasedCounts counts what was erased.
type ErasedCounts struct {
	Sessions    int64 `json:"sessions"`
	Messages    int64 `json:"messages"`
	Results     int64 `json:"results"`
	Bodies      int64 `json:"bodies"` // of results, without those that forks still have
	Checkpoints int64 `json:"checkpoints"`
	Bytes       int64 `json:"bytes"`   // of messages and bodies
	Objects     int64 `json:"objects"` // in result stores
}

// TrailHead is a place in an audit trail.
type TrailHead struct {
	N    int64  `json:"n"`
	Hash string `json:"hash"`
}

// BackupsKept says until when a backup may still have what was erased.
type BackupsKept struct {
	// how long backups are kept; null if the operator has not said it
	KeptSeconds *int64     `json:"kept_seconds"`
	GoneBy      *time.Time `json:"gone_by"` // until when a backup may still have what was erased
}
