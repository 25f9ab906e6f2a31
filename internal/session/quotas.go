package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// Quotas bound what a tenant uses. A member that is 0 bounds nothing.
type Quotas struct {
	Requests    float64 `json:"requests_per_second"`
	Burst       int     `json:"request_burst"` // requests at once; 0: as many as two seconds give
	BytesADay   int64   `json:"bytes_per_day"` // of request bodies, as they are sent
	StoredBytes int64   `json:"stored_bytes"`  // of messages
	Sessions    int64   `json:"sessions"`
	Imports     int     `json:"concurrent_imports"` // that send lines, to one process

	// Of calls of language models, in a day in UTC.
	ModelCalls  int64   `json:"model_calls_per_day"`
	ModelTokens int64   `json:"model_tokens_per_day"` // of requests and answers
	ModelCost   float64 `json:"model_cost_per_day"`   // in the operator's currency
}

// ParseQuotas reads a JSON object with some members of quotas over others. Its members must be known.
func ParseQuotas(text []byte, over Quotas) (Quotas, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&over); err != nil {
		return over, fmt.Errorf("quotas must be a JSON object such as {\"requests_per_second\":100}: %w", err)
	}
	return over, over.Check()
}

// ModelBudget returns what a tenant's calls of models may use in a day.
func (q Quotas) ModelBudget() ModelBudget {
	return ModelBudget{Calls: q.ModelCalls, Tokens: q.ModelTokens, CostMicros: int64(math.Round(q.ModelCost * 1e6))}
}

// Check returns an error that names the member that is below 0.
func (q Quotas) Check() error {
	for _, member := range []struct {
		name  string
		value float64
	}{
		{"requests_per_second", q.Requests}, {"request_burst", float64(q.Burst)},
		{"bytes_per_day", float64(q.BytesADay)}, {"stored_bytes", float64(q.StoredBytes)},
		{"sessions", float64(q.Sessions)}, {"concurrent_imports", float64(q.Imports)},
		{"model_calls_per_day", float64(q.ModelCalls)}, {"model_tokens_per_day", float64(q.ModelTokens)},
		{"model_cost_per_day", q.ModelCost},
	} {
		if member.value < 0 {
			return fmt.Errorf("%s is %v: it must be 0, which bounds nothing, or more", member.name, member.value)
		}
	}
	return nil
}

// Stored is what of a tenant the database holds.
type Stored struct {
	Sessions int64 `json:"sessions"`
	Bytes    int64 `json:"stored_bytes"` // of messages
}
