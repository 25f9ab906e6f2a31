package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// client is one caller with one connection. It shares the machine with what it measures, so it sends plain bytes
// and reads answers without a goroutine between it and the connection.
type client struct {
	site *site
	conn net.Conn // nil before the first call: the server closes a connection on which no request comes
	in   *bufio.Reader
	body bytes.Buffer // of the last answer
	etag string
}

// answerTimeout makes an answer that does not come an error.
const answerTimeout = time.Minute

func (s *site) newClient() *client { return &client{site: s} }

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// request returns a whole request; headers have the form "Name: value".
func (c *client) request(method, path string, body []byte, headers ...string) []byte {
	lines := append([]string{
		method + " " + path + " HTTP/1.1", "Host: " + c.site.addr, "Authorization: Bearer " + c.site.key,
	}, headers...)
	if body != nil {
		lines = append(lines, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)))
	}
	return append([]byte(strings.Join(lines, "\r\n")+"\r\n\r\n"), body...)
}

// call sends a request and returns an error unless its answer has the wanted status.
func (c *client) call(request []byte, want int) (err error) {
	if c.conn == nil {
		if c.conn, err = net.Dial("tcp", c.site.addr); err != nil {
			return err
		}
		c.in = bufio.NewReaderSize(c.conn, 64<<10)
	}
	if err := c.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	c.etag = answer.Header.Get("ETag")
	c.body.Reset()
	if _, err := c.body.ReadFrom(answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != want {
		line, _, _ := bytes.Cut(request, []byte("\r\n"))
		return fmt.Errorf("%s: status %d instead of %d: %.500s", line, answer.StatusCode, want, c.body.Bytes())
	}
	return nil
}

func (c *client) send(method, path string, body []byte, want int) error {
	return c.call(c.request(method, path, body), want)
}

// get reads an answer into v.
func (c *client) get(path string, v any) error {
	if err := c.send("GET", path, nil, http.StatusOK); err != nil {
		return err
	}
	return json.Unmarshal(c.body.Bytes(), v)
}

// metric returns a value that the API publishes about its process, 0 if it does not.
func (c *client) metric(name string) (float64, error) {
	if err := c.send("GET", "/metrics", nil, http.StatusOK); err != nil {
		return 0, err
	}
	for line := range strings.Lines(c.body.String()) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, nil
}

// widestWindow is the widest that the API takes.
const widestWindow = 10_000_000

// createSession makes a session with the widest window, in the format of the corpus.
func (c *client) createSession(id string) error {
	body := fmt.Appendf(nil, `{"format": "openai-chat", "window_tokens": %d}`, widestWindow)
	return c.send("PUT", sessionPath(id), body, http.StatusCreated)
}

// batchMessages is the largest number of messages of one append.
const batchMessages = 1000

// appendAll appends any number of messages, in batches as large as the API takes.
func (c *client) appendAll(id string, messages [][]byte) error {
	for batch := range slices.Chunk(messages, batchMessages) {
		if err := c.send("POST", sessionPath(id)+"/messages", appendBody(batch), http.StatusCreated); err != nil {
			return err
		}
	}
	return nil
}

// appendBody returns the body of an append, which leaves the format to the session as the README's does.
func appendBody(messages [][]byte) []byte {
	return fmt.Appendf(nil, `{"messages":[%s]}`, joined(messages))
}
