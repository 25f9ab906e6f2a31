package compact

import (
	"slices"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
)

// ratioCaps are the limits of the cap that are shares of the window.
type ratioCaps struct {
	capByRatio bool        // the limit of tokens is cap.max_ratio
	unitCaps   map[int]int // by result: tokens, where the unit's results are too large together
}

// applyRatios turns the shares of the window into limits of tokens.
func (s *runState) applyRatios() {
	limits := &s.policy.Cap
	if !limits.Enabled {
		return
	}
	if tokens := int(limits.MaxRatio * s.window); tokens > 0 && (limits.MaxTokens == 0 || tokens < limits.MaxTokens) {
		limits.MaxTokens = tokens
		s.capByRatio = true
	}
	if room := int(limits.UnitRatio * s.window); room > 0 {
		s.unitCaps = map[int]int{}
		for first := 0; first < len(s.parts); {
			end := first + 1
			for end < len(s.parts) && s.unitOfPart(end) == s.unitOfPart(first) {
				end++
			}
			s.capUnit(first, end, room)
			first = end
		}
	}
}

func (s *runState) unitOfPart(i int) int { return s.messages[s.parts[i].message].unit }

// capUnit limits the results among parts[first:end], which are of one unit, if they have more tokens than room.
func (s *runState) capUnit(first, end, room int) {
	total := 0
	for i := first; i < end; i++ {
		total += s.uncapped(i)
	}
	if total <= room {
		return
	}
	sizes := make([]int, 0, end-first)
	for i := first; i < end; i++ {
		sizes = append(sizes, s.uncapped(i))
	}
	level := max(levelOf(sizes, room), 1)
	for i := first; i < end; i++ {
		if s.uncapped(i) > level {
			s.unitCaps[i] = level
		}
	}
}

// uncapped returns how many tokens part i has if it is a result within the limit of one result; 0 for other parts.
func (s *runState) uncapped(i int) int {
	p, limit := &s.parts[i], s.policy.Cap.MaxTokens
	switch {
	case p.kind != result:
		return 0
	case limit > 0:
		return min(p.tokens, limit)
	}
	return p.tokens
}

// levelOf returns the largest level with which the sizes, none above it, have no more than room together.
func levelOf(sizes []int, room int) int {
	sizes = slices.Sorted(slices.Values(sizes))
	for k, size := range sizes {
		if size*(len(sizes)-k) > room {
			return room / (len(sizes) - k)
		}
		room -= size
	}
	return sizes[len(sizes)-1]
}

// capTo returns the policy's cap with head and tail that fill a number of tokens of result i, which is whole.
func (s *runState) capTo(i, tokens int) *policy.Cap {
	limits := s.policy.Cap
	limits.MaxTokens = tokens
	chars := int(float64(text.Len(s.content(i).Text)) / float64(max(s.parts[i].tokens, 1)) * float64(tokens))
	whole := limits.HeadChars + limits.TailChars
	limits.HeadChars = max(int(float64(chars)/float64(whole)*float64(limits.HeadChars)), 1)
	limits.TailChars = max(chars-limits.HeadChars, 0)
	return &limits
}
