package llm

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/varve-dev/varve/internal/egress"
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
		return newResponses(l, name, d)
	case Anthropic:
		return newMessages(l, name, d)
	default:
		return newChat(l, name, d)
	}
}

// next sends a request: the SDKs of the providers call this type by their own names.
type next = func(*http.Request) (*http.Response, error)

// around returns what stands between an SDK and the wire, for the model of that name: it adds the operator's headers,
// takes away what the SDK says about this machine, bounds the answer, and turns every failure into an *Error, which the
// SDK returns as it is.
func (l link) around(name string) func(*http.Request, next) (*http.Response, error) {
	return func(r *http.Request, send next) (*http.Response, error) {
		for header := range r.Header {
			if strings.HasPrefix(header, "X-Stainless-") {
				r.Header.Del(header)
			}
		}
		r.Header.Set("User-Agent", "varve")
		for header, value := range l.provider.Headers {
			r.Header.Set(header, value.reveal())
		}
		response, err := send(r)
		if err != nil {
			if gone := r.Context().Err(); gone != nil {
				return nil, gone
			}
			return nil, notReached(name, err)
		}
		if response.StatusCode != http.StatusOK {
			defer response.Body.Close()
			return nil, l.declined(name, response)
		}
		// The SDKs go by what a server says of its answer, which may be JSON although it says something else.
		response.Header.Set("Content-Type", "application/json")
		response.Body = &answer{body: response.Body, ctx: r.Context(), model: name, left: maxAnswer}
		return response, nil
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

// answer is the body of an answer, up to a bound.
type answer struct {
	body  io.ReadCloser
	ctx   context.Context //nolint:containedctx // of the request that the body answers
	model string
	left  int64
}

// Read reads from the body. Its errors are io.EOF, an *Error, or that of the request's context.
func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, &Error{Kind: ErrMalformed, Model: a.model, Reason: "it is larger than 8 MiB"}
	}
	n, err := a.body.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	switch {
	case err == nil || err == io.EOF: //nolint:errorlint // a reader returns io.EOF itself
		return n, err
	case a.ctx.Err() != nil:
		return n, a.ctx.Err()
	}
	return n, &Error{Kind: ErrUnavailable, Model: a.model, Reason: "the connection broke in the middle of the answer"}
}

// Close closes the body.
func (a *answer) Close() error { return a.body.Close() }

// failure returns the error of a call that an SDK reports. Only an answer that it cannot read has no other origin.
func failure(ctx context.Context, model string, err error) error {
	var failed *Error
	switch {
	case errors.As(err, &failed):
		return failed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &Error{Kind: ErrMalformed, Model: model, Status: http.StatusOK, Reason: "it is not the JSON of the protocol"}
}
