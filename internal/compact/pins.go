package compact

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/pin"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Pin is a text of the log that every checkpoint has verbatim.
type Pin struct {
	Ref    string // m17, m17.2 or r17.2-9f3a
	Seq    int64
	Part   int // session.WholeMessage for all parts
	Text   string
	Asked  bool // a caller pinned it; else a marker or a pattern did
	Absent bool // there was no room for it: only its ref is named
}

// key identifies a pin: one part may have several.
func (p *Pin) key() string { return p.Ref + "\n" + p.Text }

// findPins adds what the texts of a message of the tail pin. What a tool returned or the model wrote pins nothing
// unless the policy says so: whoever can write into a tool's output would decide what a model never forgets.
func (h *history) findPins(e *Entry, found *wire.Facts, by *pinning) {
	for i := range found.Parts {
		p := &found.Parts[i]
		speaker := speakerOf(found, p)
		marks := by.policy.Markers && (speaker == policy.SystemSpeaks || speaker == policy.UserSpeaks) &&
			bytes.Contains(p.Value.Of(e.Body), []byte(pin.Open))
		matches := by.Matches() && slices.Contains(by.policy.Roles, speaker)
		whole := slices.Contains(by.policy.Whole, speaker) && h.systemMessages() < len(h.messages)
		if !marks && !matches && !whole {
			continue
		}
		text, _ := pin.TextOf(h.in.Format, e.Body, found, p.Index)
		if speaker == policy.UserSpeaks && summary.Said(text) == "" {
			continue // a harness's, which may have a tool's output in it
		}
		texts := by.Find(text, marks, matches)
		if whole && strings.TrimSpace(text) != "" {
			texts = []string{text}
		}
		seq, part := placeOf(e, p.Index)
		for _, pinned := range texts {
			h.marked = append(h.marked, Pin{Ref: fmt.Sprintf("m%d.%d", seq, part), Seq: seq, Part: part, Text: pinned})
		}
	}
}

// pinning is what a policy says of texts that pin, with its patterns compiled.
type pinning struct {
	*pin.Finder
	policy *policy.Pins
}

func pinningOf(p *policy.Pins) *pinning { return &pinning{Finder: pin.New(p.Patterns), policy: p} }

// speakerOf returns whose text a part is, "" for what is no text.
func speakerOf(found *wire.Facts, p *wire.Part) policy.Speaker {
	switch {
	case p.Kind == wire.Result:
		return policy.ToolSpeaks
	case p.Kind != wire.Text:
		return ""
	case found.Flags&wire.FlagPinned != 0:
		return policy.SystemSpeaks
	case found.Role == "user" || found.Role == "human":
		return policy.UserSpeaks
	case found.Role == "assistant" || found.Role == "model":
		return policy.AssistantSpeaks
	}
	return ""
}

// placeOf returns where the log has a part of an entry.
func placeOf(e *Entry, index int) (seq int64, part int) {
	if e.Appended != nil {
		at := &e.Appended[index]
		return at.Seq, at.Part
	}
	return e.Seq, e.Part + index
}

// pinsOf returns all pins of messages up to the last that the checkpoint will cover, in the order of the log, as they
// are after eviction d, which may be nil. It sets Absent for pins that have left the view and exceed the limit: pins of
// callers come first, then the newest.
func (s *runState) pinsOf(d *eviction) []Pin {
	covered := s.through()
	if len(s.in.Pins)+len(s.marked) == 0 || covered == 0 {
		return nil
	}
	list := s.allPins(s.messages[covered-1].through())
	slices.SortStableFunc(list, func(a, b Pin) int {
		switch {
		case a.Asked && !b.Asked:
			return -1
		case b.Asked && !a.Asked:
			return 1
		}
		return cmp.Compare(b.Seq, a.Seq)
	})
	room := s.pinsRoom()
	for i := range list {
		if s.shows(&list[i], d) {
			continue
		}
		tokens := s.count.text([]byte(list[i].Text))
		if list[i].Absent = tokens > room; !list[i].Absent {
			room -= tokens
		}
	}
	slices.SortStableFunc(list, func(a, b Pin) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Part, b.Part))
	})
	return list
}

// allPins returns the pins of messages through seq last, each once.
func (s *runState) allPins(last int64) []Pin {
	list := make([]Pin, 0, len(s.in.Pins)+len(s.marked))
	seen := map[string]bool{}
	for i, p := range slices.Concat(s.in.Pins, s.marked) {
		p.Asked = i < len(s.in.Pins)
		if key := p.key(); p.Seq <= last && !seen[key] {
			seen[key] = true
			list = append(list, p)
		}
	}
	return list
}

// pinsRoom returns how many tokens the pins may have that have left the view.
func (s *runState) pinsRoom() int { return int(min(float64(s.policy.Pins.MaxTokens), s.target/4)) }

// pinPlaces maps the seq of a pinned message of the log to where the view shows its pinned text.
type pinPlaces map[int64]*pinPlace

type pinPlace struct{ messages, parts []int }

// placesOfPins looks once through messages and parts for those of all pins.
func (h *history) placesOfPins() pinPlaces {
	if len(h.in.Pins)+len(h.marked) == 0 {
		return nil
	}
	places := pinPlaces{}
	for _, list := range [][]Pin{h.in.Pins, h.marked} {
		for i := range list {
			places[list[i].Seq] = &pinPlace{}
		}
	}
	for m := range h.messages {
		if at := places[h.messages[m].seq]; at != nil && !h.messages[m].coversOthers() {
			at.messages = append(at.messages, m)
		}
	}
	for i := range h.parts {
		if at := places[h.parts[i].seq]; at != nil {
			at.parts = append(at.parts, i)
		}
	}
	return places
}

