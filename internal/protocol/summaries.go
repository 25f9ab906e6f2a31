package protocol

import (
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// Summaries are the summaries of a checkpoint, oldest first, and then those that it waits for.
type Summaries struct {
	Checkpoint int `json:"checkpoint"` // 0 before the first
	// oldest first; then, of the newest checkpoint, those that it waits for
	Summaries []Summary `json:"summaries"`
}

// Summary is the summary of a range of messages.
type Summary struct {
	First    int64  `json:"first_seq" schema:"minimum: 1"`
	Last     int64  `json:"last_seq" schema:"minimum: 1"`
	Ref      string `json:"ref"`      // brings the messages back
	Messages int    `json:"messages"` // that it replaces; 0 while the view still shows them
	Tokens   int    `json:"tokens"`   // of its text
	Writer   string `json:"writer"`   // a model, or `extract`; empty while there is no text
	// `due`: the text stands in until the model has answered; `dropped`: the messages left without a summary
	State      string   `json:"state" schema:"enum: [written, due, failed, dropped]"`
	Generation int      `json:"generation"` // 1 for a summary of messages, 2 for one of such summaries, …
	Flags      []string `json:"flags"`      // suspicious features of the text
	Text       string   `json:"text"`

	// Of the model that the policy names; absent if none was asked.
	Model      string              `json:"model,omitempty"`
	Attempts   int                 `json:"attempts,omitempty"`
	AskedAt    *time.Time          `json:"asked_at,omitempty"`
	AnsweredAt *time.Time          `json:"answered_at,omitempty"` // or gave up
	Reason     string              `json:"reason,omitempty"`      // why the model has failed
	AskAgainAt *time.Time          `json:"ask_again_at,omitempty"`
	Provenance *session.Provenance `json:"provenance,omitempty"` // of an answer
}

// WantedSummary is what a compaction wants from a model.
type WantedSummary struct {
	First int64  `json:"first_seq" schema:"minimum: 1"`
	Last  int64  `json:"last_seq" schema:"minimum: 1"`
	Model string `json:"model"` // the operator's name
	// `kept`: it was asked before; `due`: it is not asked now; `asked`: it was asked for this request
	State     string  `json:"state" schema:"enum: [kept, due, asked, failed]"`
	Calls     int64   `json:"calls"`             // to come or, if it was asked, made
	Input     int64   `json:"input_tokens"`      // at most, if the model was not asked yet
	OutputMax int64   `json:"output_tokens_max"` //
	CostMax   float64 `json:"cost_max"`          // in the operator's currency
	StandIn   bool    `json:"stand_in"`          // the policy's fallback stands in its place
	Reason    string  `json:"reason,omitempty"`  // why the model has failed
}
