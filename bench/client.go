package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"
)

// client is one caller with one connection that it keeps. It shares the machine with what it measures, so it reuses its
// request and its response and allocates nothing per call.
type client struct {
	http     fasthttp.HostClient
	request  fasthttp.Request
	response fasthttp.Response
}

// answerTimeout makes an answer that does not come an error.
const answerTimeout = 20 * time.Second

func (b *bench) newClient() *client { return b.newClientOf(b.api) }

func (b *bench) newClientOf(api *server) *client {
	c := &client{http: fasthttp.HostClient{Addr: api.addr, MaxConns: 1, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10, ReadTimeout: answerTimeout}}
	c.request.Header.Set("Authorization", "Bearer "+b.key)
	c.request.Header.Set("Accept-Encoding", "identity")
	c.request.Header.SetHost(api.addr)
	return c
}

func (b *bench) newClients(n int) []*client {
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = b.newClient()
	}
	return clients
}

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// call sends the request as it stands and wants this status.
func (c *client) call(want int) error {
	if err := c.http.Do(&c.request, &c.response); err != nil {
		return err
	}
	if got := c.response.StatusCode(); got != want {
		body := c.response.Body()
		return fmt.Errorf("%s %s: %d instead of %d: %s", c.request.Header.Method(), c.request.URI().Path(), got, want, body[:min(len(body), 500)])
	}
	return nil
}

// send is a whole request, for what is not measured.
func (c *client) send(method, path string, body []byte, want int) error {
	c.request.Header.SetMethod(method)
	c.request.SetRequestURI(path)
	c.request.Header.SetContentType("application/json")
	c.request.Header.Del("Content-Length") // of the last body, which a GET would go on promising
	c.request.SetBodyRaw(body)
	return c.call(want)
}

// get reads an answer into v.
func (c *client) get(path string, v any) error {
	if err := c.send(fasthttp.MethodGet, path, nil, fasthttp.StatusOK); err != nil {
		return err
	}
	return json.Unmarshal(c.response.Body(), v)
}

// widestWindow is the widest that the API takes.
const widestWindow = 10_000_000

// createSession makes a session with the widest window, in the format of the corpus.
func (c *client) createSession(id string) error {
	body := fmt.Appendf(nil, `{"format": "openai-chat", "window_tokens": %d}`, widestWindow)
	return c.send(fasthttp.MethodPut, sessionPath(id), body, fasthttp.StatusCreated)
}

const (
	batchMessages = 1000
	batchBytes    = 8 << 20
)

// appendAll appends any number of messages, in batches as large as they may be.
func (c *client) appendAll(id string, messages [][]byte) error {
	for len(messages) > 0 {
		n, size := 0, 0
		for n < len(messages) && n < batchMessages && size < batchBytes {
			size += len(messages[n])
			n++
		}
		if err := c.send(fasthttp.MethodPost, sessionPath(id)+"/messages", appendBody(messages[:n]), fasthttp.StatusCreated); err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}

// appendBody is the body of an append.
func appendBody(messages [][]byte) []byte {
	body := []byte(`{"format":"openai-chat","messages":[`)
	body = append(body, joined(messages)...)
	return append(body, `]}`...)
}
