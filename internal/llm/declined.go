package llm

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/egress"
)

// ContextLength is the Reason of an ErrRejected for a dialogue that is too long for the model.
const ContextLength = "context_length_exceeded"

// maxProblem is how much of an error's body is read.
const maxProblem = 64 << 10

// declined returns the error of an answer that is not 200.
func (l link) declined(model string, r *http.Response) *Error {
	failed := &Error{Kind: kindOf(r.StatusCode), Model: model, Status: r.StatusCode, Free: r.StatusCode >= 300}
	failed.RetryAfter = egress.RetryAfter(r.Header)
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxProblem)) // what cannot be read is as good as no body
	failed.Reason = "status " + strconv.Itoa(r.StatusCode)
	if r.StatusCode >= 300 && r.StatusCode < 400 {
		failed.Reason += ", a redirect, which is not followed"
	}
	if said := l.said(body); said != "" {
		failed.Reason += ", " + said
	}
	if failed.Kind == ErrRejected && tooLong(r.StatusCode, failed.Reason, body) {
		failed.Reason = ContextLength
	}
	return failed
}

func kindOf(status int) error {
	switch {
	case status == http.StatusTooManyRequests:
		return ErrLimited
	case status == http.StatusRequestTimeout || status >= 500:
		return ErrUnavailable
	case status < 300:
		return ErrMalformed
	}
	return ErrRejected // redirects, too
}

// identifier is what a provider's code of an error looks like. A sentence might quote what was sent.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,47}$`)

// said returns the identifiers of an error in a provider's body: its code, or its type, and the member it is about.
func (l link) said(body []byte) string {
	type problem struct {
		Code, Type, Param any
	}
	var document struct {
		Error json.RawMessage
		problem
	}
	if json.Unmarshal(body, &document) != nil {
		return ""
	}
	found := document.problem
	if len(document.Error) > 0 && json.Unmarshal(document.Error, &found) != nil {
		return ""
	}
	said := cmp.Or(l.harmless(found.Code), l.harmless(found.Type))
	if about := l.harmless(found.Param); about != "" {
		said += " (" + about + ")"
	}
	return said
}

// harmless returns a value if it is an identifier and has no secret of the provider in it, else "".
func (l link) harmless(value any) string {
	text, ok := value.(string)
	if !ok || !identifier.MatchString(text) {
		return ""
	}
	secrets := []Key{l.provider.Key, l.provider.key()}
	for _, header := range l.provider.Headers {
		secrets = append(secrets, header)
	}
	for _, secret := range secrets {
		if secret.Set() && (strings.Contains(text, secret.reveal()) || strings.Contains(secret.reveal(), text)) {
			return ""
		}
	}
	return text
}

// lengths is how providers without a code of their own say that a dialogue is too long.
var lengths = regexp.MustCompile(
	`(?i)context[ _]?(length|window|size)|prompt is too long|too many (input )?tokens|maximum context`)

func tooLong(status int, reason string, body []byte) bool {
	return strings.Contains(reason, ContextLength) || status == http.StatusRequestEntityTooLarge || lengths.Match(body)
}
