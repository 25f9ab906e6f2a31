package compact

// fit returns what has to leave for a summary of it, so that the view comes near its target and not far below it. What
// a summary will have is known only when it is written: fit has one written, and keeps as many more units as it was
// shorter than it may be. Of the oldest unit that still has no room, the results are cut to the room that there is.
func (u *summaries) fit(d *eviction) (*eviction, *summaries) {
	const (
		tries = 3
		near  = 0.9 // of the target
	)
	var made *summaries // of d
	for range tries {
		if d == nil {
			break
		}
		var has int
		made, has = u.wouldHave(d)
		if float64(u.sizeWithout(d.end)-int64(u.summaryRoom()-has)) >= near*u.target {
			if left := u.cutInstead(d); left != d {
				return left, nil
			}
			return d, made
		}
		u.expected = has
		next := u.newEviction(u.pinned, u.summariseUpTo(), Summarise)
		if next != nil && next.end == d.end {
			break
		}
		d, made = next, nil
	}
	left := u.cutInstead(d)
	if left != d {
		made = nil
	}
	return left, made
}

// wouldHave returns the tokens of the message of summaries that would replace what is evicted, if Extract wrote it, and
// the summaries if it does.
func (u *summaries) wouldHave(d *eviction) (written *summaries, tokens int) {
	h, s := *u.history, *u.runState
	made := *d
	h.memory = u.memory.Clone()
	s.history = &h
	s.write, s.failure = nil, nil
	dry := &summaries{runState: &s, at: u.at, list: u.list, grown: u.grown, taken: u.taken}
	err := dry.summarise(&made)
	if err != nil || u.write != nil { // which may write another
		dry = nil
	}
	if made.now == 0 {
		return nil, u.summaryRoom()
	}
	return dry, made.now
}

// leastCut is how many tokens of a result a cut leaves at least.
const leastCut = 200

// cutInstead returns what has to leave if results of the last unit of an eviction are cut, and the unit stays.
func (u *summaries) cutInstead(d *eviction) *eviction {
	if d == nil {
		return nil
	}
	begin := u.lastUnitBefore(d.end)
	room := u.target - float64(u.sizeWithout(begin))
	var results []int
	for m := begin; m < d.end; m++ {
		for i := u.messages[m].first; i < u.messages[m].last; i++ {
			p := &u.parts[i]
			if p.kind == result && u.free[i] && !u.held[i] && p.action < Bookend && u.now(i) > leastCut {
				results = append(results, i)
				room += float64(u.now(i))
			}
		}
	}
	if len(results) == 0 || room < float64(len(results)*leastCut) {
		return d
	}
	sizes := make([]int, len(results))
	for k, i := range results {
		sizes[k] = u.now(i)
	}
	for _, share := range []float64{0.95, 0.85} { // how long a cut becomes is foreseen by its characters
		for _, i := range results {
			u.cutTo(i, levelOf(sizes, int(share*room)))
		}
		if float64(u.sizeWithout(begin)) <= u.target {
			return u.newEviction(u.pinned, begin, Summarise)
		}
	}
	return d
}
