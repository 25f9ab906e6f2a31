package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// Accept decides whether a message can be stored: its size, its JSON within session.JSONLimits, and what Inspect
// requires. Its error is a *session.InvalidError whose pointers are relative to the message.
func Accept(f session.Format, body []byte) (Facts, error) {
	if len(body) <= session.MaxMessageBytes { // Inspect refuses a larger one
		if err := session.CheckJSON("", body, session.JSONLimits); err != nil {
			return Facts{}, err
		}
	}
	return Inspect(f, body)
}
