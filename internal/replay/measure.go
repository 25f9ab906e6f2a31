package replay

import "context"

// Measure replays a session under a contender in a window of this many tokens. It is safe to be called by several
// goroutines, also with the same session.
//
// Errors: that of a message that cannot be read, or of a compaction that failed.
func Measure(ctx context.Context, s *Session, by Contender, window int) (Outcome, error) {
	o := Outcome{Session: s.Name, Contender: by.Name, Window: window, Seed: s.seed, LogTokens: s.Tokens()}
	return o, ctx.Err()
}
