package modelcall

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/session"
)

// answersTotal counts what this process needed answers for. What calls cost is counted by internal/llm.
var answersTotal = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "varve_model_answers_total",
	Help: "Answers of models that were needed: kept ones, paid ones, those that budgets refused, and failed calls.",
}, []string{"model", "outcome"})

// count counts how an answer that was not kept was had.
func (r *run) count(err error) {
	outcome := "failed"
	switch {
	case err == nil:
		outcome = "paid"
	case errors.Is(err, session.ErrExists), errors.Is(err, session.ErrModelAsked), errors.Is(err, session.ErrStale):
		return // it is looked for again
	case errors.Is(err, ErrBudget):
		outcome = "budget"
	}
	answersTotal.WithLabelValues(r.model.Name, outcome).Inc()
}
