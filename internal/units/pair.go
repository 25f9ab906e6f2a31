// Package units has the two rules that group the messages of a conversation: which call a tool result answers (Pairer,
// and Early where the call comes after its result), and where a unit begins (Tracker). Start with Pairer. All read a
// conversation one message after another, know nothing about formats or JSON, and import no other package of Varve.
package units

import (
	"iter"
	"slices"
)

// reach bounds how many waiting calls of one id are looked at, so that pairing stays linear in any log. A turn has at
// most 128 calls (OpenAI).
const reach = 128

// Pairer pairs the tool results of a conversation with its calls. Ids of calls repeat within a conversation, so a
// result answers the nearest call before it that has its id and no result yet; of several in one turn (see Turn), the
// first. If the result names its tool and several calls wait under the id, those of that tool go first.
//
// Within a message the order of its parts counts. Where only its lists of ids are known, its calls come before its
// results: an AI SDK message holds both.
//
// A result may also have the alias of an id, which a view has where its provider does not take the id (Alias).
//
// C is the data that the caller needs about a call when its result comes. The zero Pairer is ready to use and allocates
// nothing before the first call.
type Pairer[C any] struct {
	calls   map[string][]waiting[C] // by id, oldest first
	spare   [][]waiting[C]          // empty lists, to be used again
	waiting int
	turn    int
	aliases map[string]string // the ids of calls by the keys of their aliases; nil until a result may have one
}

type waiting[C any] struct {
	name string
	turn int
	call C
}

// Turn begins a turn of the assistant. Parallel calls may have one id: servers count the calls of each answer anew, or
// give none. Their results come in their order, so of the calls of a turn the first is answered first. Who calls Turn
// never has the nearest one answered first.
func (p *Pairer[C]) Turn() { p.turn++ }

// Call adds a call, which then waits for its result. The name is "" if it is unknown.
func (p *Pairer[C]) Call(id, name string, call C) {
	if p.calls == nil {
		p.calls = map[string][]waiting[C]{}
	}
	calls := p.calls[id]
	if n := len(p.spare); calls == nil && n > 0 {
		calls = p.spare[n-1]
		p.spare = p.spare[:n-1]
	}
	p.calls[id] = append(calls, waiting[C]{name, p.turn, call})
	p.waiting++
	if p.aliases != nil {
		p.alias(id)
	}
}

// Answer returns the call that a result answers, which waits no longer; ok is false if the result answers no call. The
// name is that of the result's tool, "" if it is unknown.
func (p *Pairer[C]) Answer(id, name string) (call C, ok bool) {
	calls := p.calls[id]
	if len(calls) == 0 && p.waiting > 0 {
		if original, ok := p.original(id); ok {
			id, calls = original, p.calls[original]
		}
	}
	if len(calls) == 0 {
		return call, false
	}
	at := choose(calls, name)
	call = calls[at].call
	calls = slices.Delete(calls, at, at+1)
	if len(calls) > 0 {
		p.calls[id] = calls
	} else {
		delete(p.calls, id)
		p.spare = append(p.spare, calls)
	}
	p.waiting--
	return call, true
}

// choose returns the index of the call that a result answers.
func choose[C any](calls []waiting[C], name string) int {
	chosen := len(calls) - 1
	last := max(0, chosen-reach)
	isNamed := false
	for i := chosen; i >= last && name != "" && !isNamed; i-- {
		if isNamed = calls[i].name == name; isNamed {
			chosen = i
		}
	}
	turn := calls[chosen].turn
	for i := chosen - 1; i >= last && turn > 0 && calls[i].turn == turn; i-- {
		if !isNamed || calls[i].name == name {
			chosen = i
		}
	}
	return chosen
}

// Waiting returns how many calls have no result yet.
func (p *Pairer[C]) Waiting() int { return p.waiting }

// All yields the calls that have no result yet, in no particular order.
func (p *Pairer[C]) All() iter.Seq[C] {
	return func(yield func(C) bool) {
		for _, calls := range p.calls {
			for i := range calls {
				if !yield(calls[i].call) {
					return
				}
			}
		}
	}
}

// Clear removes the calls that have no result yet: a later result answers none of them.
func (p *Pairer[C]) Clear() {
	clear(p.calls)
	clear(p.aliases)
	p.waiting = 0
}
