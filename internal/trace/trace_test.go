package trace

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheStandardVariablesNameTheCollector(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variables map[string]string
		url, err  string
	}{
		{nil, "", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "http://c:4318/v1/traces", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://t/x"}, "https://t/x", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, "", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, "", ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4318"}, "", "must be a URL"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "must be http/protobuf"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT": "5s"}, "", "milliseconds"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "hush"}, "", "name=value"},
	} {
		got, err := collectorOf(func(name string) string { return c.variables[name] })
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%v: %v, want %q", c.variables, err, c.err)
			}
		case err != nil || (got == nil) != (c.url == "") || got != nil && got.url != c.url:
			t.Errorf("%v: %+v, %v, want %q", c.variables, got, err, c.url)
		}
	}
}

// TestWithoutACollectorNothingIsMade counts what is allocated for a request and a call.
func TestWithoutACollectorNothingIsMade(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	same, finish, err := Open(t.Context(), "test", log)
	if err != nil || same != log || SQL() != nil || Jobs() != nil {
		t.Fatalf("something is made: %v", err)
	}
	finish(t.Context())
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if n := testing.AllocsPerRun(100, func() {
		r, span := Request(r, "/v1/sessions")
		ctx, call := Model(context.Background(), Call{Model: "m"})
		Send(ctx, r.Header)
		call.Replied("m", 1, 1, "")
		span.Answered(200, "id")
	}); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
