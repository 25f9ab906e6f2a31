package session

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"
)

// The bounds of webhooks.
const (
	MaxWebhooks      = 16 // of a tenant
	MaxWebhookURL    = 2048
	MaxSecretOverlap = 7 * 24 * time.Hour
	SecretOverlap    = 24 * time.Hour // unless a rotation says otherwise
)

// The errors of webhooks.
var (
	ErrTooManyWebhooks = errors.New("the tenant has as many webhooks as it may have: delete one first")
	ErrWebhookDisabled = errors.New("the webhook is disabled: enable it first")
)

// Webhook is where events are sent.
type Webhook struct {
	ID              uuid.UUID   `json:"id"`
	Name            string      `json:"name"`
	URL             string      `json:"url"`
	Types           []EventType `json:"types"` // empty: all
	CreatedAt       time.Time   `json:"created_at"`
	DisabledAt      *time.Time  `json:"disabled_at"`
	DisabledReason  *string     `json:"disabled_reason"`
	Failures        int         `json:"failures"` // rounds in a row in which nothing was delivered
	FailingSince    *time.Time  `json:"failing_since"`
	LastError       *string     `json:"last_error"`
	LastFailedAt    *time.Time  `json:"last_failed_at"`
	LastDeliveredAt *time.Time  `json:"last_delivered_at"`
	Delivered       int64       `json:"delivered"`
	Pending         int64       `json:"pending"` // events that wait, among those that were looked at
	Dropped         int64       `json:"dropped"` // events that were forgotten before they could be delivered
}

// WebhookChange is what changes a webhook; nil keeps what it has.
type WebhookChange struct {
	Name  *string
	URL   *string
	Types *[]EventType
}

// WebhookSecret is what signs the requests to a webhook.
type WebhookSecret [32]byte

// NewWebhookSecret makes a secret.
func NewWebhookSecret() (s WebhookSecret) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// Text returns the secret as the Standard Webhooks write it.
func (s WebhookSecret) Text() string { return "whsec_" + base64.StdEncoding.EncodeToString(s[:]) }
