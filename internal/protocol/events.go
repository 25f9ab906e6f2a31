package protocol

import "github.com/varve-dev/varve/internal/session"

// Events is a page of a tenant's events, oldest first.
type Events struct {
	Data []session.Event `json:"data"`
	// behind which the next page begins; beyond what a filter left out
	After   int64 `json:"next_after"`
	HasMore bool  `json:"has_more"`
	Newest  int64 `json:"newest"` // the number of the newest event, 0 if there was none
	Oldest  int64 `json:"oldest"` // the number of the oldest event that is kept, 0 for none
}
