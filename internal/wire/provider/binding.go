package provider

import (
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// BindsThinking reports whether a model's signature of thinking holds only behind all that stood before it when it was
// made. Claude's do from version 5.1 on (platform.claude.com/docs/en/build-with-claude/preserved-thinking).
func BindsThinking(model string) bool {
	major, minor := claudeVersion(model)
	return major > 5 || major == 5 && minor >= 1
}

// TakesSystem reports whether a server takes messages of the system between others: Anthropic's own API does for Opus
// 4.8 and for all models from version 5 on
// (platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).
func TakesSystem(f session.Format, d Dialect, model string) bool {
	if f != session.Anthropic || d == Bedrock || d == Vertex {
		return false
	}
	major, minor := claudeVersion(model)
	opus := strings.Contains(BaseModel(model), "opus")
	return major >= 5 || major == 4 && minor >= 8 && opus
}

// claudeVersion returns the version of a model of Anthropic's, 0 for others.
func claudeVersion(model string) (major, minor int) {
	name, ok := strings.CutPrefix(BaseModel(model), "claude-")
	if !ok {
		return 0, 0
	}
	var version []int
	separates := func(c rune) bool { return strings.ContainsRune("-.@:", c) }
	for field := range strings.FieldsFuncSeq(name, separates) {
		if n, err := strconv.Atoi(field); err == nil && len(field) <= 2 { // no family, and no date
			version = append(version, n)
		}
	}
	version = append(version, 0, 0)
	return version[0], version[1]
}

// SendsThinking reports whether views of a format hand signed thinking back to a model of Anthropic's.
func SendsThinking(f session.Format) bool { return f == session.Anthropic || f == session.AISDK }
