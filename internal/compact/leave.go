package compact

import (
	"fmt"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// departure is the oldest messages leaving the view as whole units. One message stands in their place: a summary of
// them, or a notice.
type departure struct {
	begin, end int // messages[begin:end], save stays
	stays      int // the newest message of the user, which never leaves; -1 for none among them
	do         Do
	stage      string
	standsFor
	body        []byte // of the message in their place
	tokens, now int    // of it: what stages count, and what it has
}

// span is a half-open range.
type span struct{ start, end int }

// leaves reports whether message m leaves.
func (p *Plan) leaves(m int) bool { return p.departure != nil && p.departure.covers(m) }

func (d *departure) covers(m int) bool { return d.begin <= m && m < d.end && m != d.stays }

// depart prepares messages[begin:end] for leaving. It is nil if nothing of the log is among them.
func (s *scene) depart(begin, end int, do Do) *departure {
	d := &departure{begin: begin, end: end, stays: -1, do: do, stage: s.stage}
	switch {
	case begin == s.spoken:
		d.begin, begin = begin+1, begin+1
	case begin < s.spoken && s.spoken < end:
		d.stays = s.spoken
	}
	fresh := 0
	for m := begin; m < end; m++ {
		if m == d.stays {
			continue
		}
		at := &s.messages[m]
		first, messages := at.seq, 1
		if at.standsFor.any() {
			first, messages = at.from, at.messages
		} else {
			fresh++
		}
		if d.from == 0 || first < d.from {
			d.from = first
		}
		d.standsFor.last, d.messages = max(d.standsFor.last, at.through()), d.messages+messages
	}
	if fresh == 0 {
		return nil
	}
	return d
}

// write makes the message that stands in the messages' place: of the user, because every provider takes one there, and
// because nothing that a conversation said may speak as the system.
func (d *departure) write(s *scene, template *text.Template, inner string) error {
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
			return fmt.Append(dst, d.standsFor.last)
		}
		return fmt.Append(dst, d.messages)
	})
	d.body = wire.UserMessage(s.in.Format, rawjson.Quote(nil, b))
	found, err := wire.Inspect(s.in.Format, d.body)
	d.tokens, d.now = found.Tokens, found.Tokens
	return err
}

// standing is what the messages that leave have in the view.
func (d *departure) standing(h *history) (tokens int) {
	for m := d.begin; m < d.end; m++ {
		if d.covers(m) {
			tokens += h.messages[m].now
		}
	}
	return tokens
}

// leaveOut enters the departure in the manifest, unless it would save nothing.
func (p *Plan) leaveOut(s *scene) {
	d := s.departure
	if d == nil {
		return
	}
	before := d.standing(s.history)
	if d.now >= before {
		return
	}
	p.departure = d
	p.enter(Action{
		Seq: d.from, LastSeq: d.standsFor.last, Part: -1, Do: d.do, Stage: d.stage, Rule: d.stage + ".enabled", Reason: d.reason(),
		TokensBefore: before, TokensAfter: d.now,
	})
}

func (d *departure) reason() string {
	if d.do == Summarise {
		return fmt.Sprintf("a summary stands for %d messages", d.messages)
	}
	return fmt.Sprintf("there was no room for %d messages and no summary of them", d.messages)
}
