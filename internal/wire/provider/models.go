package provider

import (
	"cmp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/session"
)

// BaseModel returns the id of the model that a name means, however a platform spells it.
func BaseModel(model string) string { return models.Canonical(model) }

// RefusesPrefill reports whether a model requires the user's message to be the last: Anthropic's do from version 4.6
// on.
func RefusesPrefill(model string) bool { return models.Of(model).RefusesPrefill }

// MistralIDLength is the length of the ids of calls, of letters and digits alone, that Mistral's models take.
const MistralIDLength = 9

// IsMistral reports whether a model is one of Mistral's.
func IsMistral(model string) bool { return models.Of(model).Family == "mistral" }

// IsOlderGemini reports whether a model is a Gemini before version 3, which does not check signatures.
func IsOlderGemini(model string) bool {
	version, ok := strings.CutPrefix(BaseModel(model), "gemini-")
	return ok && version != "" && (version[0] == '1' || version[0] == '2')
}

// owners are who serves models, by how their names begin.
var owners = []struct{ prefix, owner string }{
	{"gpt", "openai"}, {"chatgpt", "openai"}, {"codex", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"},
	{"grok", "xai"},
}

// passing stand before the names of models that others serve, or that were tuned: ft:gpt-4o-2024-08-06:acme::id.
var passing = []string{"openrouter", "litellm_proxy", "vercel", "vercel_ai_gateway", "gateway", "ft"}

// sameServers are other names of servers that read what one encrypts.
var sameServers = map[string]string{
	"azure_ai": "azure", "azure_openai": "azure", "azure-openai": "azure", "x-ai": "xai", "spacexai": "xai",
}

// Owner returns who can read what a model of this name encrypts: the server before the name, be it openai/gpt-5.6 or
// openai:gpt-5.6, or else the model's own provider; "" if the name does not tell.
func Owner(model string) string {
	name := strings.ToLower(model)
	server, rest, more := strings.Cut(name, "/")
	for _, o := range owners {
		if !more && strings.HasPrefix(name, o.prefix) {
			return o.owner
		}
	}
	if !more {
		server, rest, more = strings.Cut(name, ":")
	}
	switch {
	case !more:
		return ""
	case slices.Contains(passing, server):
		return Owner(rest)
	}
	return cmp.Or(sameServers[server], server)
}

// ModelRules names the requirements that this model, or its server, has and most others of its format do not, "" for
// none. d is the server's dialect, "" for that of the model's name.
func ModelRules(f session.Format, d Dialect, model string) string {
	server := For(f, d, model)
	rules := string(server.Dialect)
	if TakesSystem(f, server.Dialect, model) {
		rules += "-system"
	}
	switch {
	case f == session.Anthropic && RefusesPrefill(model), f == session.AISDK && server.EndsWithUser(model):
		rules += "-prefill"
	case (f == session.Gemini || server.SignsCalls) && IsOlderGemini(model):
		rules += "-unsigned"
	case server.MustReason(model, true):
		rules += "-thinks"
	}
	if server == passed[server.Dialect] {
		rules += "-lists"
	}
	return rules
}
