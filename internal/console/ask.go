package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/session"
)

// clientOf returns the API for the holder of a key, whose browser has sent a request.
func (s *site) clientOf(r *http.Request, key string) *client.Client {
	api := s.API
	if isOperator(key) {
		api = s.Operators
	}
	asked := inside{api, r.RemoteAddr}
	c := client.New(&url.URL{Scheme: "http", Host: "varve", Path: "/"}, key, io.Discard)
	c.HTTP = &http.Client{Transport: asked}
	c.Patience = 0 // a person may ask again
	return c
}

func isOperator(key string) bool {
	_, err := session.ParseOperatorKey(key)
	return err == nil
}

func isKey(text string) bool {
	_, _, err := session.ParseKey(text)
	return err == nil || isOperator(text)
}

// inside sends requests to a handler of this process, as if they came from an address.
type inside struct {
	handler http.Handler
	address string
}

// RoundTrip returns the whole answer. An error means that the handler cut it off.
func (t inside) RoundTrip(req *http.Request) (_ *http.Response, err error) {
	r := t.served(req)
	w := &answer{header: http.Header{}, status: http.StatusOK}
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				panic(p)
			}
			err = errors.New("the answer was cut off")
		}
	}()
	t.handler.ServeHTTP(w, r)
	if w.body.Len() > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d MiB: ask for less", maxAnswer>>20)
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()), Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// served returns a request as a server has it.
func (t inside) served(req *http.Request) *http.Request {
	r := req.Clone(req.Context())
	r.RemoteAddr = t.address
	r.RequestURI = req.URL.RequestURI()
	r.URL.Scheme, r.URL.Host = "", ""
	r.Host = req.URL.Host
	if r.Body == nil {
		r.Body = http.NoBody
	}
	return r
}

// maxAnswer bounds what a page is made of. No answer of a page or of a unit is larger, see the API's limits.
const maxAnswer = 48 << 20

// answer keeps what a handler writes, up to maxAnswer and a little more.
type answer struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status once.
func (a *answer) WriteHeader(status int) {
	if !a.written {
		a.status, a.written = status, true
	}
}

// Write refuses what makes the answer too large.
func (a *answer) Write(b []byte) (int, error) {
	a.written = true
	if a.body.Len() > maxAnswer {
		return 0, errors.New("the answer is too large for a page")
	}
	return a.body.Write(b)
}

// passing hands an answer over to a browser as it is written, as a file if that has a name. What the API refuses it
// keeps.
type passing struct {
	http.ResponseWriter
	file    string
	begun   bool
	refused answer
}

func (p *passing) Header() http.Header { return p.refused.header }

// WriteHeader begins the answer, unless it is an error.
func (p *passing) WriteHeader(status int) {
	if p.begun || p.refused.written {
		return
	}
	if status >= http.StatusBadRequest {
		p.refused.WriteHeader(status)
		return
	}
	p.begun = true
	maps.Copy(p.ResponseWriter.Header(), p.refused.header)
	if p.file != "" {
		p.ResponseWriter.Header().Set("Content-Disposition", `attachment; filename="`+p.file+`"`)
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *passing) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if p.refused.written {
		return p.refused.Write(b)
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap returns the browser's writer, for http.ResponseController.
func (p *passing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// err returns what the API has refused.
func (p *passing) err() error {
	if !p.refused.written {
		return nil
	}
	refused := &client.Error{Status: p.refused.status}
	_ = json.Unmarshal(p.refused.body.Bytes(), &refused.Problem) // without it the status alone is told
	return refused
}

// pass passes an answer of the API on to the browser as it is written, as a file if that has a name.
func (v *visit) pass(path, file string) error {
	asked, err := v.asked(path)
	if err != nil {
		return err
	}
	w := &passing{ResponseWriter: v.w, file: file, refused: answer{header: http.Header{}}}
	v.site.API.ServeHTTP(w, inside{v.site.API, v.r.RemoteAddr}.served(asked))
	return w.err()
}

// asked returns a request for what the client does not read: a stream, a file, or a text.
func (v *visit) asked(path string) (*http.Request, error) {
	asked, err := http.NewRequestWithContext(v.ctx, http.MethodGet, "http://varve"+path, http.NoBody)
	if err == nil {
		asked.Header.Set("Authorization", "Bearer "+v.in.Key)
	}
	return asked, err
}

// plain returns an answer of the API that is no JSON, "" if there is none.
func (v *visit) plain(path string) (string, error) {
	asked, err := v.asked(path)
	if err != nil {
		return "", err
	}
	got, err := inside{v.site.API, v.r.RemoteAddr}.RoundTrip(asked)
	if err != nil {
		return "", err
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return "", nil
	}
	text, err := io.ReadAll(got.Body)
	return string(text), err
}

// showEvents passes the tenant's events on to a page, as they come and for as long as the key holds: the API writes to
// the browser itself.
func showEvents(v *visit) error {
	stream, err := v.asked("/v1/events")
	if err != nil {
		return err
	}
	stream.Header.Set("Accept", "text/event-stream")
	stream.URL.RawQuery = v.r.URL.RawQuery
	if last := v.r.Header.Get("Last-Event-ID"); last != "" {
		stream.Header.Set("Last-Event-ID", last)
	}
	v.site.API.ServeHTTP(v.w, inside{v.site.API, v.r.RemoteAddr}.served(stream))
	return nil
}

// pathOf joins segments of a path below the console, each of which may hold a slash.
func pathOf(segments ...any) string {
	var path strings.Builder
	path.WriteString(root)
	for _, s := range segments {
		path.WriteByte('/')
		path.WriteString(url.PathEscape(fmt.Sprint(s)))
	}
	return path.String()
}
