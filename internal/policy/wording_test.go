package policy_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
)

// toolAndRef matches a tool of the product and the ref that it takes, as a text names them.
var toolAndRef = regexp.MustCompile(`\b(read_result|get_messages) (ref=)?\{ref\}`)

// otherTool matches what would send a model to a tool or a file that is not there.
var otherTool = regexp.MustCompile(`(?i)\buse \w+ on\b|\bRead\b|tool_output_cache|(?:at|path) \{ref\}`)

// TestEveryWordingNamesTheToolThatBringsBack: a model that has only a view must know what to call, with which argument.
func TestEveryWordingNamesTheToolThatBringsBack(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"default", "tool-compaction", "cortex", "falai", "llm-proxy", "codelia"} {
		p, err := policy.Parse([]byte(`{"profile":"` + profile + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		words := reflect.ValueOf(p.Wording)
		for i := range words.NumField() {
			name, text := words.Type().Field(i).Name, words.Field(i).String()
			if name == "BookendHead" || text == "" {
				continue // stands before a bookend, whose own line names the tool
			}
			if !toolAndRef.MatchString(text) || otherTool.MatchString(strings.ReplaceAll(text, "read_result", "")) {
				t.Errorf("%s of %s: %q", name, profile, text)
			}
		}
	}
}
