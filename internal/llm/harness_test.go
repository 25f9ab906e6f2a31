package llm

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
)

var quiet = slog.New(slog.DiscardHandler)

// ask is a dialogue of one question.
var ask = summary.Dialogue{Messages: []summary.Message{
	{Role: "user", Parts: []summary.Part{{Kind: summary.Text, Text: "What is the secret of the replica?"}}},
}}

// at returns a model of a provider at an address.
func at(t *testing.T, url string, p Provider) *Configured {
	t.Helper()
	return defined(t, url, p, Definition{Model: "m", Window: 8000})
}

// defined returns a model of a provider at an address, as it is defined.
func defined(t *testing.T, url string, p Provider, d Definition) *Configured {
	t.Helper()
	d.Provider = "here"
	p.BaseURL, p.AllowPrivate = url, true
	models, err := Open(Config{
		Providers: map[string]Provider{"here": p},
		Models:    map[string]Definition{"small": d},
	}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := models.Named("small")
	return m
}

// served returns a model of a provider over real HTTP.
func served(t *testing.T, p Provider, h http.HandlerFunc) *Configured {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return at(t, server.URL, p)
}

// body returns a handler that answers with a body of JSON.
func body(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

const good = `{"model":"m-1","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"yes"}}],
	"usage":{"prompt_tokens":7,"completion_tokens":1}}`

// pipes are connections without a network, so that a test with them has a clock of its own (testing/synctest).
type pipes struct{ accepted chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.accepted
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// piped returns a model of a provider over HTTP through pipes. Call stop at the end of the bubble.
func piped(c Provider, h http.HandlerFunc) (m *Configured, stop func()) {
	p := pipes{make(chan net.Conn)}
	server := &http.Server{Handler: h} //nolint:gosec // the only client is this test
	go server.Serve(p)                 //nolint:errcheck // it ends with the test
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case p.accepted <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	c.Kind, c.BaseURL, c.AllowPrivate = OpenAI, "http://provider", true
	models := over(func(p Provider) link { return link{p, &http.Client{Transport: transport}} }, Config{
		Providers: map[string]Provider{"here": c},
		Models:    map[string]Definition{"small": {Provider: "here", Model: "m", Window: 8000}},
	}, quiet)
	m, _ = models.Named("small")
	return m, func() {
		close(p.accepted)
		transport.CloseIdleConnections()
		server.Close()
	}
}
