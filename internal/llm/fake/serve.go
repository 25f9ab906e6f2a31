package fake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody is the longest request that Anthropic takes.
const maxBody = 32 << 20

// readers has how requests are read, by protocol.
var readers = map[Protocol]func(*check, []byte) Request{
	Chat: readChat, Responses: readResponses, Messages: readMessages,
}

// ServeHTTP answers a call.
func (s *Server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	protocol := Protocol(q.URL.Path)
	record := &CallRecord{Began: time.Now()}
	body, err := io.ReadAll(io.LimitReader(q.Body, maxBody+1))
	if err != nil {
		return // the caller was killed while it sent
	}
	s.begin()
	defer func() { s.end(record) }()
	r, wrong := s.read(protocol, q, body)
	record.Request = r
	if wrong != nil {
		record.Refused, record.Status = wrong.message, wrong.status
		reply(w, wrong.status, refusal(protocol, wrong))
		return
	}
	record.Input = r.Input()
	step := s.next(r, record.Input)
	record.Fault = step.Fault
	if !s.wait(q, s.options.Delay+s.options.Models[r.Model].Delay+step.Delay) {
		return
	}
	s.answer(w, q, record, step)
}

// read returns the request, or why the provider refuses it.
func (s *Server) read(protocol Protocol, q *http.Request, body []byte) (Request, *problem) {
	reader, ok := readers[protocol]
	if !ok {
		return Request{}, &problem{status: 404, kind: "invalid_request_error", message: "Unknown request URL: " +
			q.Method + " " + q.URL.Path}
	}
	if q.Method != http.MethodPost {
		return Request{}, &problem{status: 405, kind: "invalid_request_error", message: "Only POST is allowed."}
	}
	if len(body) > maxBody {
		return Request{}, &problem{status: 413, kind: "request_too_large", message: "Request exceeds the maximum size"}
	}
	if wrong := s.headers(protocol, q.Header); wrong != nil {
		return Request{}, wrong
	}
	c := &check{anthropic: protocol == Messages}
	r := reader(c, body)
	r.Protocol, r.Body = protocol, body
	if c.wrong == nil {
		c.wrong = s.fits(&r)
	}
	return r, c.wrong
}

// headers returns what is wrong with the headers.
func (s *Server) headers(protocol Protocol, h http.Header) *problem {
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err != nil || kind != "application/json" {
		return &problem{400, "invalid_request_error", "", "unsupported_content_type", "Unsupported content type: '" +
			h.Get("Content-Type") + "'. This API method only accepts 'application/json' requests."}
	}
	key, bearer := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if protocol == Messages {
		if h.Get("anthropic-version") != "2023-06-01" {
			return &problem{400, "invalid_request_error", "", "", "anthropic-version: header is required"}
		}
		key = h.Get("X-Api-Key")
		bearer = key != ""
	}
	switch {
	case !bearer || key == "":
		return &problem{401, "authentication_error", "", "", "No API key was provided."}
	case s.options.Key != "" && key != s.options.Key:
		return &problem{401, "authentication_error", "", "invalid_api_key", "Incorrect API key provided."}
	}
	return nil
}

// fits returns why a model does not take a request.
func (s *Server) fits(r *Request) *problem {
	if s.options.Models == nil {
		return nil
	}
	model, ok := s.options.Models[r.Model]
	if !ok {
		return &problem{404, "not_found_error", "model", "model_not_found", "The model '" + r.Model +
			"' does not exist."}
	}
	size := tokensOf(r.whole()) + r.MaxTokens
	if model.Window == 0 || size <= model.Window {
		return nil
	}
	if r.Protocol == Messages {
		return &problem{400, "invalid_request_error", "", "", fmt.Sprintf("prompt is too long: %d tokens > %d maximum",
			size, model.Window)}
	}
	return &problem{400, "invalid_request_error", "messages", "context_length_exceeded", fmt.Sprintf("This model's "+
		"maximum context length is %d tokens. However, you requested %d tokens.", model.Window, size)}
}

// wait waits, and reports whether the caller still does.
func (s *Server) wait(q *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-q.Context().Done():
	case <-s.closing:
	}
	return false
}

// answer answers a right request.
func (s *Server) answer(w http.ResponseWriter, q *http.Request, c *CallRecord, step Step) {
	r := &c.Request
	if status := statuses[step.Fault]; status != 0 {
		c.Status = status
		failure(w, r.Protocol, step, status)
		return
	}
	switch step.Fault {
	case Timeout:
		s.wait(q, 24*time.Hour)
		return
	case Reset:
		broken(w, nil)
		return
	}
	c.Status = http.StatusOK
	c.Text = step.Text
	if c.Text == "" {
		c.Text = text(r, step.Fault)
	}
	c.Usage = Usage{tokensOf(r.whole()), tokensOf(c.Text)}
	body := encode(rendered(c))
	c.Paid = step.Fault.Usable()
	switch step.Fault {
	case InvalidJSON:
		reply(w, http.StatusOK, body[:len(body)*2/3])
	case ErrorBody:
		p := &problem{kind: "server_error", message: "The server had an error."}
		reply(w, http.StatusOK, refusal(r.Protocol, p))
	case ResetWithin:
		broken(w, body)
	case Drip:
		s.drip(w, q, body)
	default:
		reply(w, http.StatusOK, body)
	}
}

func reply(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may be gone
}

// failure answers with a status of HTTP that is an error.
func failure(w http.ResponseWriter, protocol Protocol, step Step, status int) {
	p := &problem{kind: "server_error", message: "The server had an error while processing your request."}
	if protocol == Messages {
		p.kind = "api_error"
	}
	after := max(step.RetryAfter, time.Second)
	switch step.Fault {
	case Limited:
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
	case LimitedDate:
		w.Header().Set("Retry-After", time.Now().Add(after).UTC().Format(http.TimeFormat))
	case Error529:
		p.kind, p.message = "overloaded_error", "Overloaded"
	case Error502:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<html><head><title>502 Bad Gateway</title></head></html>")) // the caller may be gone
		return
	}
	if status == http.StatusTooManyRequests {
		p.kind, p.message = "rate_limit_error", "Rate limit reached."
		p.code = "rate_limit_exceeded"
	}
	reply(w, status, refusal(protocol, p))
}

// broken resets the connection, after half of the body if there is one.
func broken(w http.ResponseWriter, body []byte) {
	connection, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2, or a recorder: net/http ends the connection
	}
	defer connection.Close()
	if body != nil {
		fmt.Fprintf(buffer, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			len(body))
		_, _ = buffer.Write(body[:len(body)/2]) // the caller may be gone
		_ = buffer.Flush()
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // closing sends a reset
	}
}

// drip sends the body a byte at a time.
func (s *Server) drip(w http.ResponseWriter, q *http.Request, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	for i := range body {
		if _, err := w.Write(body[i : i+1]); err != nil || flush.Flush() != nil || !s.wait(q, s.options.Drip) {
			return
		}
	}
}

// encode returns a value as JSON.
func encode(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // the values are objects of texts and numbers
	}
	return b.Bytes()
}
