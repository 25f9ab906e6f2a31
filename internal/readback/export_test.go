package readback

import (
	"context"
	"time"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
)

// MaxSegment is the longest segment.
const MaxSegment = maxSegment

// GrepContent greps one content. Its budget is a number of bytes, or, if that is 0, what every call has.
func GrepContent(ctx context.Context, of *persist.Content, want GrepWanted, bytes int64) (*protocol.Matches, error) {
	if want.bytes = bytes; bytes > 0 {
		want.time = time.Hour
	}
	if err := want.check(); err != nil {
		return nil, err
	}
	p, err := compile(want.Pattern, want.Regex, want.IgnoreCase)
	if err != nil {
		return nil, err
	}
	g := &grep{GrepWanted: want}
	if err := g.begin(); err != nil {
		return nil, err
	}
	g.scan = scan{pattern: p, budget: want.budget(), next: g.first}
	if err := g.look(ctx, "r1.0-0000", of); err != nil {
		return nil, err
	}
	return g.answer(), nil
}

// Readable returns the text in a result that is JSON.
var Readable = readable
