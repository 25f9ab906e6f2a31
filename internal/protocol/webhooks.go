package protocol

import "github.com/varve-dev/varve/internal/session"

// NewWebhook is a webhook that was just made, or has another secret. This answer alone has its text.
type NewWebhook struct {
	Secret string `json:"secret"`
	session.Webhook
}
