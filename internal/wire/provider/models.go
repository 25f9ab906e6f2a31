package provider

import (
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// BaseModel returns a model's name without what providers put in front of it: for "us.anthropic.claude-opus-4-6-v1:0"
// and "anthropic/claude-opus-4-6" it begins with claude-opus-4-6.
func BaseModel(model string) string {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, family := range []string{"claude", "mistral", "gemini"} {
		if i := strings.Index(model, "."+family); i >= 0 {
			return model[i+1:]
		}
	}
	return model
}

// RefusesPrefill reports whether a model requires the user's message to be the last: Anthropic's do from version 4.6
// on.
func RefusesPrefill(model string) bool {
	name, ok := strings.CutPrefix(BaseModel(model), "claude-")
	if !ok {
		return false
	}
	major := -1
	separates := func(c rune) bool { return c == '-' || c == '.' || c == '@' || c == ':' }
	for field := range strings.FieldsFuncSeq(name, separates) {
		n, err := strconv.Atoi(field)
		switch {
		case err != nil || len(field) > 2: // a family, or a date
		case major < 0:
			major = n
		default:
			return major > 4 || major == 4 && n >= 6
		}
	}
	return major > 4
}

// mistralFamilies begin the names of Mistral's models.
var mistralFamilies = []string{
	"mistral", "mixtral", "magistral", "codestral", "ministral", "pixtral", "devstral", "open-mistral", "open-mixtral",
}

// MistralIDLength is the length of the ids of calls, of letters and digits alone, that Mistral's models take.
const MistralIDLength = 9

// IsMistral reports whether a model is one of Mistral's.
func IsMistral(model string) bool {
	model = BaseModel(model)
	return slices.ContainsFunc(mistralFamilies, func(family string) bool { return strings.HasPrefix(model, family) })
}

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
