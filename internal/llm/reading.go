package llm

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// reading is an answer that came with 200.
type reading struct {
	model  string // the operator's name
	echoed string // the provider's
	text   string
	usage  Usage
}

// weigh replaces a usage that the provider does not give, or that cannot be, by an estimate. Nothing counts as more
// than was reserved for the call: a provider that says so, whatever its reason, would use up a budget that others need.
func (r *reading) weigh(d summary.Dialogue) {
	u := r.usage
	given := u.Input > 0 && u.Output >= 0 && u.Cached >= 0 && u.Cached <= u.Input
	if !given || u.Output == 0 && r.text != "" {
		u = estimate(d, r.text)
	}
	if limit := bound(d); u.Input > limit.Input || u.Output > limit.Output {
		u.Input, u.Output = min(u.Input, limit.Input), min(u.Output, limit.Output)
		u.Cached = min(u.Cached, u.Input)
		u.Estimated = true
	}
	r.usage = u
}

// failed returns the error of an answer that cannot be used, and what it cost all the same.
func (r *reading) failed(kind error, reason string) (Reply, error) {
	return Reply{}, &Error{Kind: kind, Model: r.model, Status: http.StatusOK, Usage: r.usage, Reason: reason}
}

// thought is what a model has thought, where its server does not tell that from the answer.
var thought = regexp.MustCompile(`(?s)^\s*<think>.*?</think>`)

// maxName is the longest name of a model that is kept.
const maxName = 128

// reply returns the answer, unless it is empty.
func (r *reading) reply() (Reply, error) {
	text := thought.ReplaceAllString(r.text, "")
	if strings.TrimSpace(text) == "" {
		return r.failed(ErrMalformed, "it is empty")
	}
	name := strings.ToValidUTF8(r.echoed[:min(len(r.echoed), maxName)], "")
	return Reply{Text: text, Model: name, Usage: r.usage}, nil
}
