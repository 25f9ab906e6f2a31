package compact

import (
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Divide returns a message of the log as a compaction takes it: an AI SDK message of several steps as several, so that
// its steps are protected, trimmed and evicted one by one, as they are in formats with a message a step. A message with
// calls that wait for their results stays whole.
func Divide(f session.Format, e Entry) []Entry {
	bodies := wire.Steps(f, e.Body)
	entries := make([]Entry, len(bodies))
	parts := 0
	for i, body := range bodies {
		found, err := wire.Inspect(f, body)
		if err != nil {
			return []Entry{e} // Steps writes nothing that Inspect refuses; its fuzz test holds it to that
		}
		entries[i] = Entry{Seq: e.Seq, Tokens: found.Tokens, Body: body, Part: parts, Step: i > 0}
		parts += len(found.Parts)
	}
	if len(entries) == 0 {
		return []Entry{e}
	}
	return entries
}
