package api

import (
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// maxUsageTokens is far more than any request to a model has.
const maxUsageTokens = 1_000_000_000

var usageFields = []string{"model", "input_tokens", "cache_creation_tokens", "cache_read_tokens", "output_tokens"}

// readUsage reads what a provider reported for one request.
func readUsage(d *request.Document, value rawjson.Span) *session.Usage {
	var u session.Usage
	counted := false
	for name, member := range d.Members("/usage", value, usageFields) {
		switch name {
		case "model":
			u.Model, _ = d.Text("/usage/model", member, session.MaxIDBytes)
		case "input_tokens":
			u.InputTokens = d.Integer("/usage/input_tokens", member, 0, maxUsageTokens)
			counted = true
		case "cache_creation_tokens":
			u.CacheCreationTokens = d.Integer("/usage/cache_creation_tokens", member, 0, maxUsageTokens)
		case "cache_read_tokens":
			u.CacheReadTokens = d.Integer("/usage/cache_read_tokens", member, 0, maxUsageTokens)
		case "output_tokens":
			u.OutputTokens = d.Integer("/usage/output_tokens", member, 0, maxUsageTokens)
		}
	}
	if !counted && d.Data[value.Start] == '{' {
		d.Wrong("/usage/input_tokens", request.InvalidRequest,
			"input_tokens is missing: what the provider counted beside the cached tokens")
	}
	return &u
}
