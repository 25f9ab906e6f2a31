package compact

import (
	"cmp"
	"context"
	"slices"
)

// SegmentText is a segment with its text.
type SegmentText struct {
	Segment
	Text string
}

// Summaries returns the summaries in the base of an input, oldest first, with their texts, and the ranges in it that
// were dropped without one.
func Summaries(ctx context.Context, in Input) ([]SegmentText, error) {
	h, err := readHistory(ctx, in, len(stages))
	if err != nil {
		return nil, err
	}
	found, err := newRunState(h).summaries()
	if err != nil {
		return nil, err
	}
	var list []SegmentText
	for i := range found.list {
		list = append(list, SegmentText{Segment: found.list[i].shown(), Text: found.list[i].whole()})
	}
	for m := range h.messages {
		if at := &h.messages[m]; at.coversOthers() && len(at.segments) == 0 {
			dropped := Segment{First: at.from, Last: at.to, Messages: at.messages, Tokens: at.now, State: Dropped}
			list = append(list, SegmentText{Segment: dropped})
		}
	}
	slices.SortStableFunc(list, func(a, b SegmentText) int { return cmp.Compare(a.First, b.First) })
	return list, nil
}
