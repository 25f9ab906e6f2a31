package api

import (
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// reported is the usage that a body reports.
type reported struct {
	requests []session.Usage // in order
	each     bool            // the body has an array: each of them is one request's
}

const (
	// maxUsageTokens is far more than any request to a model has.
	maxUsageTokens = 1_000_000_000

	// maxUsages is how many requests to a model one turn may have had.
	maxUsages = 1000
)

// readUsage reads what a provider reported: for one request, or, in an array, for each of a turn.
func readUsage(d *request.Document, value rawjson.Span) *reported {
	if d.Data[value.Start] != '[' {
		return &reported{requests: []session.Usage{readRequestUsage(d, "/usage", value)}}
	}
	spans, _ := d.Array("/usage", value)
	if len(spans) == 0 || len(spans) > maxUsages {
		d.Wrong("/usage", request.InvalidRequest,
			"must have the usage of 1 to %d requests, in the order of the steps, not of %d", maxUsages, len(spans))
		return nil
	}
	r := &reported{each: true}
	for i, span := range spans {
		r.requests = append(r.requests, readRequestUsage(d, request.PointerTo("/usage", i), span))
	}
	return r
}

var usageFields = []string{"model", "input_tokens", "cache_creation_tokens", "cache_read_tokens", "output_tokens"}

func readRequestUsage(d *request.Document, pointer string, value rawjson.Span) (u session.Usage) {
	counted := false
	for name, member := range d.Members(pointer, value, usageFields) {
		at := pointer + "/" + name
		switch name {
		case "model":
			u.Model, _ = d.Text(at, member, session.MaxIDBytes)
		case "input_tokens":
			u.InputTokens = d.Integer(at, member, 0, maxUsageTokens)
			counted = true
		case "cache_creation_tokens":
			u.CacheCreationTokens = d.Integer(at, member, 0, maxUsageTokens)
		case "cache_read_tokens":
			u.CacheReadTokens = d.Integer(at, member, 0, maxUsageTokens)
		case "output_tokens":
			u.OutputTokens = d.Integer(at, member, 0, maxUsageTokens)
		}
	}
	if !counted && d.Data[value.Start] == '{' {
		d.Wrong(pointer+"/input_tokens", request.InvalidRequest,
			"input_tokens is missing: what the provider counted beside the cached tokens")
	}
	return u
}

// of returns the usage of the request whose answer is the last message of the assistant, and why it is ignored if
// no caller can know it: libraries add up the usage of all requests that a message of several steps took.
func (r *reported) of(f session.Format, messages []session.NewMessage) (last *session.Usage, ignored string) {
	if r == nil {
		return nil, ""
	}
	last = &r.requests[len(r.requests)-1]
	if r.each {
		return last, ""
	}
	for _, m := range slices.Backward(messages) {
		if m.Role != "assistant" {
			continue
		}
		if steps := wire.Answers(f, m.Body); steps > 1 {
			return nil, fmt.Sprintf("the message of the assistant has %d steps, and one usage may be their sum: "+
				"report an array with the usage of each step, or of the last one", steps)
		}
		break
	}
	return last, ""
}
