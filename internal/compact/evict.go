package compact

import (
	"fmt"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// departure is the oldest messages leaving the view as whole units. One message stands in their place: a summary of
// them, or a notice.
type eviction struct {
	begin, end int // messages[begin:end], save stays
	kept       int // the newest message of the user, which never leaves; -1 for none among them
	action     ActionKind
	stage      string
	coverage
	body        []byte // of the message in their place
	tokens, now int    // of it: what stages count, and what it has
}

// span is a half-open range.
type span struct{ start, end int }

// leaves reports whether message m leaves.
func (p *Plan) evicts(m int) bool { return p.eviction != nil && p.eviction.evicts(m) }

func (d *eviction) evicts(m int) bool { return d.begin <= m && m < d.end && m != d.kept }

// depart prepares messages[begin:end] for leaving. It is nil if nothing of the log is among them.
func (s *runState) newEviction(begin, end int, do ActionKind) *eviction {
	d := &eviction{begin: begin, end: end, kept: -1, action: do, stage: s.stage}
	switch {
	case begin == s.newestUserKept:
		d.begin, begin = begin+1, begin+1
	case begin < s.newestUserKept && s.newestUserKept < end:
		d.kept = s.newestUserKept
	}
	fresh := 0
	for m := begin; m < end; m++ {
		if m == d.kept {
			continue
		}
		at := &s.messages[m]
		first, messages := at.seq, 1
		if at.coverage.coversOthers() {
			first, messages = at.from, at.messages
		} else {
			fresh++
		}
		if d.from == 0 || first < d.from {
			d.from = first
		}
		d.coverage.last, d.messages = max(d.coverage.last, at.through()), d.messages+messages
	}
	if fresh == 0 {
		return nil
	}
	return d
}

// write makes the message that stands in the messages' place: of the user, because every provider takes one there, and
// because nothing that a conversation said may speak as the system.
func (d *eviction) compose(s *runState, template *text.Template, inner string) error {
	var b []byte
	b = template.Append(b, func(dst []byte, name string) []byte {
		switch name {
		case "text":
			d.inner.start = len(dst)
			dst = append(dst, inner...)
			d.inner.end = len(dst)
			return dst
		case "first":
			return fmt.Append(dst, d.from)
		case "last":
			return fmt.Append(dst, d.coverage.last)
		}
		return fmt.Append(dst, d.messages)
	})
	d.body = wire.UserMessage(s.in.Format, rawjson.Quote(nil, b))
	found, err := wire.Inspect(s.in.Format, d.body)
	d.tokens, d.now = found.Tokens, found.Tokens
	return err
}

// standing is what the messages that leave have in the view.
func (d *eviction) currentTokens(h *history) (sum int) {
	for m := d.begin; m < d.end; m++ {
		if d.evicts(m) {
			sum += h.messages[m].now
		}
	}
	return sum
}

// leaveOut enters the departure in the manifest, unless it would save nothing.
func (p *Plan) evict(s *runState) {
	d := s.eviction
	if d == nil {
		return
	}
	before := d.currentTokens(s.history)
	if d.now >= before {
		return
	}
	p.eviction = d
	p.enter(Action{
		Seq: d.from, LastSeq: d.coverage.last, Part: -1, Kind: d.action, Stage: d.stage, Rule: d.stage + ".enabled", Reason: d.reason(),
		TokensBefore: before, TokensAfter: d.now,
	})
}

func (d *eviction) reason() string {
	if d.action == Summarise {
		return fmt.Sprintf("a summary stands for %d messages", d.messages)
	}
	return fmt.Sprintf("there was no room for %d messages and no summary of them", d.messages)
}
