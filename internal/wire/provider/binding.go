package provider

import (
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// BindsThinking reports whether a model's signature of thinking holds only behind all that stood before it when it was
// made. Claude's do from version 5.1 on (platform.claude.com/docs/en/build-with-claude/preserved-thinking).
func BindsThinking(model string) bool {
	name, ok := strings.CutPrefix(BaseModel(model), "claude-")
	if !ok {
		return false
	}
	var version []int
	separates := func(c rune) bool { return strings.ContainsRune("-.@:", c) }
	for field := range strings.FieldsFuncSeq(name, separates) {
		if n, err := strconv.Atoi(field); err == nil && len(field) <= 2 { // no family, and no date
			version = append(version, n)
		}
	}
	version = append(version, 0, 0)
	return version[0] > 5 || version[0] == 5 && version[1] >= 1
}

// SendsThinking reports whether views of a format hand signed thinking back to a model of Anthropic's.
func SendsThinking(f session.Format) bool { return f == session.Anthropic || f == session.AISDK }
