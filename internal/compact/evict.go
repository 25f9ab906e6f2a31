package compact

import (
	"fmt"
	"iter"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// eviction takes the oldest messages out of the view as whole units. One message replaces them: a summary or a notice.
type eviction struct {
	begin, end int // messages[begin:end], kept aside
	kept       int // the newest message of the user, which is never evicted; -1 if it is not among them
	action     ActionKind
	stage      string
	coverage
	body   []byte // of the message that replaces them
	tokens int    // of it, as stages count
	now    int    // of it, as it is
}

func (d *eviction) evicts(m int) bool { return d.begin <= m && m < d.end && m != d.kept }

// evicted yields the messages that are evicted.
func (d *eviction) evicted() iter.Seq[int] {
	return func(yield func(m int) bool) {
		for m := d.begin; m < d.end; m++ {
			if m != d.kept && !yield(m) {
				return
			}
		}
	}
}

// newEviction prepares the eviction of messages[begin:end]. It returns nil if no message of the log is among them.
func (s *runState) newEviction(begin, end int, action ActionKind) *eviction {
	d := &eviction{begin: begin, end: end, kept: -1, action: action, stage: s.stage}
	switch {
	case begin == s.newestUserKept:
		d.begin = begin + 1
	case begin < s.newestUserKept && s.newestUserKept < end:
		d.kept = s.newestUserKept
	}
	fromLog := false
	for m := range d.evicted() {
		at := &s.messages[m]
		d.cover(at)
		fromLog = fromLog || !at.coversOthers()
	}
	if !fromLog {
		return nil
	}
	return d
}

// compose makes the message that replaces the others. Its role is the user's: every provider accepts one there, and
// nothing that was part of a conversation may speak as the system.
func (d *eviction) compose(f session.Format, template *text.Template, inner string) error {
	content := template.Append(nil, func(dst []byte, name string) []byte {
		switch name {
		case "text":
			d.inner.start = len(dst)
			dst = append(dst, inner...)
			d.inner.end = len(dst)
			return dst
		case "first":
			return fmt.Append(dst, d.from)
		case "last":
			return fmt.Append(dst, d.to)
		}
		return fmt.Append(dst, d.messages)
	})
	d.body = wire.UserMessage(f, rawjson.Quote(nil, content))
	found, err := wire.Inspect(f, d.body)
	d.tokens, d.now = found.Tokens, found.Tokens
	return err
}

// currentTokens returns what the evicted messages have in the view.
func (d *eviction) currentTokens(h *history) (sum int) {
	for m := range d.evicted() {
		sum += h.messages[m].now
	}
	return sum
}

func (d *eviction) reason() string {
	if d.action == Summarise {
		return fmt.Sprintf("a summary stands for %d messages", d.messages)
	}
	return fmt.Sprintf("there was no room for %d messages and no summary of them", d.messages)
}
