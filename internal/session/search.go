package session

import (
	"time"

	"github.com/google/uuid"
)

// SearchPassage is a piece of a message or of an uploaded result that the search over all of a tenant's sessions finds.
type SearchPassage struct {
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

// SearchState is how far a tenant's messages are indexed for the search.
type SearchState struct {
	Language string     `json:"language"`         // whose rules turn texts into words; simple has none
	Behind   int64      `json:"sessions_behind"`  // sessions that are not indexed whole yet, up to MaxBehind
	Since    *time.Time `json:"-"`                // it is known of the first of them
	Cold     int64      `json:"sessions_cold"`    // of which nothing is indexed while they are cold, up to MaxBehind
	InPart   int64      `json:"messages_in_part"` // and uploaded results, of which only the beginning is indexed
	Through  time.Time  `json:"indexed_through"`  // what was appended before it is found
}

// MaxBehind is as far as the sessions are counted that are not indexed yet.
const MaxBehind = 10_000
