package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/varve-dev/varve/internal/egress"
	"github.com/varve-dev/varve/internal/trace"
)

// maxAnswer is how much of an answer is read.
const maxAnswer = 8 << 20

// link is the way to a provider, over which the protocols send.
type link struct {
	provider Provider
	client   *http.Client
}

func newLink(p Provider) link {
	rule := egress.Rule{Public: strings.HasPrefix(p.BaseURL, "https:"), Private: p.AllowPrivate}
	return link{p, egress.Client(egress.Transport(egress.Dialer(rule), p.Concurrency))}
}

// model returns what makes an attempt of a call of a model with the operator's name.
func (l link) model(name string, d Definition) Model {
	switch l.provider.Kind {
	case OpenAIResponses:
		return &response{l, name, d}
	case Anthropic:
		return &messages{l, name, d}
	default:
		return &chat{l, name, d, ownHost(l.provider.BaseURL)}
	}
}

// post sends a request for the model of that name and reads the answer into a struct. Members of another type than the
// struct's are as if they were missing. Its error is an *Error, or that of ctx.
func (l link) post(ctx context.Context, name, path string, request, into any) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil {
		return &Error{Kind: ErrRejected, Model: name, Free: true, Reason: "the request cannot be written as JSON"}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.provider.BaseURL+path, &document)
	if err != nil {
		return &Error{Kind: ErrRejected, Model: name, Free: true, Reason: "its address is not valid"}
	}
	l.addHeaders(r.Header)
	trace.Send(ctx, r.Header)
	response, err := l.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return notReached(name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return l.declined(name, response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case len(body) > maxAnswer:
		return &Error{Kind: ErrMalformed, Model: name, Reason: "it is larger than 8 MiB"}
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		reason := "the connection broke in the middle of the answer"
		return &Error{Kind: ErrUnavailable, Model: name, Reason: reason}
	}
	err = json.Unmarshal(body, into)
	var mistyped *json.UnmarshalTypeError
	if err != nil && (!errors.As(err, &mistyped) || mistyped.Field == "") {
		reason := "it is not the JSON of the protocol"
		return &Error{Kind: ErrMalformed, Model: name, Status: http.StatusOK, Reason: reason}
	}
	return nil
}

// Reach asks a provider for its list of models, which costs nothing. It returns an *Error if the provider does not
// answer or does not take the key; one that has no list has answered.
func Reach(ctx context.Context, name string, p Provider) error {
	l := newLink(p.withDefaults())
	defer l.client.CloseIdleConnections()
	path := "models"
	if l.provider.Kind == Anthropic {
		path = l.versioned(path)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.provider.BaseURL+path, nil)
	if err != nil {
		return &Error{Kind: ErrRejected, Model: name, Free: true, Reason: "its address is not valid"}
	}
	l.addHeaders(r.Header)
	response, err := l.client.Do(r)
	if err != nil {
		return notReached(name, err)
	}
	defer response.Body.Close()
	status := response.StatusCode
	if status == http.StatusUnauthorized || status == http.StatusForbidden || status >= 500 {
		return l.declined(name, response)
	}
	return nil
}

// versioned returns a path of Anthropic's, whose version the operator may have written into the address.
func (l link) versioned(path string) string {
	if strings.HasSuffix(l.provider.BaseURL, "/v1/") {
		return path
	}
	return "v1/" + path
}

// addHeaders adds the headers of a request. Those of the operator replace ours.
func (l link) addHeaders(h http.Header) {
	h.Set("Accept", "application/json")
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "varve")
	anthropic, key := l.provider.Kind == Anthropic, l.provider.key()
	if anthropic {
		h.Set("Anthropic-Version", "2023-06-01")
	}
	switch {
	case key.Set() && anthropic:
		h.Set("X-Api-Key", key.reveal())
	case key.Set():
		h.Set("Authorization", "Bearer "+key.reveal())
	}
	for header, value := range l.provider.Headers {
		h.Set(header, value.reveal())
	}
}

// reasons has the failures of a connection. Free ones came before the request was sent.
var reasons = []struct {
	is   func(error) bool
	text string
	free bool
}{
	{as[*net.DNSError], "its name cannot be resolved", true},
	{as[*tls.CertificateVerificationError], "its certificate cannot be verified", true},
	{as[tls.RecordHeaderError], "it does not speak TLS", true},
	{func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }, "it refuses the connection", true},
	{func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }, "it reset the connection", false},
	{func(err error) bool { return errors.Is(err, io.EOF) }, "it closed the connection", false},
}

func as[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// notReached returns the error of a request without an answer.
func notReached(model string, err error) *Error {
	if errors.Is(err, egress.ErrRefused) {
		return &Error{Kind: ErrRejected, Model: model, Free: true, Reason: "its address is not allowed: one of this " +
			"machine or of a private network needs allow_private, and others that are not of the internet never are"}
	}
	failed := &Error{Kind: ErrUnavailable, Model: model, Reason: "the connection failed"}
	for _, r := range reasons {
		if r.is(err) {
			failed.Reason, failed.Free = r.text, r.free
			break
		}
	}
	var dialed *net.OpError
	failed.Free = failed.Free || errors.As(err, &dialed) && dialed.Op == "dial"
	return failed
}
