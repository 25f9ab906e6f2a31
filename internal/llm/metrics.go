package llm

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/trace"
)

// The figures of this process's calls. The models have the operator's names, of which there are few; none is labelled
// with a tenant, whose spending the database has.
var (
	callsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_llm_calls_total", Help: "Calls of models with their retries, by how they ended.",
	}, []string{"provider", "model", "outcome"})
	callSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "varve_llm_call_duration_seconds",
		Help:    "How long calls of models took, their retries and waiting included.",
		Buckets: prometheus.ExponentialBuckets(0.1, 2, 12),
	}, []string{"provider", "model"})
	tokensTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_llm_tokens_total", Help: "Tokens that calls of models used: input, cached of these, output.",
	}, []string{"provider", "model", "kind"})
	costTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_llm_cost_total", Help: "What calls of models cost, in the currency of the operator's prices.",
	}, []string{"provider", "model"})
	breakerState = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "varve_llm_breaker_state", Help: "0: the model is asked; 1: one call is let through; 2: it is not asked.",
	}, []string{"provider", "model"})
	openedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_llm_breaker_opened_total", Help: "How often a model was no longer asked because it kept failing.",
	}, []string{"provider", "model"})
)

// outcomes has the values of the label outcome.
var outcomes = []struct {
	err  error
	name string
}{
	{nil, "ok"}, {ErrLimited, "limited"}, {ErrUnavailable, "unavailable"}, {ErrRejected, "rejected"},
	{ErrRefused, "refused"}, {ErrMalformed, "malformed"}, {ErrCut, "cut"}, {ErrOpen, "open"},
	{context.Canceled, "gone"}, {context.DeadlineExceeded, "gone"},
}

// count adds a call that has ended to the figures, and ends its span.
func (c *Configured) count(reply Reply, err error, took time.Duration, span trace.Span) {
	failed := ""
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			callsTotal.WithLabelValues(c.Provider, c.Name, o.name).Inc()
			if err != nil {
				failed = o.name
			}
			break
		}
	}
	used := reply.Usage
	var paid *Error
	if errors.As(err, &paid) {
		used = paid.Usage
	}
	span.Replied(reply.Model, used.Input, used.Output, failed)
	callSeconds.WithLabelValues(c.Provider, c.Name).Observe(took.Seconds())
	for kind, n := range map[string]int64{"input": used.Input, "cached": used.Cached, "output": used.Output} {
		tokensTotal.WithLabelValues(c.Provider, c.Name, kind).Add(float64(n))
	}
	costTotal.WithLabelValues(c.Provider, c.Name).Add(c.Price.Of(used) / 1e6)
}
