package protocol

import "github.com/varve-dev/varve/internal/session"

// Pins are what callers pinned of a session.
type Pins struct {
	Data []session.Pin `json:"data"`
}

// PinRequest is the body that pins; it may be absent.
type PinRequest struct {
	Note string `json:"note,omitempty"`
}

// PinCandidates are the user's standing instructions in a piece of a log.
type PinCandidates struct {
	Data    []PinCandidate `json:"data"`
	HasMore bool           `json:"has_more"`
	NextSeq *int64         `json:"next_seq"` // where the next page begins; null at the end
}

// PinCandidate is an instruction of the user that may be worth a pin.
type PinCandidate struct {
	Ref    string `json:"ref"` // pins the part of the message that has it
	Seq    int64  `json:"seq"`
	Part   int    `json:"part"`
	Text   string `json:"text"`   // the instruction
	Tokens int    `json:"tokens"` // of the part
}
