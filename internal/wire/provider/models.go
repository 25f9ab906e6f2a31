package provider

import (
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

// Owner returns who can read what a model of this name encrypts: the server before the name, or else the model's own
// provider; "" if the name does not tell.
func Owner(model string) string {
	name := strings.ToLower(model)
	server, rest, more := strings.Cut(name, "/")
	if _, gateway := gateways[server]; more && gateway {
		return Owner(rest)
	}
	if more {
		return server
	}
	for _, o := range owners {
		if strings.HasPrefix(name, o.prefix) {
			return o.owner
		}
	}
	return ""
}

// ModelRules names the requirements that this model, or its server, has and most others of its format do not, "" for
// none. d is the server's dialect, "" for that of the model's name.
func ModelRules(f session.Format, d Dialect, model string) string {
	if d == "" {
		d = DialectOf(f, model)
	}
	server := In(f, d)
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
	return rules
}
