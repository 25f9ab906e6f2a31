package postgres

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/session"
)

var damagedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "varve_damaged_total",
	Help: "Times that stored bytes were not those that were written, by what they belong to.",
}, []string{"kind"})

// CountDamage counts err if it is a *session.DamagedError. Whoever answers it, or does without what is damaged, calls
// this once.
func CountDamage(err error) {
	var damaged *session.DamagedError
	if errors.As(err, &damaged) {
		damagedTotal.WithLabelValues(damaged.Kind()).Inc()
	}
}
