package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/google/uuid"
)

// Tenant is a customer of the platform operator.
type Tenant struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// CheckTenantName returns an error for a name that a tenant cannot have.
func CheckTenantName(name string) error {
	if name == "" {
		return fmt.Errorf("a tenant's name must have 1 to %d bytes", MaxIDBytes)
	}
	return CheckName(name)
}

// CheckName returns an error for a name that the database does not take, or that looks like another where it is shown.
func CheckName(name string) error {
	hides := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
	if len(name) > MaxIDBytes || strings.ContainsFunc(name, hides) || !norm.NFC.IsNormalString(name) {
		return fmt.Errorf("a name must have at most %d bytes, in Unicode's form NFC, and no characters that control "+
			"a terminal or the direction of text: %.40q does not", MaxIDBytes, name)
	}
	return nil
}

// Suspension is what is refused of a tenant's requests, "" for nothing.
type Suspension string

// The suspensions.
const (
	SuspendReads  Suspension = "reads"
	SuspendWrites Suspension = "writes"
	SuspendAll    Suspension = "all"
)

// Suspensions returns every suspension.
func Suspensions() []Suspension { return []Suspension{SuspendReads, SuspendWrites, SuspendAll} }

// Refuses reports whether a request is refused that reads, or one that does more.
func (s Suspension) Refuses(reads bool) bool {
	return s == SuspendAll || s == SuspendReads && reads || s == SuspendWrites && !reads
}

// TenantDetails is a tenant as operators see it.
type TenantDetails struct {
	Tenant
	Suspended   *Suspension     `json:"suspended"` // what of the requests of the tenant is refused
	SuspendedAt *time.Time      `json:"suspended_at"`
	Erasure     *uuid.UUID      `json:"erasure"`                      // the erasure that deletes it
	Quotas      json.RawMessage `json:"quotas" schema:"TenantQuotas"` // its own: some members of Quotas
	MostKept    RetentionBound  `json:"retention_at_most" schema:"RetentionBoundState"`
	Usage       TenantUsage     `json:"usage"`
}

// TenantUsage is what a tenant has.
type TenantUsage struct {
	Sessions int64 `json:"sessions"`
	// estimated tokens of all that was appended, erased sessions included, as the ledger has counted it: some
	// seconds behind
	TotalTokens  int64      `json:"total_tokens"`
	LastAppendAt *time.Time `json:"last_append_at"` // as the ledger has seen it
	LiveKeys     int64      `json:"live_keys"`
}

// NewTenant is a tenant to be made with what it has from the beginning.
type NewTenant struct {
	ID     uuid.UUID
	Name   string
	Policy Policy
	Quotas json.RawMessage // nil: those of the processes
	Key    *NewKey         // nil: none

	MostKept RetentionBound // to which its retention is held
}

// TenantChange sets members of a tenant; nil keeps one.
type TenantChange struct {
	Name      *string
	Suspended *Suspension // "" ends a suspension
	Quotas    json.RawMessage
	MostKept  *RetentionBound
}
