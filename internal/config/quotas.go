package config

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/varve-dev/varve/internal/session"
)

// Quotas are those of a tenant, as a setting or an argument: a JSON object with some of their members.
type Quotas struct{ session.Quotas }

// With returns the quotas with what calls of language models may use in a day, which workers must know, too, and so is
// a setting of its own.
func (q Quotas) With(day session.ModelBudget) session.Quotas {
	of := day.Quotas()
	q.ModelCalls = of.ModelCalls
	q.ModelTokens = of.ModelTokens
	q.ModelCost = of.ModelCost
	return q.Quotas
}

// UnmarshalText reads the JSON, whose members must be known.
func (q *Quotas) UnmarshalText(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&q.Quotas); err != nil {
		return fmt.Errorf("quotas must be a JSON object such as {\"requests_per_second\":100}: %w", err)
	}
	return q.Check()
}
