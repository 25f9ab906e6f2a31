package trace

import (
	"context"
	"encoding/json"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Jobs returns the middleware that keeps the trace of what inserts a job, and works the job in it; none while nothing
// is sent.
func Jobs() []rivertype.Middleware {
	if tracer == nil {
		return nil
	}
	return []rivertype.Middleware{&jobs{}}
}

type jobs struct{ river.MiddlewareDefaults }

// InsertMany writes the place in the trace into the metadata of jobs.
func (*jobs) InsertMany(
	ctx context.Context, all []*rivertype.JobInsertParams,
	insert func(context.Context) ([]*rivertype.JobInsertResult, error),
) ([]*rivertype.JobInsertResult, error) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return insert(ctx)
	}
	for _, job := range all {
		metadata := map[string]any{}
		if json.Unmarshal(job.Metadata, &metadata) != nil && len(job.Metadata) > 0 {
			continue
		}
		headers := propagation.MapCarrier{}
		carried.Inject(ctx, headers)
		for name, value := range headers {
			metadata[name] = value
		}
		job.Metadata, _ = json.Marshal(metadata) // has only what was JSON, and texts
	}
	return insert(ctx)
}

// Work does a job as a part of the trace of what inserted it.
func (*jobs) Work(ctx context.Context, job *rivertype.JobRow, do func(context.Context) error) error {
	var headers struct{ Traceparent, Tracestate string }
	_ = json.Unmarshal(job.Metadata, &headers) // a job without them begins a trace
	ctx = carried.Extract(ctx, propagation.MapCarrier{
		"traceparent": headers.Traceparent, "tracestate": headers.Tracestate,
	})
	ctx, span := tracer.Start(ctx, "job "+job.Kind, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("varve.job.queue", job.Queue), attribute.Int64("varve.job.id", job.ID),
		attribute.Int("varve.job.attempt", job.Attempt)))
	defer span.End()
	err := do(ctx)
	if err != nil {
		span.SetStatus(codes.Error, "")
		span.RecordError(err)
	}
	return err
}
