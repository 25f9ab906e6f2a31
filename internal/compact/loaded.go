package compact

import (
	"github.com/varve-dev/varve/internal/wire"
)

// setStaying finds the messages that load tools and stay when what is around them leaves, with the rest of their units
// where a format has calls and results in messages of their own.
func (s *runState) setStaying() {
	s.spared = make([]bool, len(s.messages))
	var starts []bool
	loads := wire.NewLoads(s.window)
	for m := len(s.messages) - 1; m >= s.leading; m-- {
		if !loads.IsNew(wire.LoadedTools(s.in.Format, s.body(m))) {
			continue
		}
		if starts == nil {
			starts = s.startsOf(len(s.messages))
		}
		staying := s.loading(m, starts)
		tokens := 0
		for _, k := range staying {
			tokens += s.messages[k].now
		}
		if !loads.Fits(int64(tokens)) {
			return
		}
		for _, k := range staying {
			s.spared[k] = true
			s.keepLoaded(k)
		}
	}
}

// loading returns the messages that stay for one that loads tools: its unit, or the item alone, with the search that
// found the tools and the reasoning that led to that.
func (s *runState) loading(m int, starts []bool) (staying []int) {
	first, last := m, m+1
	if s.provider.Items {
		staying = append(staying, m)
		id, isFound := wire.FoundBy(s.body(m))
		for k := m - 1; k >= s.leading && isFound; k-- {
			leads := len(staying) > 1 && staying[len(staying)-1] == k+1 && wire.IsThought(s.body(k))
			isSearch := wire.IsSearch(s.body(k), id)
			switch {
			case leads || isSearch && (id == "" || len(staying) == 1):
				staying = append(staying, k)
			case id == "" || len(staying) > 1:
				return staying
			}
		}
		return staying
	}
	for first > 0 && !starts[first] {
		first--
	}
	for last < len(s.messages) && !starts[last] {
		last++
	}
	for k := first; k < last; k++ {
		staying = append(staying, k)
	}
	return staying
}

// keepLoaded keeps stages from changing the results of a message that load tools.
func (s *runState) keepLoaded(m int) {
	for i := s.messages[m].first; i < s.messages[m].last; i++ {
		p := &s.parts[i]
		if p.kind == result && wire.MayLoad(s.in.Format, p.value.Of(s.body(m))) {
			s.held[i], s.free[i] = true, false
		}
	}
}

// isKept reports whether message m stays when the messages around it leave.
func (s *runState) isKept(m int) bool { return m == s.newestUserKept || s.spared[m] }
