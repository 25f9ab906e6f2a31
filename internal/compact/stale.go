package compact

import (
	"path"

	"github.com/varve-dev/varve/internal/compact/resource"
)

// stubStale replaces what was read of a file before it was written: whoever goes by the old text goes wrong.
func stubStale(s *scene) {
	later := writes{}
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
		case p.does.reads() && p.tokens >= s.policy.Stale.MinTokens && s.free[i] && !s.protected(p.message):
			if by, ok := later.all(p); ok {
				s.propose(i, max(by, s.release[p.message]), proposal{do: Stale, newer: s.messages[by].seq}, stubTokens)
			}
		}
	}
}

// writes are the successful writes after the message at hand: of each path the oldest one, by the last element of the
// path, since one file may be called by an absolute and by a relative name.
type writes map[string][]write

type write struct {
	path    string
	message int
}

func (w writes) add(name string, message int) {
	base := path.Base(name)
	for k := range w[base] {
		if w[base][k].path == name {
			w[base][k].message = message
			return
		}
	}
	w[base] = append(w[base], write{name, message})
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

// first is the message of the oldest write of a path, 0 if there is none.
func (w writes) first(name string) (message int) {
	for _, at := range w[path.Base(name)] {
		if (message == 0 || at.message < message) && resource.SamePath(at.path, name) {
			message = at.message
		}
	}
	return message
}
