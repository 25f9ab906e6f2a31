package units

import "slices"

// Early finds results that stand before their calls: of two programs that append at once, or of parallel tools, one may
// be faster. Feed it a conversation in its order, beside a Pairer.
//
// A result that answers no call before it waits for a call behind it, until the user says something. It does not wait
// if a call of its id came before it, for ids repeat: it is a second result of that call. A call takes a result that
// waits only if no result behind it answers it, the nearest one first; that decision is the caller's, once it knows.
//
// The zero Early is ready to use.
type Early struct {
	called  map[string]bool
	waiting map[string][]int
}

// Result adds a result that answers no call before it. at is its place in the conversation.
func (e *Early) Result(id string, at int) {
	if e.called[id] {
		return
	}
	if e.waiting == nil {
		e.waiting = map[string][]int{}
	}
	e.waiting[id] = append(e.waiting[id], at)
}

// Call adds a call and returns the places of the results that wait for one of its id, the nearest one first.
func (e *Early) Call(id string) []int {
	if e.called == nil {
		e.called = map[string]bool{}
	}
	e.called[id] = true
	if len(e.waiting) == 0 {
		return nil
	}
	found := slices.Clone(e.waiting[id])
	slices.Reverse(found)
	return found
}

// Said records that the user says something: what waits so far is of no call to come.
func (e *Early) Said() { clear(e.waiting) }
