package config

import (
	"errors"
	"fmt"
	"math"

	"github.com/varve-dev/varve/internal/session"
)

// Budgets bound what models may cost, as JSON of a setting or a file: {"day": {"tokens": 5000000, "cost": 10}}.
type Budgets struct {
	Run Budget `json:"run"` // of one summary, with all its parts
	Day Budget `json:"day"` // of one tenant in a day of UTC
}

// Budget bounds calls of models. What is nil is not said; 0 bounds nothing.
type Budget struct {
	Calls  *int64   `json:"calls,omitempty"`
	Tokens *int64   `json:"tokens,omitempty"` // of requests and answers
	Cost   *float64 `json:"cost,omitempty"`   // in the operator's currency, by the prices of the models
}

// defaultBudgets hold where nobody says otherwise: nothing is without a bound by accident.
var defaultBudgets = Budgets{
	Run: Budget{new(int64(60)), new(int64(2_000_000)), new(2.0)},
	Day: Budget{new(int64(1_000)), new(int64(20_000_000)), new(20.0)},
}

// UnmarshalText reads the JSON, whose members must be known.
func (b *Budgets) UnmarshalText(text []byte) error {
	if err := readStrict(text, b); err != nil {
		return fmt.Errorf("budgets must be a JSON object such as {\"day\":{\"tokens\":5000000,\"cost\":10}}: %w", err)
	}
	return nil
}

// over sets what it says in what holds without it.
func (b Budgets) over(below *Budgets) {
	b.Run.over(&below.Run)
	b.Day.over(&below.Day)
}

func (b Budget) over(below *Budget) {
	if b.Calls != nil {
		below.Calls = b.Calls
	}
	if b.Tokens != nil {
		below.Tokens = b.Tokens
	}
	if b.Cost != nil {
		below.Cost = b.Cost
	}
}

// The largest figures of a budget.
const (
	maxCount = 1e15
	maxCost  = 1e9
)

func (b Budgets) check() error { return errors.Join(b.Run.check("run"), b.Day.check("day")) }

func (b Budget) check(of string) error {
	return errors.Join(
		checkFigure("budgets/"+of+"/calls", float64(*b.Calls), maxCount),
		checkFigure("budgets/"+of+"/tokens", float64(*b.Tokens), maxCount),
		checkFigure("budgets/"+of+"/cost", *b.Cost, maxCost),
	)
}

func checkFigure(place string, figure, limit float64) error {
	if figure >= 0 && figure <= limit {
		return nil
	}
	return fmt.Errorf("/%s: it must be from 0, which bounds nothing, to %g, not %g", place, limit, figure)
}

// Model returns the budget as the database counts, in millionths of the currency. It must have all figures.
func (b Budget) Model() session.ModelBudget {
	return session.ModelBudget{Calls: *b.Calls, Tokens: *b.Tokens, CostMicros: int64(math.Ceil(*b.Cost * 1e6))}
}
