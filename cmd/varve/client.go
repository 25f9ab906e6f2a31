package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Globals are the flags that every command has.
type Globals struct {
	URL  string `name:"url" env:"VARVE_URL" default:"http://127.0.0.1:8080" help:"Where the API is."`
	Data string `name:"data" env:"VARVE_DATA_DIR" default:".varve" help:"Data directory of varve up. Clients read their key from DATA/key if VARVE_KEY is not set."`
	JSON bool   `name:"json" help:"Print JSON on standard output."`
}

// Client talks to the API at g.URL with the key in VARVE_KEY, or else the one in DATA/key.
func (g *Globals) Client() (*Client, error) {
	base, err := url.Parse(g.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, &usageError{fmt.Sprintf("--url (VARVE_URL) is %q: a URL like http://127.0.0.1:8080 is needed", g.URL)}
	}
	key := os.Getenv("VARVE_KEY")
	if key == "" {
		if key, err = readKey(filepath.Join(g.Data, "key")); err != nil {
			return nil, err
		}
	}
	return &Client{base: base, key: key, json: g.JSON, http: &http.Client{}, notes: os.Stderr, sleep: sleep, patience: 30 * time.Second}, nil
}

func readKey(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", &keyError{file}
	}
	return strings.TrimSpace(string(text)), err
}

// Client is the HTTP API as the commands use it.
type Client struct {
	base     *url.URL
	key      string
	json     bool // errors keep the server's JSON
	http     *http.Client
	notes    io.Writer
	sleep    func(context.Context, time.Duration) error
	patience time.Duration // how long to wait, all in all, for a server that is not ready
}

// call is one request. All of the commands' requests may be sent again: appends carry client ids.
type call struct {
	method string
	path   []string
	query  url.Values
	body   []byte // nil for none
	ok     []int  // statuses that are no error

	idempotency string // Idempotency-Key of a request that has an effect of its own each time
}

// do sends a request, and waits for a server that is starting. The caller closes the answer's body.
func (c *Client) do(ctx context.Context, k call) (*http.Response, error) {
	for waited, pause := time.Duration(0), 100*time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		res, err := c.send(ctx, k)
		if err == nil || !passing(err) || waited >= c.patienceWith(err) {
			return res, err
		}
		if waited == 0 {
			fmt.Fprintf(c.notes, "waiting for %s: %s\n", c.base, reason(err))
		}
		if after := retryAfter(err); after > pause {
			pause = min(after, 5*time.Second)
		}
		if err := c.sleep(ctx, pause); err != nil {
			return nil, err
		}
		waited += pause
	}
}

// refusedPatience is how long to wait where nothing listens: a varve up that is starting listens soon.
const refusedPatience = 5 * time.Second

func (c *Client) patienceWith(err error) time.Duration {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return min(c.patience, refusedPatience)
	}
	return c.patience
}

func (c *Client) send(ctx context.Context, k call) (*http.Response, error) {
	at := c.base.JoinPath(append([]string{"v1"}, escaped(k.path)...)...)
	at.RawQuery = k.query.Encode()
	req, err := http.NewRequestWithContext(ctx, k.method, at.String(), bytes.NewReader(k.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("User-Agent", "varve-cli")
	if k.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if k.idempotency != "" {
		req.Header.Set("Idempotency-Key", k.idempotency)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, c.base, err)
	}
	for _, status := range k.ok {
		if res.StatusCode == status {
			return res, nil
		}
	}
	defer res.Body.Close()
	return nil, c.problem(res)
}

func escaped(path []string) []string {
	list := make([]string, len(path))
	for i, p := range path {
		list[i] = url.PathEscape(p)
	}
	return list
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decode sends a request and reads its JSON answer. raw is the answer as it came.
func (c *Client) decode(ctx context.Context, k call, into any) (raw []byte, err error) {
	if k.ok == nil {
		k.ok = []int{http.StatusOK}
	}
	res, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if raw, err = io.ReadAll(res.Body); err != nil {
		return nil, unreachable(ctx, c.base, err)
	}
	if into == nil {
		return raw, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("%s %s: the answer is not what this varve understands: %w", k.method, strings.Join(k.path, "/"), err)
	}
	return raw, nil
}

// page is one page of a list.
type page[T any] struct {
	Data       []T     `json:"data"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// list reads a list up to limit entries, page by page.
func list[T any](ctx context.Context, c *Client, limit int, path ...string) ([]T, error) {
	all := []T{}
	query := url.Values{}
	for {
		query.Set("limit", strconv.Itoa(min(limit-len(all), 100)))
		var p page[T]
		if _, err := c.decode(ctx, call{method: http.MethodGet, path: path, query: query}, &p); err != nil {
			return nil, err
		}
		all = append(all, p.Data...)
		if !p.HasMore || p.NextCursor == nil || len(all) >= limit {
			return all, nil
		}
		query.Set("cursor", *p.NextCursor)
	}
}
