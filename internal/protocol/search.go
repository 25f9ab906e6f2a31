package protocol

import (
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// SearchAnswer is what a search over all messages of a tenant has found.
type SearchAnswer struct {
	List[SearchHit]
	Covers SearchCoverage `json:"covers"`
}

// SearchCoverage says what a search could find.
type SearchCoverage struct {
	session.SearchState
	Ranked    int  `json:"ranked"`     // passages with the words
	RankedAll bool `json:"ranked_all"` // there are no more
}

// SearchHit is a passage that was found. Reading Ref shows it.
type SearchHit struct {
	Session   string    `json:"session"`
	Seq       int64     `json:"seq"` // 0 of an uploaded result
	Ref       string    `json:"ref"`
	Role      string    `json:"role,omitempty"`
	Kind      string    `json:"kind,omitempty"` // text, reasoning, call or result
	Tool      string    `json:"tool,omitempty"`
	Snippet   string    `json:"snippet"`
	Rank      float32   `json:"rank"`
	CreatedAt time.Time `json:"created_at"` // of the message, or when the result was whole
	ReadBack  string    `json:"read_back"`  // the path that reads the ref
	ID        int64     `json:"-"`
}
