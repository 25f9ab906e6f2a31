package peers

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Models are models of OpenAI, Anthropic (with and without prefill), Anthropic at Bedrock, Google (with and without
// signatures), Mistral, Groq, DeepSeek and Qwen, and none that is known.
var Models = []string{
	"", "gpt-5", "claude-sonnet-4-5", "claude-opus-4-6", "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
	"gemini-2.5-pro", "gemini-3-pro-preview",
	"mistral-large-latest", "groq/llama-3.3-70b-versatile", "deepseek-reasoner", "qwen3-max",
}

// Suite checks many views. Those that are the same for the rules are checked once.
type Suite struct {
	Every int // every how manieth view is given to the packages, too; 0 for all

	t        testing.TB
	checker  *Checker
	seen     map[[sha256.Size]byte]bool
	checked  int
	piped    int
	excepted map[string]int
	failures map[string]*failure
}

// failure is a kind of mistake, and the first of them.
type failure struct {
	count int
	first string
}

// NewSuite starts a Suite for a test.
func NewSuite(t testing.TB) *Suite {
	t.Helper()
	s := &Suite{t: t, checker: Start(t), seen: map[[sha256.Size]byte]bool{}}
	s.excepted, s.failures = map[string]int{}, map[string]*failure{}
	return s
}

// ViewOf returns a view of a format, whose first system messages are part of its messages where the provider takes
// them there.
func ViewOf(format, model string, bodies [][]byte, system int, open bool) *View {
	v := &View{Format: format, Model: model, Messages: []json.RawMessage{}, Open: open}
	if format == "anthropic" || format == "gemini" {
		bodies = bodies[system:]
	}
	for _, body := range bodies {
		v.Messages = append(v.Messages, body)
	}
	return v
}

// dialect returns what the checks know of a model in a format: views that do not differ in it are the same to them.
func dialect(v *View) string {
	if v.Format == "anthropic" || v.Format == "gemini" || v.Format == "ai-sdk" || v.Format == "openai-chat" {
		return v.Model
	}
	return ""
}

// Check checks a view, unless the same one was.
func (s *Suite) Check(name string, v *View) {
	s.t.Helper()
	line, err := json.Marshal(v.Messages)
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	digest := sha256.Sum256(fmt.Appendf(line, "%s %s %t", v.Format, dialect(v), v.Open))
	if s.seen[digest] || len(v.Messages) == 0 && v.Open {
		return
	}
	s.seen[digest] = true
	s.checked++
	v.Pipe = !v.Open && (s.Every == 0 || s.checked%s.Every == 0)
	if v.Pipe {
		s.piped++
	}
	for _, found := range s.checker.Check(v) {
		messages, err := json.Marshal(v.Messages)
		if err != nil {
			s.t.Fatal(err)
		}
		s.Found(v.Format, found, fmt.Sprintf("%s for %q at %s\n\t%s", name, v.Model, found.At, messages))
	}
}

// Found counts a mistake in a view of a format by its kind, and keeps the first of them to report it.
func (s *Suite) Found(format string, found Violation, detail string) {
	if reason := excepted(format, found); reason != "" {
		s.excepted[reason]++
		return
	}
	kind := fmt.Sprintf("%s, %s: %s %s", format, found.By, path(found.At), quoted.ReplaceAllString(found.What, `"…"`))
	if s.failures[kind] == nil {
		s.failures[kind] = &failure{first: detail}
	}
	s.failures[kind].count++
}

// quoted are values that an answer repeats.
var quoted = regexp.MustCompile(
	`"(?:[^"\\]|\\.)*"|for tool calls? .*|Unexpected (?:end|token) .*|[0-9]+ (?:of|responses to) [0-9]+`)

// path returns a path without the numbers of elements, by which the same mistake is known again.
func path(at string) string {
	isNumber := func(field string) bool { return field != "" && strings.Trim(field, "0123456789") == "" }
	return strings.Join(slices.DeleteFunc(strings.Split(at, "/"), isNumber), "/")
}

// Report ends the test with what was found.
func (s *Suite) Report() {
	s.t.Helper()
	s.t.Logf("%d different views, %d given to the packages", s.checked, s.piped)
	for reason, n := range s.excepted {
		s.t.Logf("%d times: %s", n, reason)
	}
	for kind, f := range s.failures {
		s.t.Errorf("%d times: %s\n\tfirst in %.3000s", f.count, kind, f.first)
	}
}
