// Package units has the two rules that group the messages of a conversation: which call a tool result answers (Pairer),
// and where a unit begins (Tracker). Start with Pairer. Both read a conversation one message after another, know
// nothing about formats or JSON, and import no other package of Varve.
package units

import "iter"

// nameReach bounds how many waiting calls of one id are searched for a name, so that pairing stays linear in any log.
const nameReach = 64

// Pairer pairs the tool results of a conversation with its calls. Ids of calls repeat within a conversation, so a
// result answers the nearest call before it that has its id and no result yet. If the result names its tool and
// several calls wait under the id, the nearest one of that tool goes first.
//
// Within a message the order of its parts counts. Where only its lists of ids are known, its calls come before its
// results: an AI SDK message holds both.
//
// C is the data that the caller needs about a call when its result comes. The zero Pairer is ready to use and allocates
// nothing before the first call.
type Pairer[C any] struct {
	newest  map[string]int // by id: 1 + the slot of the newest waiting call
	slots   []slot[C]
	free    int // 1 + the first free slot, 0 for none
	waiting int
}

type slot[C any] struct {
	call  C
	name  string
	older int // 1 + the slot of the older waiting call of this id, or of the next free slot; 0 for none
	used  bool
}

// Call adds a call, which then waits for its result. The name is "" if it is unknown.
func (p *Pairer[C]) Call(id, name string, call C) {
	if p.newest == nil {
		p.newest = map[string]int{}
	}
	at := p.free
	if at == 0 {
		p.slots = append(p.slots, slot[C]{})
		at = len(p.slots)
	} else {
		p.free = p.slots[at-1].older
	}
	p.slots[at-1] = slot[C]{call: call, name: name, older: p.newest[id], used: true}
	p.newest[id] = at
	p.waiting++
}

// Answer returns the call that a result answers, which waits no longer; ok is false if the result answers no call. The
// name is that of the result's tool, "" if it is unknown.
func (p *Pairer[C]) Answer(id, name string) (call C, ok bool) {
	newest := p.newest[id]
	if newest == 0 {
		return call, false
	}
	at, newer := p.choose(newest, name)
	chosen := &p.slots[at-1]
	switch {
	case newer > 0:
		p.slots[newer-1].older = chosen.older
	case chosen.older > 0:
		p.newest[id] = chosen.older
	default:
		delete(p.newest, id)
	}
	call = chosen.call
	p.release(at)
	return call, true
}

// choose returns the slot of the call that a result answers, and the slot that refers to it, 0 if that is the map.
func (p *Pairer[C]) choose(newest int, name string) (at, newer int) {
	if name == "" || p.slots[newest-1].name == name {
		return newest, 0
	}
	newer, at = newest, p.slots[newest-1].older
	for range nameReach {
		if at == 0 {
			break
		}
		if p.slots[at-1].name == name {
			return at, newer
		}
		newer, at = at, p.slots[at-1].older
	}
	return newest, 0
}

func (p *Pairer[C]) release(at int) {
	p.slots[at-1] = slot[C]{older: p.free}
	p.free = at
	if p.waiting--; p.waiting == 0 {
		p.slots, p.free = p.slots[:0], 0
	}
}

// Waiting returns how many calls have no result yet.
func (p *Pairer[C]) Waiting() int { return p.waiting }

// All yields the calls that have no result yet, in no particular order.
func (p *Pairer[C]) All() iter.Seq[C] {
	return func(yield func(C) bool) {
		for i := range p.slots {
			if p.slots[i].used && !yield(p.slots[i].call) {
				return
			}
		}
	}
}

// Clear removes the calls that have no result yet: a later result answers none of them.
func (p *Pairer[C]) Clear() {
	clear(p.newest)
	clear(p.slots)
	p.slots = p.slots[:0]
	p.free, p.waiting = 0, 0
}
