package verify

// counters compares the numbers of the session's row with the log and the newest checkpoint. Of a log that is not whole
// they cannot be counted.
func (i *inspection) counters() {
	if !i.isWhole(Message, Missing, Extra, Columns, Lost) {
		return
	}
	a, w := i.audit, &i.log
	var tokens int64
	if i.newest != nil {
		tokens = i.newest.Tokens
		i.counter("through_seq", a.Through, i.newest.Through)
		i.counter("checkpoint_size", int64(a.CheckpointSize), int64(i.newest.Size))
	} else {
		i.counter("through_seq", a.Through, 0)
		i.counter("checkpoint_size", int64(a.CheckpointSize), 0)
	}
	i.counter("total_tokens", a.TotalTokens, w.total)
	if i.isWhole(Counter) { // the others depend on through_seq and pinned
		i.counter("context_tokens", a.ContextTokens, tokens+w.context)
		i.counter("tail_bytes", a.TailBytes, w.tailBytes)
	}
	for removal := range w.removals {
		if removal <= a.LastSeq && removal > a.GapSeq {
			i.counter("gap_seq", a.GapSeq, removal)
			break
		}
	}
}

func (i *inspection) counter(name string, stored, counted int64) {
	if stored != counted {
		i.add(Finding{Kind: Counter, Name: name}, "the session has %s %d, its log %d", name, stored, counted)
	}
}

// pinned compares the pinned head with the leading system messages of the log. The seqs of removals and gaps behind
// them may count among them.
func (i *inspection) pinned() {
	a, w := i.audit, &i.log
	if !i.isWhole(Message, Missing, Extra, Columns) {
		return
	}
	lastPinned := a.LastSeq
	if w.unpinned > 0 {
		lastPinned = w.unpinned - 1
	}
	if a.Pinned < w.pinned || a.Pinned > lastPinned {
		i.counter("pinned", a.Pinned, w.pinned)
	}
}
