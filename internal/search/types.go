package search

import (
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/protocol"
)

// passage is a piece of a message or of an uploaded result that the search over all of a tenant's sessions finds.
type passage struct {
	ID         int64
	Rank       float32
	Session    string
	Key        uuid.UUID // of the session
	Seq        int64
	Block      int // of the message, from 0
	At         int // the byte of the piece where the passage begins
	Bytes      int
	AppendedAt time.Time // the message
	Upload     string    // ref of the uploaded result, whose Seq is 0; "" of a message
}

// State is how far a tenant's messages are indexed for the search.
type State struct {
	Language string     `json:"language"`         // whose rules turn texts into words; simple has none
	Behind   int64      `json:"sessions_behind"`  // sessions that are not indexed whole yet, up to maxBehind
	Since    *time.Time `json:"-"`                // it is known of the first of them
	Cold     int64      `json:"sessions_cold"`    // of which nothing is indexed while they are cold, up to maxBehind
	InPart   int64      `json:"messages_in_part"` // and uploaded results, of which only the beginning is indexed
	Through  time.Time  `json:"indexed_through"`  // what was appended before it is found
}

// maxBehind is as far as the sessions are counted that are not indexed yet.
const maxBehind = 10_000

// Answer is what a search over all messages of a tenant has found.
type Answer struct {
	protocol.List[Hit]
	Covers Coverage `json:"covers"`
}

// Coverage says what a search could find.
type Coverage struct {
	State
	Ranked    int  `json:"ranked"`     // passages with the words
	RankedAll bool `json:"ranked_all"` // there are no more
}

// Hit is a passage that was found. Reading Ref shows it.
type Hit struct {
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
