package compactor

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// The counters of this process's compactions. None is labelled with a tenant or a session, of which there may be any
// number; the runs have the figures of each.
var (
	runsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_compaction_runs_total", Help: "Compactions by what asked for them and how they ended.",
	}, []string{"cause", "state"})
	runSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "varve_compaction_step_duration_seconds", Help: "How long each step of a compaction took.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
	}, []string{"step"})
	messagesTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_compaction_messages_total", Help: "Messages that compactions changed.",
	})
	partsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_compaction_parts_total", Help: "Parts that compactions changed, by what was done to them.",
	}, []string{"action"})
	decisionsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_compaction_decisions_total",
		Help: "Parts that compactions changed, by the field of the policy that decided.",
	}, []string{"rule"})
	tokensTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_compaction_tokens_saved_total", Help: "Estimated tokens that views have fewer.",
	})
	bytesTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_compaction_bytes_saved_total", Help: "Bytes of messages that views have fewer.",
	})
	resultsTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_compaction_results_persisted_total", Help: "Tool results that left a view and were persisted.",
	})
	staleTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_compaction_stale_results_total",
		Help: "Results that were out of date because their file was written later.",
	})
	failuresTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_compaction_failures_total", Help: "Attempts at a compaction that failed; most are tried again.",
	})
	failedOpenTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_compaction_failed_open_total",
		Help: "Stages, summaries and checkpoints that failed and were done without.",
	})
	overflowTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_compaction_overflow_risk_total", Help: "Compactions that left a view larger than its window.",
	})
)

// CountFailure counts an attempt at a compaction that failed.
func CountFailure() { failuresTotal.Inc() }

// count adds a run that has ended to the counters. A run that changed nothing saved nothing.
func count(r protocol.Report, cause string, state session.RunState, timings map[string]float64) {
	runsTotal.WithLabelValues(cause, string(state)).Inc()
	for step, ms := range timings {
		runSeconds.WithLabelValues(step).Observe(ms / 1000)
	}
	failedOpenTotal.Add(float64(len(r.FailedOpen)))
	if r.OverflowRisk != nil {
		overflowTotal.Inc()
	}
	if state != session.RunDone {
		return
	}
	messagesTotal.Add(float64(r.MessagesCompacted))
	for action, parts := range r.Actions {
		partsTotal.WithLabelValues(action).Add(float64(parts))
	}
	for rule, parts := range r.Reasons {
		decisionsTotal.WithLabelValues(rule).Add(float64(parts))
	}
	tokensTotal.Add(float64(max(r.TokensSaved, 0)))
	bytesTotal.Add(float64(max(r.BytesBefore-r.BytesAfter, 0)))
	resultsTotal.Add(float64(r.ResultsPersisted))
	staleTotal.Add(float64(r.Stale.Count))
}
