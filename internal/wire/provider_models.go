package wire

import (
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// baseModel is a model's name without what providers put in front of it: "us.anthropic.claude-opus-4-6-v1:0" and
// "anthropic/claude-opus-4-6" begin with claude-opus-4-6.
func baseModel(model string) string {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, family := range []string{"claude", "mistral", "gemini"} {
		if i := strings.Index(model, "."+family); i >= 0 {
			return model[i+1:]
		}
	}
	return model
}

// RefusesPrefill reports whether a model wants the user's message last: Anthropic's do from version 4.6 on.
func RefusesPrefill(model string) bool {
	name, ok := strings.CutPrefix(baseModel(model), "claude-")
	if !ok {
		return false
	}
	major, minor := -1, 0
	for field := range strings.FieldsFuncSeq(name, func(c rune) bool { return c == '-' || c == '.' || c == '@' || c == ':' }) {
		n, err := strconv.Atoi(field)
		switch {
		case err != nil || len(field) > 2: // a family, or a date
		case major < 0:
			major = n
		default:
			minor = n
			return major > 4 || major == 4 && minor >= 6
		}
	}
	return major > 4
}

// mistral reports whether a model is one of Mistral's.
func mistral(model string) bool {
	model = baseModel(model)
	for _, family := range []string{"mistral", "mixtral", "magistral", "codestral", "ministral", "pixtral", "devstral", "open-mistral", "open-mixtral"} {
		if strings.HasPrefix(model, family) {
			return true
		}
	}
	return false
}

// olderGemini reports whether a model is a Gemini of before version 3, which has no signatures to check.
func olderGemini(model string) bool {
	version, ok := strings.CutPrefix(baseModel(model), "gemini-")
	return ok && version != "" && (version[0] == '1' || version[0] == '2')
}

// RulesOfModel names what a provider wants of a view for this model and not for most others, "" for nothing.
func RulesOfModel(f session.Format, model string) string {
	switch {
	case f == session.Anthropic && RefusesPrefill(model):
		return "prefill"
	case f == session.OpenAIChat && mistral(model):
		return "mistral"
	case f == session.Gemini && olderGemini(model):
		return "unsigned"
	}
	return ""
}
