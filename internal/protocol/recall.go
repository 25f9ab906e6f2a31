package protocol

import (
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// Recall is what compactions took out of a tenant's views in a time, and how much of it was read back since.
type Recall struct {
	From  time.Time        `json:"from"`
	To    time.Time        `json:"to"`
	Total session.Regret   `json:"total"`
	Data  []session.Recall `json:"data"`
}
