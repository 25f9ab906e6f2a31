// Package client is the client of Varve in Go: one call a model request.
//
//	varve, err := client.Open("http://localhost:8080", key)
//	chat := varve.Session("chat-1", &client.Settings{Format: "openai-chat", Model: "gpt-4o"})
//	view, err := chat.Step(ctx, client.Batch{Messages: []any{question}}, nil) // send view.Messages to the model
//	view, err = chat.Step(ctx, client.Batch{Messages: []any{answer}, Usage: usage}, nil)
//
// Behind it is a table of routes, which has every operation of the API: ListRuns.Each(ctx, varve, nil, "chat-1")
// returns an iterator, CompactSession.Call(ctx, varve, "chat-1") an Answer. A call returns an Answer, which also
// keeps the server's own JSON, or an *Error (the server refused) or an *UnreachableError (nothing answers). Requests
// wait for a server that is starting or overloaded, and are sent again when their answer was lost. The lines of an
// Upload are a stream, which is continued instead.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// Client calls the API of one server with one key. Make it with New, then change its fields if needed.
type Client struct {
	Base     *url.URL
	Key      string
	HTTP     *http.Client
	Notes    io.Writer     // receives one line when a request has to wait
	Patience time.Duration // how long a request waits, in total, for a server that is not ready
	Sleep    func(context.Context, time.Duration) error
}

// Version is that of this package, which each request names.
const Version = "0.2.0"

// Open returns a client of the server at a URL, that waits at most 30 seconds for it and says nothing. It reads no
// variable of the environment: a caller whose key is in VARVE_KEY passes it, and an empty one is an error.
func Open(at, key string) (*Client, error) {
	base, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, errors.New("no key was given (is VARVE_KEY set?)")
	}
	return New(base, key, io.Discard), nil
}

// New returns a client that waits at most 30 seconds for its server.
func New(base *url.URL, key string, notes io.Writer) *Client {
	return &Client{Base: base, Key: key, HTTP: &http.Client{}, Notes: notes, Patience: 30 * time.Second, Sleep: Sleep}
}

// Answer is a decoded answer with the JSON that it was decoded from.
type Answer[T any] struct {
	Value T
	Raw   json.RawMessage
}

// UnmarshalJSON keeps data, and decodes it.
func (a *Answer[T]) UnmarshalJSON(data []byte) error {
	a.Raw = bytes.Clone(data)
	return json.Unmarshal(data, &a.Value)
}

// MarshalJSON returns what the server sent.
func (a Answer[T]) MarshalJSON() ([]byte, error) { return a.Raw, nil }

// Sleep waits for d, or for the end of ctx, whose error it returns.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do sends the request of a route and reads the answer, and waits while the server is not ready.
func (c *Client) do(ctx context.Context, route string, o Options, args []any) ([]byte, error) {
	return repeat(ctx, c, route, o, args, c.sendWhole)
}

// open does what do does, but leaves it to the caller to read the answer's body, and to close it.
func (c *Client) open(ctx context.Context, route string, o Options, args []any) (*http.Response, error) {
	return repeat(ctx, c, route, o, args, c.send)
}

func repeat[T any](
	ctx context.Context, c *Client, route string, o Options, args []any, send func(*http.Request) (T, error),
) (T, error) {
	var none T
	req, err := c.request(ctx, route, o, args)
	if err != nil {
		return none, err
	}
	for waited, pause := time.Duration(0), 100*time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		try := req.Clone(ctx)
		if req.GetBody != nil {
			try.Body, _ = req.GetBody() // of bytes, which cannot fail
		}
		answer, err := send(try)
		switch {
		case err == nil || !Passing(err) || waited >= c.patienceWith(err):
			return answer, err
		case !repeatable(req, err):
			return answer, fmt.Errorf("the request may have had its effect, and is not sent again: %w", err)
		}
		if waited == 0 {
			fmt.Fprintf(c.Notes, "waiting for %s: %s\n", c.Base, reason(err))
		}
		var problem *Error
		if errors.As(err, &problem) {
			pause = max(pause, min(problem.RetryAfter, 5*time.Second))
		}
		if err := c.Sleep(ctx, pause); err != nil {
			return none, err
		}
		waited += pause
	}
}

// repeatable reports whether a request that failed cannot have its effect twice if it is sent again. A POST without an
// Idempotency-Key can, unless the server refused it or was not reached.
func repeatable(req *http.Request, err error) bool {
	if req.Method != http.MethodPost || req.Header.Get("Idempotency-Key") != "" {
		return true
	}
	var problem *Error
	var dialled *net.OpError
	return errors.As(err, &problem) && problem.Code() != "" || errors.As(err, &dialled) && dialled.Op == "dial"
}

// refusedPatience is how long to wait where nothing listens: a server that is starting listens soon.
const refusedPatience = 5 * time.Second

// patienceWith returns how long a request waits in total after an error.
func (c *Client) patienceWith(err error) time.Duration {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return min(c.Patience, refusedPatience)
	}
	return c.Patience
}

// send sends a request once. A status other than 2xx is an *Error.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, unreachable(req.Context(), c.Base, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, problemOf(res)
}

// sendWhole sends a request once and reads its answer.
func (c *Client) sendWhole(req *http.Request) ([]byte, error) {
	res, err := c.send(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, unreachable(req.Context(), c.Base, err)
	}
	return body, nil
}

// decode decodes the answer of a route.
func decode[T any](route string, body []byte) (a Answer[T], err error) {
	a.Raw = body
	if err := json.Unmarshal(body, &a.Value); err != nil {
		return a, fmt.Errorf("%s: the answer does not have the expected form: %w", route, err)
	}
	return a, nil
}
