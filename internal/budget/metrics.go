package budget

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	totalUnits = gauge("varve_budget_total", "What work under way may weigh together: bytes of memory, or processors.")
	takenUnits = gauge("varve_budget_taken", "What the work under way weighs.")

	waitingWork = gauge("varve_budget_waiting", "Requests and jobs that wait until there is room for them.")

	refusedWork = counter("varve_budget_refused_total", "Requests and jobs for which there was no room in time.")
	waitedTime  = counter("varve_budget_waited_seconds_total", "How long requests and jobs have waited for room.")
)

func gauge(name, help string) *prometheus.GaugeVec {
	return promauto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"resource"})
}

func counter(name, help string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"resource"})
}
