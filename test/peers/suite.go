package peers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Models are models of OpenAI, Anthropic (with and without prefill), Anthropic at Bedrock, Google (with and without
// signatures), Mistral, Groq, DeepSeek and Qwen, and none that is known.
var Models = []string{
	"", "gpt-5", "claude-sonnet-4-5", "claude-opus-4-6", "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
	"gemini-2.5-pro", "gemini-3-pro-preview",
	"mistral-large-latest", "groq/llama-3.3-70b-versatile", "deepseek-reasoner", "qwen3-max",
}

// Suite checks many views in a goroutine of its own. Those that are the same for the rules are checked once.
type Suite struct {
	Every int // every how manieth view is given to the packages, too; 0 for all

	t      testing.TB
	queue  chan check
	done   chan struct{} // closed when all of the queue is checked
	seen   map[[sha256.Size]byte]bool
	queued int
	piped  int

	mu       sync.Mutex // guards what follows
	excepted map[string]int
	failures map[string]*failure
}

// check is a view that is to be checked, and its name.
type check struct {
	name string
	view *View
}

// failure is a kind of mistake, and the first of them.
type failure struct {
	count int
	first string
}

// waiting is how many views may wait while they are made faster than checked.
const waiting = 16

// NewSuite starts a Suite for a test, which must call Report.
func NewSuite(t testing.TB) *Suite {
	t.Helper()
	s := &Suite{t: t, queue: make(chan check, waiting), done: make(chan struct{}), seen: map[[sha256.Size]byte]bool{}}
	s.excepted, s.failures = map[string]int{}, map[string]*failure{}
	checker := Start(t)
	go s.work(checker)
	return s
}

// work checks what is queued until there will be no more.
func (s *Suite) work(checker *Checker) {
	defer close(s.done)
	for c := range s.queue {
		violations, err := checker.Check(c.view)
		if err != nil {
			violations = []Violation{{By: "peers", What: err.Error()}}
		}
		for _, found := range violations {
			messages, _ := json.Marshal(c.view.Messages) // as they were sent to the checks
			s.Found(c.view.Format, found, fmt.Sprintf("%s for %q at %s\n\t%s", c.name, found.Model, found.At, messages))
		}
	}
}

// CheckEach checks what a view becomes in a format for each of some models, where render makes it. Models that get the
// same are checked with one another.
func (s *Suite) CheckEach(name, format string, models []string, open bool, render func(model string) ([][]byte, int)) {
	s.t.Helper()
	var views []*View
	byBodies := map[[sha256.Size]byte]*View{}
	for _, model := range models {
		bodies, system := render(model)
		v := ViewOf(format, model, bodies, system, open)
		digest := digestOf(v)
		if byBodies[digest] == nil {
			byBodies[digest] = v
			views = append(views, v)
		} else {
			byBodies[digest].Models = append(byBodies[digest].Models, model)
		}
	}
	for _, v := range views {
		s.Check(name, v)
	}
}

// ViewOf returns a view for a model, whose first system messages are part of its messages where the provider takes them
// there.
func ViewOf(format, model string, bodies [][]byte, system int, open bool) *View {
	v := &View{Format: format, Models: []string{model}, Messages: []json.RawMessage{}, Open: open}
	if format == "anthropic" || format == "gemini" {
		bodies = bodies[system:]
	}
	for _, body := range bodies {
		v.Messages = append(v.Messages, body)
	}
	return v
}

// digestOf returns a digest of the messages of a view.
func digestOf(v *View) (digest [sha256.Size]byte) {
	h := sha256.New()
	for _, body := range v.Messages {
		_ = binary.Write(h, binary.LittleEndian, int64(len(body))) // never fails
		h.Write(body)
	}
	h.Sum(digest[:0])
	return digest
}

// Check checks a view, unless the same one was, or is to be. One whose calls may wait keeps the rules if it keeps them
// where no call may.
func (s *Suite) Check(name string, v *View) {
	s.t.Helper()
	if len(v.Messages) == 0 && v.Open {
		return
	}
	messages := digestOf(v)
	digest := sha256.Sum256(fmt.Appendf(messages[:], "%s %q", v.Format, v.Models))
	if wasOpen, seen := s.seen[digest]; seen && (!wasOpen || v.Open) {
		return
	}
	s.seen[digest] = v.Open
	s.queued++
	v.Pipe = !v.Open && (s.Every == 0 || s.queued%s.Every == 0)
	if v.Pipe {
		s.piped++
	}
	s.queue <- check{name, v}
}

// Found counts a mistake in a view of a format by its kind, and keeps the first of them to report it.
func (s *Suite) Found(format string, found Violation, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason := excepted(format, found, detail); reason != "" {
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

// Report waits for the checks, and ends the test with what was found.
func (s *Suite) Report() {
	s.t.Helper()
	close(s.queue)
	<-s.done
	s.t.Logf("%d different views, %d given to the packages", s.queued, s.piped)
	for reason, n := range s.excepted {
		s.t.Logf("%d times: %s", n, reason)
	}
	for kind, f := range s.failures {
		s.t.Errorf("%d times: %s\n\tfirst in %.3000s", f.count, kind, f.first)
	}
}
