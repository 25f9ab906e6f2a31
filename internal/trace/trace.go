// Package trace sends traces of requests, SQL, jobs and calls of language models to a collector of OpenTelemetry, if
// the standard variables name one. Otherwise nothing is made and nothing is sent.
//
// Start at Open. A trace begins with a request (Request), or with a job that none asked for (Jobs). A job keeps the
// trace of what inserted it in its metadata, so that the job, the summaries that it asks for and the calls of models
// for these are in one tree with the request. collector.go sends.
package trace

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tracer makes spans; nil while nothing is sent.
var tracer trace.Tracer

// context of W3C, in headers and in the metadata of jobs.
var carried = propagation.TraceContext{}

// Open begins to send traces, if a collector is named. It is called once, before anything is traced. It returns a
// logger whose lines have the trace's id, and what sends the last traces.
func Open(ctx context.Context, version string, log *slog.Logger) (*slog.Logger, func(context.Context), error) {
	to, err := collectorOf(os.Getenv)
	if err != nil || to == nil {
		return log, func(context.Context) {}, err
	}
	of, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "varve"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // which replaces the name
	if err != nil {
		return log, nil, err
	}
	exporter, err := otlptrace.New(ctx, to)
	if err != nil {
		return log, nil, err
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(of))
	otel.SetTracerProvider(provider)
	otel.SetErrorHandler(&complaints{log: log})
	tracer = provider.Tracer("varve")
	return slog.New(named{log.Handler()}), func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), to.timeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // complaints has said why
	}, nil
}

// sayEvery is how often it is logged that traces cannot be sent.
const sayEvery = time.Minute

// complaints logs that traces cannot be sent.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	said time.Time
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.said) >= sayEvery {
		c.log.Warn("traces are lost", "error", err)
		c.said = time.Now()
	}
}

// SQL returns what traces the statements of a traced request or job; nil while nothing is sent. Spans have the text of
// a statement, and no values.
func SQL() pgx.QueryTracer {
	if tracer == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithSpanNameFunc(firstWord))
}

// firstWord names a span of SQL.
func firstWord(sql string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
	return strings.ToUpper(strings.TrimSpace(word))
}

// Span is a part of a trace. The zero Span is none.
type Span struct{ span trace.Span }

// Request returns the request with its place in a trace, which its headers may name.
func Request(r *http.Request, route string) (*http.Request, Span) {
	if tracer == nil {
		return r, Span{}
	}
	ctx := carried.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := tracer.Start(ctx, r.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", route)))
	return r.WithContext(ctx), Span{span}
}

// Answered ends the span of a request.
func (s Span) Answered(status int, id string) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(attribute.Int("http.response.status_code", status), attribute.String("varve.request_id", id))
	if status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// Call is a call of a language model, in the words of OpenTelemetry.
type Call struct {
	Provider, Model string
	MaxTokens       int
}

// Model begins the span of a call of a language model.
func Model(ctx context.Context, call Call) (context.Context, Span) {
	if tracer == nil {
		return ctx, Span{}
	}
	ctx, span := tracer.Start(ctx, "chat "+call.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", call.Provider),
		attribute.String("gen_ai.request.model", call.Model),
		attribute.Int("gen_ai.request.max_tokens", call.MaxTokens)))
	return ctx, Span{span}
}

// Replied ends the span of a call with what it used, and how it failed if it did.
func (s Span) Replied(model string, input, output int64, failed string) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", input),
		attribute.Int64("gen_ai.usage.output_tokens", output))
	if model != "" {
		s.span.SetAttributes(attribute.String("gen_ai.response.model", model))
	}
	if failed != "" {
		s.span.SetAttributes(attribute.String("error.type", failed))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// Send puts the place in a trace into the headers of a request of ours.
func Send(ctx context.Context, h http.Header) {
	if tracer != nil {
		carried.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// named is a handler of logs that adds the ids of the trace.
type named struct{ slog.Handler }

// Handle implements slog.Handler.
func (n named) Handle(ctx context.Context, line slog.Record) error {
	if at := trace.SpanContextFromContext(ctx); at.IsValid() {
		line.AddAttrs(slog.String("trace_id", at.TraceID().String()), slog.String("span_id", at.SpanID().String()))
	}
	return n.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (n named) WithAttrs(attrs []slog.Attr) slog.Handler { return named{n.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (n named) WithGroup(name string) slog.Handler { return named{n.Handler.WithGroup(name)} }
