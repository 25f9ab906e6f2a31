package text_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/text"
)

// named appends the value's name in angle brackets.
func named(dst []byte, name string) []byte { return append(append(append(dst, '<'), name...), '>') }

func TestATemplateIsFilledWithItsValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source, want string
		constant     int
	}{
		"values between text":           {"[{ref}: {tool}]", "[<ref>: <tool>]", 4},
		"a value twice":                 {"{ref}{ref}", "<ref><ref>", 0},
		"no values":                     {"cleared", "cleared", 7},
		"nothing":                       {"", "", 0},
		"a brace that opens no name":    {`{"a": {} { ref} {Ref} {`, `{"a": {} { ref} {Ref} {`, 23},
		"a name that is none, and open": {"{refer to {ref}", "{refer to <ref>", 10},
		"braces around a value":         {"{{ref}}", "{<ref>}", 2},
		"an underscore":                 {"{cut_tokens}", "<cut_tokens>", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, err := text.Parse(c.source, "ref", "tool", "cut_tokens")
			if err != nil {
				t.Fatal(err)
			}
			got := []any{string(template.Append([]byte("> "), named)), template.Constant()}
			if diff := cmp.Diff([]any{"> " + c.want, c.constant}, got); diff != "" {
				t.Errorf("filled, constant (-want +got):\n%s", diff)
			}
			if got, want := template.Places("ref"), strings.Count(c.want, "<ref>"); got != want {
				t.Errorf("%d places for a ref, want %d", got, want)
			}
		})
	}
}

func TestAMistakeInATemplateIsNamed(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"see {reference}":     "there is no value {reference}; there are {ref}, {tool}",
		"see {ref} or {re_f}": "there is no value {re_f}; there are {ref}, {tool}",
		"see {ref for more":   "{ref lacks its closing brace",
		"see {ref":            "{ref lacks its closing brace",
	} {
		if _, err := text.Parse(source, "ref", "tool"); err == nil || err.Error() != want {
			t.Errorf("Parse(%q): %v, want %s", source, err, want)
		}
	}
}

// FuzzTemplate checks that a template whose values are their names in braces is its source.
func FuzzTemplate(f *testing.F) {
	f.Add("a {ref} {tool}")
	f.Add("{{ref}{}{a{tool}")
	f.Fuzz(func(t *testing.T, source string) {
		template, err := text.Parse(source, "ref", "tool")
		if err != nil {
			return
		}
		values := 0
		filled := template.Append(nil, func(dst []byte, name string) []byte {
			values += len(name) + 2
			return append(append(append(dst, '{'), name...), '}')
		})
		if string(filled) != source {
			t.Errorf("%q became %q", source, filled)
		}
		if got := template.Constant(); got != len(source)-values {
			t.Errorf("%q has %d constant bytes, not %d", source, len(source)-values, got)
		}
	})
}
