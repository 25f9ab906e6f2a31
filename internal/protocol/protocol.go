// Package protocol declares the requests and answers of the HTTP API as JSON structs, without logic. internal/api
// answers with them and client reads them, so that no answer is declared twice.
//
// Start at List and Problem, which every route shares; then there is one file for each kind of resource. Answers that
// are a domain type as it stands are that type: session.Run, session.CheckpointRecord, compact.Action, manifest.Entry.
package protocol

import "github.com/varve-dev/varve/internal/session"

// List is one page of a list. NextCursor is null on the last page.
type List[T any] struct {
	Object     string  `json:"object"`
	Data       []T     `json:"data"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// Problem is the body of every error: RFC 9457, with a member that clients of OpenAI's API read.
type Problem struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Instance  string            `json:"instance"`
	Code      string            `json:"code"`
	RequestID string            `json:"request_id"`
	Retryable bool              `json:"retryable"`
	Current   *int64            `json:"current_seq,omitempty"`
	Minimum   *int64            `json:"minimum_tokens,omitempty"`
	Scope     session.Scope     `json:"missing_scope,omitempty"`
	Errors    []session.Problem `json:"errors,omitempty"`
	Error     OpenAIError       `json:"error"`
}

// OpenAIError is a problem in the form of OpenAI's API.
type OpenAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Code    string  `json:"code"`
	Param   *string `json:"param"`
}
