package compact

import (
	"iter"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
)

// stubStale replaces what was read of a file before it was written: the old text would mislead the model.
func stubStale(s *runState) {
	for i, by := range s.outOfDate() {
		p := &s.parts[i]
		if p.tokens >= s.policy.Stale.MinTokens && s.free[i] && !s.protected(p.message) {
			want := proposal{action: Stale, newer: s.messages[by].seq}
			s.propose(i, max(by, s.release[p.message]), want, stubTokens)
		}
	}
}

// outOfDate yields, from the newest backwards, each result whose files have all been written since, with the message of
// the write.
func (s *runState) outOfDate() iter.Seq2[int, int] {
	return func(yield func(i, by int) bool) {
		later := writes{paths: map[string]int{}, ends: map[string]int{}}
		for i := len(s.parts) - 1; i >= 0; i-- {
			p := &s.parts[i]
			if p.kind != result || !p.paired {
				continue
			}
			switch {
			case p.does.writes() && p.usable:
				for _, name := range p.paths {
					later.add(name, p.message)
				}
			case p.does.reads():
				if by, ok := later.all(p); ok && !yield(i, by) {
					return
				}
			}
		}
	}
}

// writes maps paths to the oldest successful write after the current message. It also has every suffix of an absolute
// path, because a call may name the same file by a relative path.
type writes struct{ paths, ends map[string]int }

// maxElements limits how many elements of a path are compared.
const maxElements = 64

func (w writes) add(name string, message int) {
	w.paths[name] = message
	if resource.Absolute(name) {
		for end := range endsOfPath(name) {
			w.ends[end] = message
		}
	}
}

// endsOfPath yields the possible relative names of a file.
func endsOfPath(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for range maxElements {
			_, end, found := strings.Cut(name, "/")
			if !found || end != "" && !yield(end) {
				return
			}
			name = end
		}
	}
}

// all finds the first write with which all that p read is out of date.
func (w writes) all(p *part) (by int, ok bool) {
	for _, name := range p.paths {
		m := w.first(name)
		if m <= p.message {
			return 0, false
		}
		by = max(by, m)
	}
	return by, len(p.paths) > 0
}

// first returns the message of the oldest write of a path, 0 for a path that was not written.
func (w writes) first(name string) (message int) {
	oldest := func(writes map[string]int, name string) {
		if at, ok := writes[name]; ok && (message == 0 || at < message) {
			message = at
		}
	}
	oldest(w.paths, name)
	if !resource.Absolute(name) {
		oldest(w.ends, name)
		return message
	}
	for end := range endsOfPath(name) {
		if !resource.Absolute(end) {
			oldest(w.paths, end)
		}
	}
	return message
}
