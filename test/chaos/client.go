package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// patience is how long a client waits for an answer.
const patience = 8 * time.Second

// client sends requests to the APIs in turn.
type client struct {
	http  *http.Client
	addrs []string
	next  atomic.Uint64
	found *findings
}

func newClient(found *findings, addrs ...string) *client {
	return &client{found: found, addrs: addrs, http: &http.Client{
		Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second},
	}}
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// request is what is asked.
type request struct {
	method, path, key string
	body              any // nil for none; bytes are sent as they are
	header            map[string]string
}

// do sends a request once. An error means that nobody knows whether it was carried out.
func (c *client) do(ctx context.Context, r request) (answer, error) {
	c.found.requests.Add(1)
	var body io.Reader
	if r.body != nil {
		text, isRaw := r.body.([]byte)
		if !isRaw {
			var err error
			if text, err = json.Marshal(r.body); err != nil {
				return answer{}, err
			}
		}
		body = bytes.NewReader(text)
	}
	addr := c.addrs[c.next.Add(1)%uint64(len(c.addrs))]
	req, err := http.NewRequestWithContext(ctx, r.method, "http://"+addr+r.path, body)
	if err != nil {
		return answer{}, err
	}
	req.GetBody = nil // net/http would repeat a request with an Idempotency-Key by itself
	req.Header.Set("Authorization", "Bearer "+r.key)
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	response, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	whole, err := io.ReadAll(response.Body)
	if response.StatusCode == http.StatusInternalServerError {
		c.found.add("500", "%s %s: %s", r.method, r.path, short(whole))
	}
	if response.StatusCode > http.StatusInternalServerError {
		c.found.failures.Add(1)
	}
	return answer{response.StatusCode, response.Header, whole}, err
}

func short(text []byte) string { return string(text[:min(len(text), 300)]) }
