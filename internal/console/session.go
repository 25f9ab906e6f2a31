package console

import (
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
)

// sessionHead is what all pages of a session have above them.
type sessionHead struct {
	Session protocol.Session
	Bar     bar
	Tab     string
	Expires *time.Time
}

// withPolicy asks for a session with its policy.
var withPolicy = client.Options{Query: client.Query{"include": "policy"}}

// head reads a session.
func (v *visit) head(tab string) (h sessionHead, err error) {
	read, err := client.ReadSession.With(v.ctx, v.api, withPolicy, v.r.PathValue("id"))
	if err != nil {
		return h, err
	}
	s := read.Value
	return sessionHead{Session: s, Bar: barOf(&s, effective(s.Policy)), Tab: tab, Expires: s.ExpiresAt}, nil
}

// Saved returns how many fewer tokens the view has than the log.
func (h *sessionHead) Saved() int64 { return max(h.Session.TotalTokens-h.Session.ContextTokens, 0) }

// compactNow asks for a compaction, and leads to its run.
func compactNow(v *visit) error {
	id := v.r.PathValue("id")
	_, err := client.CompactSession.With(v.ctx, v.api, client.Options{Query: client.Query{"wait": 5}}, id)
	return v.then(err, "sessions", id)
}
