package trace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes traces by OTLP over HTTP, in protobuf. The exporter of OpenTelemetry's own for it brings all of gRPC.
type collector struct {
	url     string
	headers http.Header
	timeout time.Duration
	client  http.Client
}

// collectorOf returns the collector that the standard variables name, nil for none.
func collectorOf(env func(string) string) (*collector, error) {
	of := func(name string) string {
		return cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_"+name), env("OTEL_EXPORTER_OTLP_"+name))
	}
	if env("OTEL_SDK_DISABLED") == "true" || env("OTEL_TRACES_EXPORTER") == "none" || of("ENDPOINT") == "" {
		return nil, nil
	}
	if p := of("PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: it must be http/protobuf", p)
	}
	to := &collector{url: env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), headers: http.Header{}, timeout: 10 * time.Second}
	if to.url == "" {
		to.url = strings.TrimSuffix(of("ENDPOINT"), "/") + "/v1/traces"
	}
	parsed, err := url.Parse(to.url)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT is %q: it must be a URL like http://127.0.0.1:4318",
			of("ENDPOINT"))
	}
	if text := of("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q: it must be a number of milliseconds", text)
		}
		to.timeout = time.Duration(ms) * time.Millisecond
	}
	return to, to.addHeaders(of("HEADERS"))
}

// addHeaders reads headers as the variables have them: name=value, with commas between them.
func (c *collector) addHeaders(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS must be like name=value,other=value") // it may hold a key
		}
		c.headers.Set(strings.TrimSpace(name), value)
	}
	return nil
}

// Start implements otlptrace.Client.
func (c *collector) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *collector) Stop(context.Context) error { return nil }

// UploadTraces implements otlptrace.Client.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) // the same bytes as a request for the export
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = c.headers.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	response, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection is used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the collector at %s answers %s", c.url, response.Status)
	}
	return nil
}
