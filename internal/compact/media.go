package compact

import "github.com/varve-dev/varve/internal/wire"

// heavyBytes is the size of a result with media from which on its bytes count.
const heavyBytes = 64 << 10

// heavyResult is a large result that is not all text: a screenshot, a file. Its tokens say nothing of its bytes. Images
// have at least that share of its bytes here with which a third of those that a request may have fill it.
type heavyResult struct{ part, bytes int }

// heavyResults are the heavy results of a session by their place, whole or not, with the bytes of the whole.
type heavyResults []heavyResult

func (s *runState) heavy() (list heavyResults) {
	for i := range s.parts {
		if bytes := s.heavyBytesOf(i); bytes > 0 {
			list = append(list, heavyResult{i, bytes})
		}
	}
	return list
}

// heavyBytesOf returns how many bytes part i had, 0 if it was no heavy result.
func (s *runState) heavyBytesOf(i int) int {
	p := &s.parts[i]
	bytes := p.valueBytes()
	if p.action != Keep {
		bytes = p.bytes
	}
	if p.kind != result || !s.free[i] {
		return 0
	}
	limit, value := s.in.MaxImages, p.value.Of(s.body(p.message))
	if limit > 0 && p.action == Keep && wire.MayShow(s.in.Format, value) {
		bytes = max(bytes, s.policy.MediaBytes/max(1, limit/3))
	} else if bytes < heavyBytes {
		return 0
	}
	onlyText := p.onlyText
	if p.action == Keep {
		onlyText = p.value.Of(s.body(p.message))[0] == '"' || s.content(i).OnlyText
	}
	if onlyText {
		return 0
	}
	return bytes
}

// over returns, for each result from the first on that those after it push beyond a number of bytes, the message that
// did so. The newest result is never among them: the model may not have seen it yet.
func (h heavyResults) over(limit int) (pushed []int) {
	end, total := 0, 0 // the results from i to before end have total bytes
	for i := range h {
		for ; end < len(h) && (total <= limit || end < i+2); end++ {
			total += h[end].bytes
		}
		if total <= limit || end < i+2 {
			break
		}
		pushed = append(pushed, h[end-1].part)
		total -= h[i].bytes
	}
	return pushed
}

// keepMediaBytes bounds the bytes of all heavy results together: the oldest become lines until the others fit. As with
// the budget of tokens, lines count nothing and originals count whole. What protects the newest messages does not hold
// them, for they may be larger than any request that a provider takes; that of a tool does.
func keepMediaBytes(s *runState) {
	heavy := s.heavy()
	for k, pushedBy := range heavy.over(s.policy.MediaBytes) {
		i := heavy[k].part
		p := &s.parts[i]
		want := proposal{action: Placeholder, distance: s.distance(p.message), media: true}
		if s.proposed[i].action == Stub || p.action != Keep && p.valueBytes() >= heavyBytes {
			want.action = Blank
		}
		s.bare[i] = true
		s.propose(i, s.parts[pushedBy].message, want, stubTokens)
	}
}
