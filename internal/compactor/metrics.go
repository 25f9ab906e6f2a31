package compactor

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// The counters of this process's compactions. None is labelled with a tenant or a session, because their number is
// unbounded; the runs have the figures of each session.
var (
	runsTotal = counters("varve_compaction_runs_total",
		"Compactions by what asked for them and how they ended.", "cause", "state")
	runSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "varve_compaction_step_duration_seconds", Help: "How long each step of a compaction took.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
	}, []string{"step"})
	messagesTotal = counter("varve_compaction_messages_total", "Messages that compactions changed.")
	partsTotal    = counters("varve_compaction_parts_total",
		"Parts that compactions changed, by what was done to them.", "action")
	decisionsTotal = counters("varve_compaction_decisions_total",
		"Parts that compactions changed, by the field of the policy that decided.", "rule")
	tokensTotal  = counter("varve_compaction_tokens_saved_total", "Estimated tokens that views have fewer.")
	bytesTotal   = counter("varve_compaction_bytes_saved_total", "Bytes of messages that views have fewer.")
	resultsTotal = counter("varve_compaction_results_persisted_total",
		"Tool results that left a view and were persisted.")
	staleTotal = counter("varve_compaction_stale_results_total",
		"Results that a newer one for their resource made superfluous.")
	resourcesTotal = counter("varve_compaction_stale_resources_total", "Resources of those results, of each run.")
	originalTotal  = counter("varve_compaction_original_messages_total",
		"Messages of the sessions that were compacted.")
	categoryTotal = counters("varve_compaction_evaluations_total",
		"Decisions about parts of views, by what the part's tool does.", "category")
	reasonTotal = counters("varve_compaction_evaluation_reasons_total",
		"Decisions about parts of views, by what was decided and why.", "reason")
	failuresTotal = counter("varve_compaction_failures_total",
		"Attempts at a compaction that failed; most are tried again.")
	failedOpenTotal = counter("varve_compaction_failed_open_total",
		"Stages, summaries and checkpoints that failed and were done without.")
	overflowTotal = counter("varve_compaction_overflow_risk_total",
		"Compactions that left a view larger than its window.")
)

func counter(name, help string) prometheus.Counter {
	return promauto.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

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
	if state == session.RunPostponed {
		return
	}
	for category, parts := range r.Decisions.ByCategory {
		categoryTotal.WithLabelValues(category).Add(float64(parts))
	}
	for reason, parts := range r.Decisions.ByReason {
		reasonTotal.WithLabelValues(reason).Add(float64(parts))
	}
	if state != session.RunDone {
		return
	}
	originalTotal.Add(float64(r.MessagesTotal))
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
	resourcesTotal.Add(float64(r.Stale.ResourcesTotal))
}
