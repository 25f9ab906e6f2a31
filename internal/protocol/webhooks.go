package protocol

import "github.com/varve-dev/varve/internal/session"

// NewWebhook is a webhook that was just made, or has another secret. This answer alone has its text.
type NewWebhook struct {
	Secret string `json:"secret"`
	session.Webhook
}

// WebhookRequest is the body that makes or changes a webhook. An absent member keeps what it is; no types are all.
type WebhookRequest struct {
	URL   string               `json:"url,omitempty"`
	Name  *string              `json:"name,omitempty"`
	Types *[]session.EventType `json:"types,omitempty"`
}
