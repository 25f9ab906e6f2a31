package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// The bounds of webhooks.
const (
	maxWebhooks = 16 // of a tenant
	maxURL      = 2048
	maxOverlap  = 7 * 24 * time.Hour
	overlap     = 24 * time.Hour // unless a rotation says otherwise
)

// The errors of webhooks.
var (
	errTooMany  = errors.New("the tenant has as many webhooks as it may have: delete one first")
	errDisabled = errors.New("the webhook is disabled: enable it first")
)

// Webhook is where events are sent.
type Webhook struct {
	ID              uuid.UUID           `json:"id"`
	Name            string              `json:"name"`
	URL             string              `json:"url"`
	Types           []session.EventType `json:"types"` // empty: all
	CreatedAt       time.Time           `json:"created_at"`
	DisabledAt      *time.Time          `json:"disabled_at"`
	DisabledReason  *string             `json:"disabled_reason"`
	Failures        int                 `json:"failures"` // rounds in a row in which nothing was delivered
	FailingSince    *time.Time          `json:"failing_since"`
	LastError       *string             `json:"last_error"`
	LastFailedAt    *time.Time          `json:"last_failed_at"`
	LastDeliveredAt *time.Time          `json:"last_delivered_at"`
	Delivered       int64               `json:"delivered"`
	Pending         int64               `json:"pending"` // events that wait, among those that were looked at
	Dropped         int64               `json:"dropped"` // events that were forgotten before they could be delivered
}

// Delivery is an event that a webhook has not got yet.
type Delivery struct {
	N         int64             `json:"n" schema:"minimum: 1"` // its place among the events of the tenant
	Type      session.EventType `json:"type"`
	At        time.Time         `json:"timestamp"` // of the event
	Session   *string           `json:"session"`   // that it is about, null for none
	Attempts  int               `json:"attempts"`  // that failed
	NextTryAt time.Time         `json:"next_try_at"`
	Error     *string           `json:"error"` // of the last attempt, null before one
}

// Change is what changes a webhook; nil keeps what it has.
type Change struct {
	Name  *string
	URL   *string
	Types *[]session.EventType
}

// Secret is what signs the requests to a webhook.
type Secret [32]byte

// NewSecret makes a secret.
func NewSecret() (s Secret) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// Text returns the secret as the Standard Webhooks write it.
func (s Secret) Text() string { return "whsec_" + base64.StdEncoding.EncodeToString(s[:]) }

// Created is a webhook that was just made, or has another secret. This answer alone has its text.
type Created struct {
	Secret string `json:"secret"`
	Webhook
}

// Request is the body that makes or changes a webhook. An absent member keeps what it is; no types are all.
type Request struct {
	URL   string               `json:"url,omitempty"`
	Name  *string              `json:"name,omitempty"`
	Types *[]session.EventType `json:"types,omitempty"`
}
