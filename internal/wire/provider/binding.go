package provider

import (
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/session"
)

// BindsThinking reports whether a model's signature of thinking holds only behind all that stood before it when it was
// made (platform.claude.com/docs/en/build-with-claude/preserved-thinking).
func BindsThinking(model string) bool { return models.Of(model).BindsThinking }

// SendsThinking reports whether views of a format hand signed thinking back to a model of Anthropic's.
func SendsThinking(f session.Format) bool { return f == session.Anthropic || f == session.AISDK }

// TakesSystem reports whether a server takes messages of the system between others: Anthropic's own API does for some
// models (platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).
func TakesSystem(f session.Format, d Dialect, model string) bool {
	return f == session.Anthropic && d != Bedrock && d != Vertex && models.Of(model).SystemInMiddle
}
