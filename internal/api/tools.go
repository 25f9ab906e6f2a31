package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tools"
)

var (
	toolCalls = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_tool_calls_total",
		Help: "Calls of agent tools by tool, way (mcp or tools), and whether they were answered, refused or failed.",
	}, []string{"tool", "via", "outcome"})
	toolSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "varve_tool_duration_seconds", Help: "How long calls of agent tools took.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, []string{"tool"})
)

// The ways in which an agent calls its tools.
const (
	viaMCP   = "mcp"
	viaRoute = "tools"
)

// listTools handles GET /v1/tools: the tools as a provider takes them.
func (s *Server) listTools(req *request.Request) error {
	q := req.Query()
	f := session.Format(q.Choice("format", append([]string{""}, formatNames()...)...))
	if f == "" {
		q.Wrong("format", request.InvalidRequest, "format is missing: it must be %s", request.Formats())
	}
	if err := req.Err(); err != nil {
		return err
	}
	return req.JSON(http.StatusOK, map[string]any{"format": f, "tools": tools.Offer(f, tools.All(req.Caller.May))})
}

func formatNames() (names []string) {
	for _, f := range session.Formats() {
		names = append(names, string(f))
	}
	return names
}

// toolBody is the body of a tool's call.
type toolBody struct {
	arguments []byte // an object, or a string that holds one
	callID    string
	format    session.Format
}

func decodeToolBody(body []byte) (b toolBody, err error) {
	if len(body) == 0 {
		body = []byte("{}")
	}
	d, err := request.Open(body)
	if err != nil {
		return b, err
	}
	for name, value := range d.Fields([]string{"arguments", "call_id", "format"}) {
		switch name {
		case "arguments":
			b.arguments = value.Of(d.Data)
		case "call_id":
			b.callID, _ = d.Text("/call_id", value, session.MaxIDBytes)
		case "format":
			b.format = d.ReadFormat(value)
		}
	}
	return b, d.Err()
}

// toolAnswer is the answer to a tool's call. With a call_id, messages are ready to be appended.
type toolAnswer struct {
	Tool       string            `json:"tool"`
	IsError    bool              `json:"is_error"`
	Format     session.Format    `json:"format,omitempty"`
	Messages   []json.RawMessage `json:"messages,omitempty"`
	Text       string            `json:"text,omitempty"`
	Structured any               `json:"structured,omitempty"`
	Images     []toolImage       `json:"images,omitempty"`
}

type toolImage struct {
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// callTool handles POST /v1/sessions/{id}/tools/{tool}. What is wrong with the arguments is the tool's answer, for the
// model to mend; what is wrong with the request or with us is the request's.
func (s *Server) callTool(req *request.Request) error {
	at := req.Address()
	name, err := url.PathUnescape(req.Param("tool"))
	if err != nil {
		return session.ErrNotFound
	}
	body, err := decodeToolBody(req.Body())
	if err != nil {
		return err
	}
	if body.callID != "" && body.format == "" {
		found, err := req.Store.Session(req.Ctx, at)
		if err != nil {
			return err
		}
		body.format = found.Format
	}
	runner := &tools.Runner{Store: req.Store, At: at, May: req.Caller.May, Memory: s.Memory, CPU: s.CPU}
	answer, err := s.runTool(req.Ctx, runner, viaRoute, name, body.arguments)
	if err != nil {
		return err
	}
	made := toolAnswer{Tool: name, IsError: answer.IsError}
	if body.callID != "" {
		made.Format = body.format
		made.Messages = answer.Messages(body.format, name, body.callID, body.arguments)
		return req.JSON(http.StatusOK, made)
	}
	made.Text, made.Structured = answer.Text, answer.Structured
	for _, image := range answer.Images {
		made.Images = append(made.Images, toolImage(image))
	}
	return req.JSON(http.StatusOK, made)
}

// runTool runs a call and counts it. The errors of a call that the model can mend are its answer.
//
// Errors: those of Runner.Run that it cannot mend: a wrong name, a session that is not there, faults of ours.
func (s *Server) runTool(
	ctx context.Context, runner *tools.Runner, via string, name string, given []byte,
) (*tools.Answer, error) {
	began := time.Now()
	answer, err := runner.Run(ctx, name, given)
	if errors.Is(err, tools.ErrNoTool) {
		return nil, &request.Failure{Code: request.NotFound, Detail: err.Error()}
	}
	outcome := "answered"
	if err != nil {
		outcome = "failed"
		if answer = refusal(name, err); answer != nil {
			outcome, err = "refused", nil
		}
	}
	toolCalls.WithLabelValues(name, via, outcome).Inc()
	toolSeconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
	if outcome == "answered" {
		for range answer.Refs {
			s.usage.ReadBack(runner.At)
		}
	}
	return answer, err
}

// refusal returns the answer to a call that failed in a way that the model can do something about, nil for others.
func refusal(name string, err error) *tools.Answer {
	f := failureOf(err)
	status := statuses[f.Code]
	switch {
	case f.Code == codeDamaged || errors.Is(err, session.ErrBusy):
		return &tools.Answer{Text: f.Detail, IsError: true}
	case err.Error() == session.ErrNotFound.Error() || status >= http.StatusInternalServerError:
		return nil // the session itself is not there, or it is our fault
	}
	return tools.Refused(name, problemsOf(f))
}

// problemsOf writes all problems of a failure in one line.
func problemsOf(f *request.Failure) string {
	if len(f.Problems) == 0 {
		return f.Detail
	}
	var lines []string
	for _, p := range f.Problems {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s", p.Pointer, p.Detail)))
	}
	return strings.Join(lines, "; ")
}
