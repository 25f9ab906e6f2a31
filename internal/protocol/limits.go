package protocol

import "github.com/varve-dev/varve/internal/session"

// Limits is the answer of GET /v1/limits.
type Limits struct {
	Object      string           `json:"object"`
	Limits      map[string]int64 `json:"limits"`
	Connections map[string]Share `json:"connections"` // of one process, by class
	Quotas      session.Quotas   `json:"quotas"`      // 0 bounds nothing
	Used        Used             `json:"used"`        // of the quotas that bound something
}

// Share is how many connections a class has, and how many of them one tenant can hold at most.
type Share struct {
	Process int `json:"process"`
	Tenant  int `json:"tenant"`
}

// Used is what is left of a tenant's buckets in the process that answers, and what it has.
type Used struct {
	RequestsLeft int64 `json:"requests_left"`
	BytesLeft    int64 `json:"bytes_left"`
	Imports      int   `json:"concurrent_imports"`
	session.Stored

	// Models is what calls of language models have used since the day began in UTC, and what those under way may use:
	// of all models, whose name is "", and of each. It is empty as long as there was no call.
	Models []session.ModelSpent `json:"models"`
}
