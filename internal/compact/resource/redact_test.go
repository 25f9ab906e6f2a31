package resource

import (
	"strings"
	"testing"
)

func TestRedactKnowsWordsOfAllScripts(t *testing.T) {
	t.Parallel()
	key := "sk-abcdefghijklmnop"
	for text, want := range map[string]string{
		key + "-":                         "***-",
		"é" + key:                         "é" + key,
		key + "é":                         key + "é",
		key + "-xé":                       "***xé",
		"ak-sk" + strings.Repeat("x", 17): "***",
		"Bearer\u00a0x/y== z":             "Bearer *** z",
		"Bearer  " + key:                  "Bearer  ***",
		strings.Repeat("0a", 16) + "." + strings.Repeat("Z", 15): strings.Repeat("0a", 16) + "." + strings.Repeat("Z", 15),
	} {
		if got := Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}
