package replay

import (
	"context"

	"github.com/varve-dev/varve/internal/compact"
)

// Grow replays a session without measuring anything, and returns it as its next compaction would find it.
//
// Errors: those of Measure.
func Grow(s *Session, by Contender, window int) (compact.Input, error) {
	x := &indexer{index: &index{messages: make([]indexed, len(s.Messages))}, session: s}
	for i := range s.Messages {
		x.place(i)
	}
	x.matcher = newMatcher(nil, nil)
	l := newLife(&Session{Name: s.Name, Format: s.Format, Messages: s.Messages, index: x.index}, by, window)
	for i := range s.Messages {
		if err := l.append(context.Background(), i); err != nil {
			return compact.Input{}, err
		}
	}
	return l.input(), nil
}
