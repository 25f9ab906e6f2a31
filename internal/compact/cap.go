package compact

import (
	"github.com/varve-dev/varve/internal/compact/text"
)

// capOversized cuts every result over a limit to its head and tail, the newest ones too: one result can be larger than
// all that a view may have.
func capOversized(s *scene) {
	for i := range s.parts {
		p := &s.parts[i]
		if p.kind != result || !s.free[i] {
			continue
		}
		if left := s.oversized(i); left > 0 {
			s.propose(i, p.message, proposal{do: Cap, head: s.policy.Cap.HeadChars, tail: s.policy.Cap.TailChars}, left)
			s.wants[i].capped = left
		}
	}
}

// oversized is about how many tokens the cap leaves of part i, which is a result; 0 if it is within all limits.
func (s *scene) oversized(i int) int {
	p, limits := &s.parts[i], &s.policy.Cap
	if p.do != Keep {
		return p.capped
	}
	if limits.surely(p.tokens, p.value.End-p.value.Start) {
		return 0
	}
	content := s.content(i)
	if !content.OnlyText || !limits.exceeds(p.tokens, content.Text) {
		return 0
	}
	head, tail := limits.cut(content.Text)
	if len(head)+len(tail) >= len(content.Text) {
		return 0
	}
	return markerTokens + int(int64(p.tokens)*int64(len(head)+len(tail))/int64(len(content.Text)))
}

// surely reports whether a result is within all limits, as far as its figures tell: bytes is the size of its JSON.
func (c *CapPolicy) surely(tokens, bytes int) bool {
	return (c.MaxTokens == 0 || tokens <= c.MaxTokens) && (c.MaxBytes == 0 || bytes <= c.MaxBytes) &&
		(c.MaxLines == 0 || bytes <= c.MaxLines) && (c.MaxLineChars == 0 || bytes <= c.MaxLineChars)
}

// exceeds reports whether a text is over a limit.
func (c *CapPolicy) exceeds(tokens int, t []byte) bool {
	switch {
	case c.MaxTokens > 0 && tokens > c.MaxTokens, c.MaxBytes > 0 && len(t) > c.MaxBytes, c.MaxLines > 0 && text.CountLines(t) > c.MaxLines:
		return true
	}
	return c.MaxLineChars > 0 && text.LongestLine(t) > c.MaxLineChars
}

// cut returns what the cap leaves of a text that exceeds it: all of it, with its long lines clipped, as head if that is
// short enough, else head and tail.
func (c *CapPolicy) cut(whole []byte) (head, tail []byte) {
	t := whole
	if c.MaxLineChars > 0 {
		t = text.ClipLines(nil, t, c.MaxLineChars)
	}
	headChars, tailChars := c.HeadChars, c.TailChars
	head, tail = t, nil
	if text.Len(t) > headChars+tailChars {
		head, tail = text.First(t, headChars), text.Last(t, tailChars)
	} else if c.MaxLines > 0 {
		head, tail = text.First(t, text.Len(t)/2), text.Last(t, text.Len(t)-text.Len(t)/2)
	}
	if c.MaxLines > 0 && text.CountLines(t) > c.MaxLines {
		head, tail = text.LeadingLines(head, c.headLines()), text.TrailingLines(tail, c.MaxLines-c.headLines())
	}
	if c.WholeLines && len(head) < len(t) {
		head, tail = text.WholeLinesHead(t, text.Len(head)), text.WholeLinesTail(t, text.Len(tail))
	}
	// Whatever lines there are, enough stays that no shorter replacement below is longer.
	if text.Len(head)+text.Len(tail) < 2*policyMinimum {
		return text.First(whole, 2*policyMinimum), nil
	}
	return head, tail
}

// headLines is how many of the lines that stay are the head's.
func (c *CapPolicy) headLines() int {
	return c.MaxLines * c.HeadChars / max(c.HeadChars+c.TailChars, 1)
}

// capOver lets a cap at insertion apply always: what it cuts has never been whole in a view.
func capOver(s *scene) float64 {
	if s.policy.Cap.AtInsertion {
		return -1
	}
	return s.target
}
