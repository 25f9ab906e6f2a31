package compact

import (
	"slices"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
)

// capOversized cuts every result over a limit, the newest ones too: one can be larger than a whole view may be.
func capOversized(s *runState) {
	for i := range s.parts {
		p := &s.parts[i]
		if p.kind != result || !s.free[i] || s.exempt(p) {
			continue
		}
		since := s.capSince(p.message)
		if left := s.oversized(i); left > 0 && since < len(s.messages) {
			want := proposal{action: Cap, head: s.policy.Cap.HeadChars, tail: s.policy.Cap.TailChars}
			s.propose(i, since, want, left)
			s.proposed[i].capped = left
		}
	}
}

// capSince returns the message from which on the cap may act on message m: the newest messages that the policy protects
// are not changed at all, nor what no request has had yet, unless no result ever enters a view whole.
func (s *runState) capSince(m int) int {
	if s.policy.Cap.AtInsertion {
		return m
	}
	return min(max(m+s.policy.Protect.LastMessages, s.seen[m]), len(s.messages))
}

// cappedTo returns what oversized does if the cap is on, whether or not it was needed yet: later the state must know.
func (s *runState) cappedTo(i int) int {
	if !s.policy.Cap.Enabled || s.parts[i].kind != result || s.exempt(&s.parts[i]) {
		return 0
	}
	return s.oversized(i)
}

// exempt reports whether a result is never cut: by its tool, or as a window that was asked for where results are cut as
// they come in. To read that again would be to cut it again.
func (s *runState) exempt(p *part) bool {
	return s.policy.Cap.AtInsertion && p.readBack && p.source != "" || slices.Contains(s.policy.Cap.ExceptTools, p.tool)
}

// oversized returns about how many tokens the cap keeps of part i, which is a result; 0 if it is within all limits.
func (s *runState) oversized(i int) int {
	p := &s.parts[i]
	if p.action != Keep {
		return p.capped
	}
	limits := s.resultCap(i)
	if limits.certainlyFits(p.tokens, p.valueBytes()) {
		return 0
	}
	content := s.content(i)
	if !content.OnlyText || limits.exceeds(p.tokens, content.Text) == "" {
		return 0
	}
	head, tail := limits.cut(content.Text)
	if len(head)+len(tail) >= len(content.Text) {
		return 0
	}
	v := values{
		tool: p.tool, chars: text.Len(content.Text), bytes: len(content.Text), tokens: p.tokens, count: s.count,
	}
	return max(s.count.text(s.words.appendCut(nil, Cap, head, tail, v)), 1)
}

// resultCap is the policy's cap with what the engine does by it.
type resultCap struct {
	*policy.Cap
	count counter
	min   int    // characters that a cut keeps, whatever the limits are
	rule  string // the field that set the limit of tokens
}

// resultCap returns the cap of result i.
func (s *runState) resultCap(i int) resultCap {
	c := resultCap{&s.policy.Cap, s.count, 2 * s.minCutChars(), "cap.max_tokens"}
	if s.capByRatio {
		c.rule = "cap.max_ratio"
	}
	if tokens, ok := s.unitCaps[i]; ok {
		c.Cap = s.capTo(i, tokens)
		c.rule = "cap.unit_ratio"
	}
	return c
}

// certainlyFits reports whether a result is within all limits whatever its text is. bytes is the size of its JSON,
// which has no fewer bytes than the text has characters or lines.
func (c resultCap) certainlyFits(tokens, bytes int) bool {
	for _, limit := range []int{c.MaxBytes, c.MaxChars, c.MaxLines, c.MaxLineChars} {
		if limit > 0 && bytes > limit {
			return false
		}
	}
	return c.MaxTokens == 0 || tokens <= c.MaxTokens
}

// exceeds names the limit that a text exceeds; it returns "" if the text is within all.
func (c resultCap) exceeds(tokens int, t []byte) string {
	switch {
	case c.MaxTokens > 0 && tokens > c.MaxTokens:
		return c.rule
	case c.MaxBytes > 0 && len(t) > c.MaxBytes:
		return "cap.max_bytes"
	case c.MaxChars > 0 && text.Len(t) > c.MaxChars:
		return "cap.max_chars"
	case c.MaxLines > 0 && text.CountLines(t) > c.MaxLines:
		return "cap.max_lines"
	case c.MaxLineChars > 0 && text.LongestLine(t) > c.MaxLineChars:
		return "cap.max_line_chars"
	}
	return ""
}

// cut returns what the cap keeps of a text that exceeds it: all of it, with its long lines clipped, as head if that is
// short enough, else head and tail, which are within all limits together.
func (c resultCap) cut(whole []byte) (head, tail []byte) {
	t := whole
	if c.MaxLineChars > 0 {
		t = text.ClipLines(nil, t, c.MaxLineChars)
	}
	headChars, tailChars := c.HeadChars, c.TailChars
	if n := text.Len(t); n <= headChars+tailChars {
		tailChars = n * tailChars / (headChars + tailChars)
		headChars = n - tailChars
	}
	if c.MaxBytes > 0 && tailChars == 0 { // exactly, also of characters that have several bytes
		headChars = min(headChars, text.Len(t[:charsWithin(t, c.MaxBytes)]))
	}
	const (
		rounds = 16
		less   = 0.97
	)
	for range rounds {
		head, tail = c.ends(t, headChars, tailChars)
		over := c.over(head, tail)
		if over <= 1 {
			break
		}
		headChars = int(float64(headChars) / over * less)
		tailChars = int(float64(tailChars) / over * less)
	}
	if text.Len(head)+text.Len(tail) < c.min {
		return text.First(whole, c.min), nil
	}
	if len(head)+len(tail) == len(t) {
		return t, nil
	}
	return head, tail
}

// charsWithin returns how many bytes the whole characters have that are within the first n bytes of a text.
func charsWithin(t []byte, n int) int {
	n = min(n, len(t))
	for n > 0 && n < len(t) && !utf8.RuneStart(t[n]) {
		n--
	}
	return n
}

// ends returns the first and the last characters of a text, no more lines than the limit, and whole lines if the policy
// wants them.
func (c resultCap) ends(t []byte, headChars, tailChars int) (head, tail []byte) {
	head = text.First(t, headChars)
	tail = text.Last(t[len(head):], tailChars)
	if c.MaxLines > 0 && text.CountLines(t) > c.MaxLines {
		head = text.LeadingLines(head, c.headLines())
		tail = text.TrailingLines(tail, c.MaxLines-c.headLines())
	}
	if c.WholeLines && len(head)+len(tail) < len(t) {
		head = text.WholeLinesHead(t, text.Len(head))
		tail = text.WholeLinesTail(t, text.Len(tail))
	}
	return head, tail
}

// over returns the largest ratio of head and tail together to a limit: 1 or less if they are within all.
func (c resultCap) over(head, tail []byte) (worst float64) {
	for _, at := range []struct{ limit, size int }{
		{c.MaxTokens, c.count.text(head) + c.count.text(tail)},
		{c.MaxBytes, len(head) + len(tail)},
		{c.MaxChars, text.Len(head) + text.Len(tail)},
	} {
		if at.limit > 0 {
			worst = max(worst, float64(at.size)/float64(at.limit))
		}
	}
	return worst
}

// headLines returns how many of the kept lines are the head's.
func (c resultCap) headLines() int {
	return c.MaxLines * c.HeadChars / max(c.HeadChars+c.TailChars, 1)
}

// capOver lets a cap at insertion always apply: what it cuts has never been whole in a view.
func capOver(s *runState) float64 {
	if s.policy.Cap.AtInsertion {
		return -1
	}
	return s.target
}
