package compact

import (
	"errors"
	"slices"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// mostGenerations is how many times a model summarises what models wrote before it summarises the log again.
const mostGenerations = 3

// merged merges the oldest summaries until they are as few and as small as they may be. The newest is never merged.
func (u *summaries) merged(list []segmentText) []segmentText {
	for len(list) > 2 && (len(list) > u.policy.Summarise.MaxSegments() || tokensOf(list) > u.segmentsRoom()) {
		i := pairOf(list[:len(list)-1])
		one, err := u.merge(list, i)
		if err != nil {
			u.failure = errors.Join(u.failure, err)
			break
		}
		list = slices.Replace(list, i, i+2, one)
	}
	return list
}

// pairOf returns the oldest neighbours of the lowest generation, or the two oldest if no neighbours are of one: as a
// binary counter adds, so that what was written of a message is written again a logarithmic number of times.
func pairOf(list []segmentText) (pair int) {
	lowest := 0
	for i := range len(list) - 1 {
		if g := list[i].generation; g == list[i+1].generation && (lowest == 0 || g < lowest) {
			pair, lowest = i, g
		}
	}
	return pair
}

// merge returns one summary in the place of list[i] and list[i+1]. It never waits: until a model has answered,
// Extract's is there.
func (u *summaries) merge(list []segmentText, i int) (segmentText, error) {
	a, b := &list[i], &list[i+1]
	one := segmentText{segment: segment{
		from: a.from, to: b.to, messages: a.messages + b.messages, replaced: a.replaced + b.replaced,
		generation: max(a.generation, b.generation) + 1,
		state:      Written,
	}}
	texts := joined(a.whole(), b.whole())
	if texts == "" {
		return one, nil
	}
	r := u.asked()
	r.First, r.Last = one.from, one.to
	r.Previous, r.Merge = texts, true
	if messages := u.again(&one, one.to); messages != nil {
		r.Messages = messages
		r.Previous, r.Merge = "", false
		for k := range list {
			if k != i && k != i+1 {
				r.Earlier = append(r.Earlier, list[k].whole())
			}
		}
	}
	if err := u.ask(&one, r, true); err != nil {
		return one, err
	}
	one.lasting, one.now = one.whole(), ""
	u.measure(&one)
	return one, nil
}

// again returns the messages, to one of them, of a summary that must be made of the log, because it would be of too
// many generations: nil if it need not be, or cannot. Extract copies lines: what it wrote does not drift.
func (u *summaries) again(p *segmentText, to int64) []summary.Message {
	if p.generation <= mostGenerations || u.write == nil || u.older == nil {
		return nil
	}
	messages, err := u.older(p.from, to)
	if err != nil {
		u.failure = errors.Join(u.failure, err)
	}
	if len(messages) == 0 {
		return nil
	}
	p.generation = 1
	return messages
}
