package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
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

// QuotaMember is a member of quotas in JSON.
type QuotaMember struct {
	Name  string
	Whole bool // it counts in whole numbers
}

// QuotaMembers returns the members of quotas, in the order of the fields of Quotas.
func QuotaMembers() (members []QuotaMember) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Quotas]()) {
		members = append(members, QuotaMember{field.Tag.Get("json"), field.Type.Kind() != reflect.Float64})
	}
	return members
}

// Check returns an error that names the member that is below 0.
func (q Quotas) Check() error {
	fields := reflect.ValueOf(q)
	for i, member := range QuotaMembers() {
		if value := fields.Field(i).Convert(reflect.TypeFor[float64]()).Float(); value < 0 {
			return fmt.Errorf("%s is %v: it must be 0, which bounds nothing, or more", member.Name, value)
		}
	}
	return nil
}

// Stored is what of a tenant the database holds.
type Stored struct {
	Sessions int64 `json:"sessions"`
	Bytes    int64 `json:"stored_bytes"` // of messages
}
