package units

import "slices"

// EarlyReach is how many messages a result waits for its call. Who appends at once is not further apart.
const EarlyReach = 64

// Early finds results that stand before their calls: of two programs that append at once, or of parallel tools, one may
// be faster. Feed it a conversation in its order, beside a Pairer.
//
// A result that answers no call before it waits for a call behind it, until the user says something or 64 messages have
// come. It does not wait if a call of its id came before it, for ids repeat: it is a second result of that call. A call
// takes a result that waits only if no result behind it answers it, the nearest one first; that decision is the
// caller's, once it knows.
//
// Places are the numbers of messages. R is what the caller needs about a result. The zero Early is ready to use.
type Early[R any] struct {
	called  map[string]bool
	waiting map[string][]early[R]
}

type early[R any] struct {
	place  int
	result R
}

// Result adds a result that answers no call before it.
func (e *Early[R]) Result(id string, place int, result R) {
	if e.called[id] {
		return
	}
	if e.waiting == nil {
		e.waiting = map[string][]early[R]{}
	}
	e.waiting[id] = append(e.waiting[id], early[R]{place, result})
}

// Call returns the results that wait for a call of an id, the nearest one first.
func (e *Early[R]) Call(id string, place int) (results []R) {
	for _, w := range slices.Backward(e.waiting[id]) {
		if place-w.place <= EarlyReach {
			results = append(results, w.result)
		}
	}
	return results
}

// Called records that an id has a call, whose further results wait for no other.
func (e *Early[R]) Called(id string) {
	if e.called == nil {
		e.called = map[string]bool{}
	}
	e.called[id] = true
}

// Said records that the user says something: what waits so far is of no call to come.
func (e *Early[R]) Said() { clear(e.waiting) }
