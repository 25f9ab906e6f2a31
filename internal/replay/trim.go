package replay

import (
	"cmp"
	"slices"
)

// The tokens of what stands in the place of a cleared result, and of messages that were dropped.
const (
	clearedTokens = 10
	droppedTokens = 30
)

// keptResults is how many results clear-keep3 keeps.
const keptResults = 3

// trimmer shortens the view of a yardstick that no policy is: by clearing results, and by dropping whole units.
type trimmer struct {
	*life
	items []item
	limit int64 // tokens
	first int   // the first message that changes
	open  int   // where the newest unit begins, which is kept
}

// item is what a view has of a message.
type item struct {
	gone    bool
	cleared []bool // by result
}

// trim shortens the view.
func (l *life) trim() {
	v := &l.view
	t := &trimmer{life: l, items: l.items, first: v.tail + len(l.tail)}
	for m := len(t.items); m < t.first; m++ {
		t.items = append(t.items, item{cleared: make([]bool, len(l.messages[m].results))})
	}
	t.open = len(t.items) - 1
	for t.open > 0 && !l.messages[t.open].starts {
		t.open--
	}
	before, was := v.tokens, len(t.items)
	if l.by.yardstick == clearKeep3 {
		t.limit = int64(l.by.Policy.Trigger * float64(l.window))
		t.clearOld()
	} else {
		t.limit = int64(l.by.Policy.Target * float64(l.window))
		t.foresee()
	}
	if l.items = t.items; t.first == was {
		return
	}
	kept := t.tokens(t.first)
	v.before += before
	v.outlived += kept
	v.kept = min(v.kept, kept)
	v.tail, l.tail = was, nil
	v.tokens, v.held = t.tokens(was), t.strings()
	l.context = v.tokens
	v.compactions++
	l.after()
}

// size returns the tokens that the view has of a message.
func (t *trimmer) size(m int) (tokens int) {
	it := &t.items[m]
	if it.gone {
		return 0
	}
	tokens = t.session.Messages[m].Tokens
	for k, cleared := range it.cleared {
		if cleared {
			tokens += clearedTokens - t.messages[m].results[k].tokens
		}
	}
	return tokens
}

// tokens returns the tokens of what is left of the first n messages.
func (t *trimmer) tokens(n int) (sum int64) {
	for m := range n {
		sum += int64(t.size(m))
	}
	if slices.ContainsFunc(t.items[:n], func(it item) bool { return it.gone }) {
		sum += droppedTokens
	}
	return sum
}

// strings returns the strings that the view holds.
func (t *trimmer) strings() bits {
	held := newBits(t.index.strings)
	for m := range t.items {
		if t.items[m].gone {
			continue
		}
		for _, n := range t.messages[m].strings {
			held.set(n)
		}
		for k, cleared := range t.items[m].cleared {
			for _, n := range t.messages[m].results[k].strings {
				if !cleared {
					held.set(n)
				}
			}
		}
	}
	return held
}

func (t *trimmer) clear(m, k int) {
	if r := &t.messages[m].results[k]; !t.items[m].cleared[k] && r.tokens > clearedTokens {
		t.items[m].cleared[k] = true
		t.first = min(t.first, m)
	}
}

// drop drops the unit that begins with a message.
func (t *trimmer) drop(start int) {
	for m := start; m < t.end(start); m++ {
		t.items[m].gone = true
	}
	t.first = min(t.first, start)
}

// end returns where the unit that begins with a message ends.
func (t *trimmer) end(start int) int {
	end := start + 1
	for end < len(t.items) && !t.messages[end].starts {
		end++
	}
	return end
}

// droppable lists the units that may be dropped: all but the system prompt and the newest.
func (t *trimmer) droppable() (starts []int) {
	for m := range t.open {
		if t.messages[m].starts && !t.messages[m].system && !t.items[m].gone {
			starts = append(starts, m)
		}
	}
	return starts
}

// clearOld clears all results but the newest, and drops the oldest units while that is not enough.
func (t *trimmer) clearOld() {
	kept := 0
	for m := len(t.items) - 1; m >= 0; m-- {
		for k := len(t.items[m].cleared) - 1; k >= 0; k-- {
			if kept++; kept > keptResults {
				t.clear(m, k)
			}
		}
	}
	size := t.tokens(len(t.items))
	for _, start := range t.droppable() {
		if size <= t.limit {
			return
		}
		for m := start; m < t.end(start); m++ {
			size -= int64(t.size(m))
		}
		t.drop(start)
	}
}

// foresee takes away what is needed the least in the requests to come, for its size, until the view is at its limit.
func (t *trimmer) foresee() {
	worth := t.worth()
	var list []victim
	for _, start := range t.droppable() {
		whole := victim{message: start, result: -1}
		for m := start; m < t.end(start); m++ {
			whole.add(worth[m].rest, t.size(m))
			for k, cleared := range t.items[m].cleared {
				r := victim{message: m, result: k, worth: worth[m].results[k]}
				if r.tokens = t.messages[m].results[k].tokens - clearedTokens; !cleared && r.tokens > 0 {
					list = append(list, r)
				}
				whole.worth += r.worth
			}
		}
		list = append(list, whole)
	}
	slices.SortStableFunc(list, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.worth*float64(max(1, b.tokens)), b.worth*float64(max(1, a.tokens))),
			cmp.Compare(b.result, a.result))
	})
	for i := range list {
		if t.tokens(len(t.items)) <= t.limit {
			return
		}
		if c := &list[i]; c.result >= 0 {
			t.clear(c.message, c.result)
		} else {
			t.drop(c.message)
		}
	}
}

// victim is a result that may be cleared, or a unit that may be dropped.
type victim struct {
	message int
	result  int // -1: the unit
	worth   float64
	tokens  int
}

func (v *victim) add(worth float64, tokens int) {
	v.worth += worth
	v.tokens += tokens
}

// value is how often the strings of a message are needed in the requests to come, its results apart.
type value struct {
	rest    float64
	results []float64
}

// worth returns what each message is worth: a string counts where it is kept at the least cost.
func (t *trimmer) worth() []value {
	now := int32(len(t.items))
	values := make([]value, len(t.items))
	for m := range values {
		values[m].results = make([]float64, len(t.items[m].cleared))
	}
	for n, uses := range t.uses {
		after, _ := slices.BinarySearch(uses, now)
		if needed := float64(len(uses) - after); needed > 0 {
			if at := t.cheapest(int32(n)); at != nil {
				*at(values) += needed
			}
		}
	}
	return values
}

// cheapest returns where the view holds a string in the fewest tokens; nil if it does not hold it.
func (t *trimmer) cheapest(n int32) (at func([]value) *float64) {
	best := -1
	consider := func(tokens int, place func([]value) *float64) {
		if best < 0 || tokens < best {
			best, at = tokens, place
		}
	}
	for _, place := range t.places[n] {
		m := int(place)
		if m >= len(t.items) || t.items[m].gone {
			continue
		}
		rest := t.session.Messages[m].Tokens
		for k := range t.messages[m].results {
			r := &t.messages[m].results[k]
			rest -= r.tokens
			if _, has := slices.BinarySearch(r.strings, n); has && !t.items[m].cleared[k] {
				consider(r.tokens, func(v []value) *float64 { return &v[m].results[k] })
			}
		}
		if _, has := slices.BinarySearch(t.messages[m].strings, n); has {
			consider(rest, func(v []value) *float64 { return &v[m].rest })
		}
	}
	return at
}