// partsOf yields the parts of the view that a pin names. Texts are not among them, unless they are very large.
func (s *runState) partsOf(p *Pin) iter.Seq[int] {
	return func(yield func(i int) bool) {
		for _, i := range s.places[p.Seq].parts {
			if p.names(&s.parts[i]) && !yield(i) {
				return
			}
		}
	}
}

// shows reports whether the message of a pin stays in the view, and the part whole.
func (s *runState) shows(p *Pin, d *eviction) bool {
	at := s.places[p.Seq]
	for _, m := range at.messages {
		if d != nil && d.evicts(m) {
			return false
		}
	}
	for i := range s.partsOf(p) {
		if s.parts[i].action != Keep {
			return false
		}
	}
	return len(at.messages) > 0
}

// names reports whether a pin is of a part, or of the whole message that has it.
func (p *Pin) names(of *part) bool {
	return of.seq == p.Seq && (p.Part == session.WholeMessage || p.Part == of.index)
}

// hold keeps stages from changing parts that are pinned and whole in the view.
func (s *runState) hold() {
	s.held = make([]bool, len(s.parts))
	pins := slices.Concat(s.in.Pins, s.marked)
	room := s.pinsRoom()
	for k := range pins {
		p := &pins[k]
		if s.count.text([]byte(p.Text)) > room {
			continue // it will not be carried, either
		}
		for i := range s.partsOf(p) {
			if s.parts[i].action == Keep {
				s.held[i], s.free[i] = true, false
			}
		}
	}
}

// pinTo has an eviction carry the pins that are no longer in the view and that no other message of the view has.
func (s *runState) pinTo(d *eviction) {
	d.pins, d.pinned = nil, nil
	elsewhere := s.pinsCarried(d)
	for _, p := range s.pinsOf(d) {
		if s.shows(&p, d) || elsewhere[p.key()] {
			continue
		}
		if d.pins = append(d.pins, p); !p.Absent {
			d.pinned = append(d.pinned, p.key())
		}
	}
}

// pinsCarried returns the keys of the pins that messages carry which stay when d leaves; d may be nil.
func (s *runState) pinsCarried(d *eviction) map[string]bool {
	carried := map[string]bool{}
	for m := range s.messages {
		if d == nil || !d.evicts(m) {
			for _, key := range s.messages[m].pinned {
				carried[key] = true
			}
		}
	}
	return carried
}

// pinsMoved reports whether the view must carry other pins than it does: a caller has pinned what is no longer in it,
// or has unpinned what it carries.
func (s *runState) pinsMoved() bool {
	carried := s.pinsCarried(nil)
	if len(carried)+len(s.in.Pins) == 0 {
		return false
	}
	wanted := map[string]bool{}
	for _, p := range s.pinsOf(nil) {
		key := p.key()
		wanted[key] = true
		if !p.Absent && !carried[key] && !s.shows(&p, nil) {
			return true
		}
	}
	for key := range carried {
		if !wanted[key] {
			return true
		}
	}
	return false
}

// sortPins says which pins the checkpoint has, and which it cannot have.
func (p *Plan) sortPins(s *runState) {
	carried := s.pinsCarried(p.eviction)
	if p.eviction != nil {
		for _, key := range p.eviction.pinned {
			carried[key] = true
		}
	}
	edited := map[int]bool{} // by part
	for _, e := range p.edits {
		edited[e.part] = true
	}
	whole := func(pin *Pin) bool {
		for i := range s.partsOf(pin) {
			if edited[i] {
				return false
			}
		}
		return s.shows(pin, p.eviction)
	}
	for _, pin := range s.pinsOf(p.eviction) {
		switch {
		case carried[pin.key()] || whole(&pin):
			p.Pins = append(p.Pins, pin)
		case !pin.Absent:
			p.Unheld = append(p.Unheld, pin)
		}
	}
}

// markedThrough returns what the texts of messages through a seq have pinned. What came later is found again.
func (h *history) markedThrough(last int64) []Pin {
	var list []Pin
	seen := map[string]bool{}
	for _, p := range h.marked {
		if p.Seq <= last && !seen[p.key()] {
			seen[p.key()] = true
			list = append(list, p)
		}
	}
	return list
}

// appendPins writes the pinned texts after what stands for evicted messages, word for word.
func appendPins(dst []byte, pins []Pin) []byte {
	if len(pins) == 0 {
		return dst
	}
	dst = append(dst, "\n\n## Pinned, word for word"...)
	var absent []string
	for i := range pins {
		if p := &pins[i]; p.Absent {
			absent = append(absent, p.Ref)
		} else {
			dst = fmt.Appendf(dst, "\n[%s]\n%s", p.Ref, p.Text)
		}
	}
	if len(absent) > 0 {
		dst = fmt.Appendf(dst, "\n[Pinned, too, but there was no room: %s]", strings.Join(absent, ", "))
	}
	return dst
}

// pinned handles the keys of the pins that a message carries.
func (c *codec) pinned(of *coverage) {
	of.pinned = sized(c, of.pinned)
	for i := range of.pinned {
		c.text(&of.pinned[i])
	}
}

// foundPins handles what the texts of the messages have pinned.
func (c *codec) foundPins(found *[]Pin) {
	*found = sized(c, *found)
	for i := range *found {
		p := &(*found)[i]
		part := p.Part + 1
		c.text(&p.Ref)
		c.int64s(&p.Seq)
		c.ints(&part)
		c.text(&p.Text)
		p.Part = part - 1
	}
}
