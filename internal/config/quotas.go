package config

import "github.com/varve-dev/varve/internal/session"

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
func (q *Quotas) UnmarshalText(text []byte) (err error) {
	q.Quotas, err = session.ParseQuotas(text, q.Quotas)
	return err
}
