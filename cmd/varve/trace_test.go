package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/varve-dev/varve/internal/llm/fake"
)

// collected are the spans that a collector got, by their ids.
type collected struct {
	mu    sync.Mutex
	spans map[string]*tracepb.Span
	wrong []string // requests that a collector refuses
}

// ServeHTTP takes traces as a collector does.
func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	var data tracepb.TracesData
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("X-Key") != "a b" ||
		proto.Unmarshal(body, &data) != nil {
		c.wrong = append(c.wrong, fmt.Sprint(r.URL, r.Header, err))
	}
	for _, of := range data.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans[string(span.SpanId)] = span
			}
		}
	}
}

// above returns the names of a span and of those above it.
func (c *collected) above(span *tracepb.Span) (names []string) {
	for span != nil {
		names = append(names, span.Name)
		span = c.spans[string(span.ParentSpanId)]
	}
	return names
}

// find returns the spans of a trace whose name begins so.
func (c *collected) find(traceID, name string) (found []*tracepb.Span) {
	for _, span := range c.spans {
		if strings.HasPrefix(span.Name, name) && hex.EncodeToString(span.TraceId) == traceID {
			found = append(found, span)
		}
	}
	return found
}

// inOrder reports whether some names are among others, in that order.
func inOrder(all []string, names ...string) bool {
	for _, name := range names {
		at := slices.Index(all, name)
		if at < 0 {
			return false
		}
		all = all[at+1:]
	}
	return true
}

// TestAnAppendItsJobsAndItsModelCallAreOneTrace appends what crosses a trigger, in a trace of the caller's.
func TestAnAppendItsJobsAndItsModelCallAreOneTrace(t *testing.T) {
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	c := &collected{spans: map[string]*tracepb.Span{}}
	collector := httptest.NewServer(c)
	defer collector.Close()
	provider := fake.New(fake.Options{})
	if err := provider.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	target, err := url.Parse(provider.URL())
	if err != nil {
		t.Fatal(err)
	}
	var sent sync.Map // the places in traces that the provider got
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		sent.Store(r.In.Header.Get("Traceparent"), true)
		r.SetURL(target)
	}}
	front := httptest.NewServer(proxy)
	defer front.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	u := startUp(t, filepath.Join(t.TempDir(), "data"), "--llm", write(t, "models.json", fmt.Appendf(nil, threeModels, front.URL)))
	u.traceparent = "00-" + traceID + "-00f067aa0ba902b7-01"
	u.converse("s", "0", "", "")
	u.awaitSummary("s")
	const appended = "POST /v1/sessions/:id/messages"
	var call *tracepb.Span
	whole := poll(untilDeadline(t), 20*time.Millisecond, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, call = range c.find(traceID, "chat chat") {
			if inOrder(c.above(call), "job summarise", "job compact", appended) {
				return true
			}
		}
		return false
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if !whole || len(c.wrong) > 0 {
		for _, span := range c.spans {
			t.Log(hex.EncodeToString(span.TraceId), c.above(span))
		}
		t.Fatalf("no tree of them; refused: %v", c.wrong)
	}
	said := fmt.Sprint(call.Attributes)
	for _, want := range []string{"gen_ai.operation.name", "gen_ai.provider.name", "openai", "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} {
		if !strings.Contains(said, want) {
			t.Errorf("the call has no %s: %s", want, said)
		}
	}
	if _, ok := sent.Load(fmt.Sprintf("00-%s-%x-01", traceID, call.SpanId)); !ok {
		t.Error("the provider did not get the place of the call")
	}
	request := c.find(traceID, appended)
	if len(request) != 1 || hex.EncodeToString(request[0].ParentSpanId) != "00f067aa0ba902b7" {
		t.Errorf("the request is not below the caller's span: %v", request)
	}
	if sql := c.find(traceID, "INSERT"); !slices.ContainsFunc(sql, func(s *tracepb.Span) bool { return inOrder(c.above(s), appended) }) {
		t.Errorf("no INSERT below the request: %d", len(sql))
	}
	if log := u.log.String(); !strings.Contains(log, "trace_id="+traceID) {
		t.Errorf("no line of the log has the trace:\n%s", log)
	}
}
