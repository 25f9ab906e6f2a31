package api

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// maxUsageTokens is far more than any request to a model has.
const maxUsageTokens = 1_000_000_000

var usageFields = []string{"model", "input_tokens", "cache_creation_tokens", "cache_read_tokens", "output_tokens"}

// readUsage reads what a provider reported for one request.
func (d *document) readUsage(value rawjson.Span) *session.Usage {
	var u session.Usage
	counted := false
	for name, member := range d.members("/usage", value, usageFields) {
		switch name {
		case "model":
			u.Model, _ = d.text("/usage/model", member, session.MaxIDBytes)
		case "input_tokens":
			u.InputTokens = d.integer("/usage/input_tokens", member, 0, maxUsageTokens)
			counted = true
		case "cache_creation_tokens":
			u.CacheCreationTokens = d.integer("/usage/cache_creation_tokens", member, 0, maxUsageTokens)
		case "cache_read_tokens":
			u.CacheReadTokens = d.integer("/usage/cache_read_tokens", member, 0, maxUsageTokens)
		case "output_tokens":
			u.OutputTokens = d.integer("/usage/output_tokens", member, 0, maxUsageTokens)
		}
	}
	if !counted && d.data[value.Start] == '{' {
		d.wrong("/usage/input_tokens", invalidRequest, "input_tokens is missing: what the provider counted beside the cached tokens")
	}
	return &u
}
