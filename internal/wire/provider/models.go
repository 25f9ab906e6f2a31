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

// ModelRules names the requirements that this model, or its server, has and most others of its format do not, "" for
// none. d is the server's dialect, "" for that of the model's name.
func ModelRules(f session.Format, d Dialect, model string) string {
	if d == "" {
		d = DialectOf(f, model)
	}
	server := In(f, d)
	rules := string(server.Dialect)
	switch {
	case f == session.Anthropic && RefusesPrefill(model), f == session.AISDK && server.EndsWithUser(model):
		rules += "-prefill"
	case f == session.Gemini && IsOlderGemini(model):
		rules += "-unsigned"
	case server.MustReason(model):
		rules += "-thinks"
	}
	return rules
}
